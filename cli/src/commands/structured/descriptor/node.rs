//! A node of a descriptor: its fields as what they should be, and errors that say where they are.

use std::borrow::Cow;

use regex::Regex;
use serde_json::{Map, Value};

use crate::commands::structured::transform;

/// Most mappings, changes of one value, and entries of a list.
pub(super) const MOST: usize = 4096;

/// What was read, or why not.
pub(super) type Read<T> = Result<T, String>;

/// An object of the descriptor, and where it stands.
pub(super) struct DescriptorNode<'a> {
    pub(super) map: Cow<'a, Map<String, Value>>,
    pub(super) path: String,
}

impl<'a> DescriptorNode<'a> {
    pub(super) fn root(value: &'a Value) -> Read<Self> {
        let mut place = Self::of(value, "")?;
        place.path = String::new();
        Ok(place)
    }

    /// What is absent is empty.
    pub(super) fn of(value: &'a Value, path: &str) -> Read<Self> {
        let map = match value {
            Value::Null => Cow::Owned(Map::new()),
            Value::Object(map) => Cow::Borrowed(map),
            _ if path.is_empty() => return Err("must be a JSON object".to_owned()),
            _ => return Err(format!("{path}: must be an object")),
        };
        Ok(Self {
            map,
            path: path.to_owned(),
        })
    }

    fn at(&self, key: &str) -> String {
        match self.path.as_str() {
            "" => key.to_owned(),
            path => format!("{path}.{key}"),
        }
    }

    pub(super) fn wrong(&self, key: &str, why: &str) -> String {
        format!("{}: {why}", self.at(key))
    }

    pub(super) fn only(&self, known: &[&str]) -> Read<()> {
        match self.map.keys().find(|key| !known.contains(&key.as_str())) {
            None => Ok(()),
            Some(key) => Err(self.wrong(key, "is not known")),
        }
    }

    pub(super) fn value(&self, key: &str) -> Option<&Value> {
        self.map.get(key).filter(|value| !value.is_null())
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.value(key).is_some()
    }

    pub(super) fn object(&self, key: &str) -> Read<DescriptorNode<'_>> {
        DescriptorNode::of(self.map.get(key).unwrap_or(&Value::Null), &self.at(key))
    }

    pub(super) fn list(&self, key: &str) -> Read<&[Value]> {
        match self.value(key) {
            None => Ok(&[]),
            Some(Value::Array(items)) if items.len() > MOST => {
                Err(self.wrong(key, &format!("has more than {MOST} entries")))
            }
            Some(Value::Array(items)) => Ok(items),
            Some(_) => Err(self.wrong(key, "must be a list")),
        }
    }

    pub(super) fn text(&self, key: &str) -> Read<Option<String>> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            Some(_) => Err(self.wrong(key, "must be a string")),
        }
    }

    pub(super) fn required(&self, key: &str) -> Read<String> {
        self.text(key)?
            .ok_or_else(|| self.wrong(key, "is required"))
    }

    pub(super) fn texts(&self, key: &str) -> Read<Vec<String>> {
        let texts = self.list(key)?.iter();
        Ok(texts
            .filter_map(|item| transform::cell(Some(item)))
            .collect())
    }

    pub(super) fn number(&self, key: &str) -> Read<Option<f64>> {
        let number = match self.value(key) {
            None => return Ok(None),
            Some(Value::String(text)) => text.parse().ok(),
            Some(other) => other.as_f64(),
        };
        let number = number.filter(|number: &f64| number.is_finite());
        number
            .map(Some)
            .ok_or_else(|| self.wrong(key, "must be a number"))
    }

    pub(super) fn whole(&self, key: &str) -> Read<Option<u64>> {
        let number = match self.value(key) {
            None => return Ok(None),
            Some(Value::String(text)) => text.parse().ok(),
            Some(other) => other.as_u64(),
        };
        number
            .map(Some)
            .ok_or_else(|| self.wrong(key, "must be a whole number, not negative"))
    }

    pub(super) fn flag(&self, key: &str, default: bool) -> Read<bool> {
        match self.value(key) {
            None => Ok(default),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(Value::String(text)) if text == "true" => Ok(true),
            Some(Value::String(text)) if text == "false" => Ok(false),
            Some(_) => Err(self.wrong(key, "must be true or false")),
        }
    }

    pub(super) fn regex(&self, key: &str) -> Read<Regex> {
        let text = self.required(key)?;
        Regex::new(&text).map_err(|_| self.wrong(key, &format!("'{text}' is not a valid pattern")))
    }
}
