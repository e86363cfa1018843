//! Reads fields of a request body: `null` counts as absent, a wrong type is an error that names the field.
//!
//! It never guesses a missing required field and never looks at keys it was not asked for.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use tg_schemas::msg::DEFAULT_COLLECTION;
use tg_schemas::rdf::{Term, Triple};
use tg_schemas::{Error, ErrorCode};

use super::looked::Looked;

/// A JSON object as bodies carry it.
pub type Body = Map<String, Value>;

/// An error that names a field of the request.
pub fn fault(field: &str, why: &str) -> Error {
    Error::new(ErrorCode::BadRequest, format!("{field}: {why}"))
}

/// An object of a request, with the path that leads to it.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    map: &'a Body,
    path: String,
    looked: Option<&'a Looked>,
}

impl<'a> Fields<'a> {
    /// The body itself.
    pub fn new(map: &'a Body) -> Self {
        Self {
            map,
            path: String::new(),
            looked: None,
        }
    }

    /// The body itself; which of its keys are looked at is noted.
    pub fn watched(map: &'a Body, looked: &'a Looked) -> Self {
        Self {
            looked: Some(looked),
            ..Self::new(map)
        }
    }

    /// The whole object.
    pub fn whole(&self) -> &'a Body {
        self.note("*");
        self.map
    }

    fn note(&self, key: &str) {
        if let Some(looked) = self.looked {
            looked.note(self.name(key));
        }
    }

    /// Keys that clients send and nobody needs.
    pub fn pass_over(&self, keys: &[&str]) {
        for key in keys {
            self.note(key);
        }
    }

    fn name(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    /// An error that names a field of this object.
    pub fn fault(&self, key: &str, why: &str) -> Error {
        fault(&self.name(key), why)
    }

    /// The value, unless absent or `null`.
    pub fn value(&self, key: &str) -> Option<&'a Value> {
        self.note(key);
        self.map.get(key).filter(|value| !value.is_null())
    }

    /// Text, if present.
    ///
    /// # Errors
    /// `bad-request`, with the field: it is there and is not text.
    pub fn opt_text(&self, key: &str) -> Result<Option<String>, Error> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(self.fault(key, "must be a string")),
        }
    }

    /// Text, empty when absent.
    ///
    /// # Errors
    /// `bad-request`, with the field: it is there and is not text.
    pub fn text(&self, key: &str) -> Result<String, Error> {
        Ok(self.opt_text(key)?.unwrap_or_default())
    }

    /// Text with a default.
    ///
    /// # Errors
    /// `bad-request`, with the field: it is there and is not text.
    pub fn text_or(&self, key: &str, default: &str) -> Result<String, Error> {
        Ok(self.opt_text(key)?.unwrap_or_else(|| default.to_owned()))
    }

    /// Text with a default that also stands for the empty text.
    ///
    /// # Errors
    /// `bad-request`, with the field: it is there and is not text.
    pub fn name_or(&self, key: &str, default: &str) -> Result<String, Error> {
        let text = self.opt_text(key)?.filter(|text| !text.is_empty());
        Ok(text.unwrap_or_else(|| default.to_owned()))
    }

    /// The collection that is named; where none is, the one of that case.
    ///
    /// # Errors
    /// `bad-request`, with the field: it is there and is not text.
    pub fn collection(&self) -> Result<String, Error> {
        self.name_or("collection", DEFAULT_COLLECTION)
    }

    /// Text that must be there (it may be empty).
    ///
    /// # Errors
    /// `bad-request`, with the field: it is absent, or is not text.
    pub fn required_text(&self, key: &str) -> Result<String, Error> {
        self.opt_text(key)?
            .ok_or_else(|| self.fault(key, "is required"))
    }

    /// A whole number; text holding one is accepted.
    ///
    /// # Errors
    /// `bad-request`, with the field: it is there and is not a whole number.
    pub fn integer_or(&self, key: &str, default: i64) -> Result<i64, Error> {
        let parsed = match self.value(key) {
            None => return Ok(default),
            Some(Value::Number(number)) => number.as_i64().or_else(|| whole(number.as_f64()?)),
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(_) => None,
        };
        parsed.ok_or_else(|| self.fault(key, "must be a whole number"))
    }

    /// A number; text holding one is accepted.
    ///
    /// # Errors
    /// `bad-request`, with the field: it is there and is not a number.
    pub fn number_or(&self, key: &str, default: f64) -> Result<f64, Error> {
        let parsed = match self.value(key) {
            None => return Ok(default),
            Some(Value::Number(number)) => number.as_f64(),
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(_) => None,
        };
        parsed
            .filter(|number| number.is_finite())
            .ok_or_else(|| self.fault(key, "must be a number"))
    }

    /// Items of a list of this object as numbers.
    ///
    /// # Errors
    /// `bad-request`, with the field: one of them is not a number.
    pub fn numbers(&self, key: &str, items: &[Value]) -> Result<Vec<f32>, Error> {
        let mut numbers = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            match item.as_f64().map(|number| number as f32) {
                Some(number) if number.is_finite() => numbers.push(number),
                _ => return Err(self.fault(&format!("{key}[{at}]"), "must be a number")),
            }
        }
        Ok(numbers)
    }

    /// `true` or `false`.
    ///
    /// # Errors
    /// `bad-request`, with the field: it is there and is not `true` or `false`.
    pub fn flag_or(&self, key: &str, default: bool) -> Result<bool, Error> {
        match self.value(key) {
            None => Ok(default),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(self.fault(key, "must be true or false")),
        }
    }

    /// `true` or `false`, `false` when absent.
    ///
    /// # Errors
    /// `bad-request`, with the field: it is there and is not `true` or `false`.
    pub fn flag(&self, key: &str) -> Result<bool, Error> {
        self.flag_or(key, false)
    }

    /// A list, if present.
    ///
    /// # Errors
    /// `bad-request`, with the field: it is there and is not a list.
    pub fn opt_list(&self, key: &str) -> Result<Option<&'a Vec<Value>>, Error> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items)),
            Some(_) => Err(self.fault(key, "must be a list")),
        }
    }

    /// A list of texts, if present.
    ///
    /// # Errors
    /// `bad-request`, with the field: it is there and is not a list of texts.
    pub fn opt_texts(&self, key: &str) -> Result<Option<Vec<String>>, Error> {
        let Some(items) = self.opt_list(key)? else {
            return Ok(None);
        };
        let mut texts = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            match item {
                Value::String(text) => texts.push(text.clone()),
                _ => return Err(self.fault(&format!("{key}[{at}]"), "must be a string")),
            }
        }
        Ok(Some(texts))
    }

    /// A list of texts, empty when absent.
    ///
    /// # Errors
    /// `bad-request`, with the field: it is there and is not a list of texts.
    pub fn texts(&self, key: &str) -> Result<Vec<String>, Error> {
        Ok(self.opt_texts(key)?.unwrap_or_default())
    }

    /// An object, if present.
    ///
    /// # Errors
    /// `bad-request`, with the field: it is there and is not an object.
    pub fn object(&self, key: &str) -> Result<Option<Fields<'a>>, Error> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(Self {
                map,
                path: self.name(key),
                looked: self.looked,
            })),
            Some(_) => Err(self.fault(key, "must be an object")),
        }
    }

    /// A raw object, if present.
    ///
    /// # Errors
    /// `bad-request`, with the field: it is there and is not an object.
    pub fn map(&self, key: &str) -> Result<Option<&'a Body>, Error> {
        Ok(self.object(key)?.map(|fields| fields.whole()))
    }

    /// A list of objects, empty when absent.
    ///
    /// # Errors
    /// `bad-request`, with the field: it is there and is not a list of objects.
    pub fn objects(&self, key: &str) -> Result<Vec<Fields<'a>>, Error> {
        let items = self.opt_list(key)?.map(Vec::as_slice).unwrap_or_default();
        let mut objects = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            let name = self.name(&format!("{key}[{at}]"));
            match item {
                Value::Object(map) => objects.push(Self {
                    map,
                    path: name,
                    // All items are read alike.
                    looked: self.looked.filter(|_| at == 0),
                }),
                _ => return Err(fault(&name, "must be an object")),
            }
        }
        Ok(objects)
    }

    /// An RDF term, if present. Bare text is accepted.
    ///
    /// # Errors
    /// `bad-request`, with the field: it is there and is not a term.
    pub fn term(&self, key: &str) -> Result<Option<Term>, Error> {
        match self.value(key) {
            None => Ok(None),
            Some(value) => Term::from_api(value)
                .map(Some)
                .ok_or_else(|| self.fault(key, "must be a term")),
        }
    }

    /// A list of complete triples, empty when absent.
    ///
    /// # Errors
    /// `bad-request`, with the field: it is there and is not a list of complete triples.
    pub fn triples(&self, key: &str) -> Result<Vec<Triple>, Error> {
        self.objects(key)?
            .iter()
            .map(|fields| fields.triple())
            .collect()
    }

    /// This object as a complete triple.
    ///
    /// # Errors
    /// `bad-request`: one of its three terms is absent, or is not a term.
    pub fn triple(&self) -> Result<Triple, Error> {
        let part = |key: &str| {
            self.term(key)?
                .ok_or_else(|| self.fault(key, "is required"))
        };
        let (s, p, o) = (part("s")?, part("p")?, part("o")?);
        let graph = self.text("g")?;
        Ok(Triple::new(s, p, o).in_graph(&graph))
    }

    /// A nested value read by its own rules, the default when absent.
    ///
    /// # Errors
    /// `bad-request`, with the field: its own rules do not take it.
    pub fn parsed<T>(&self, key: &str) -> Result<Option<T>, Error>
    where
        T: serde::de::DeserializeOwned,
    {
        match self.value(key) {
            None => Ok(None),
            Some(value) => T::deserialize(value)
                .map(Some)
                .map_err(|detail| self.fault(key, &detail.to_string())),
        }
    }

    /// A map of texts. Values of other kinds become their JSON text, `null` is left out.
    ///
    /// # Errors
    /// `bad-request`, with the field: it is there and is not an object.
    pub fn text_map(&self, key: &str) -> Result<BTreeMap<String, String>, Error> {
        Ok(self
            .object(key)?
            .map(|fields| fields.texts_of())
            .unwrap_or_default())
    }

    /// This object as a map of texts, by the same rule.
    pub fn texts_of(&self) -> BTreeMap<String, String> {
        self.whole()
            .iter()
            .filter_map(|(name, value)| match value {
                Value::Null => None,
                Value::String(text) => Some((name.clone(), text.clone())),
                other => Some((name.clone(), other.to_string())),
            })
            .collect()
    }
}

/// A float that holds a whole number.
fn whole(number: f64) -> Option<i64> {
    let fits = number.fract() == 0.0 && number.abs() < 9.0e15;
    fits.then_some(number as i64)
}

/// Builds a reply body; the names of its methods say when a key is left out.
#[derive(Debug, Default)]
pub struct Reply(Body);

impl Reply {
    /// An empty reply.
    pub fn new() -> Self {
        Self::default()
    }

    /// Always there.
    pub fn put(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0.insert(key.to_owned(), value.into());
        self
    }

    /// Absent when `None`.
    pub fn put_some(self, key: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.put(key, value),
            None => self,
        }
    }

    /// Absent when empty, zero or false.
    pub fn put_truthy(self, key: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        let falsy = match &value {
            Value::Null => true,
            Value::Bool(flag) => !flag,
            Value::Number(number) => number.as_f64() == Some(0.0),
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(map) => map.is_empty(),
        };
        if falsy { self } else { self.put(key, value) }
    }

    /// The body.
    pub fn done(self) -> Body {
        self.0
    }
}

/// Triples in the API form.
pub fn triples_to_api(triples: &[Triple]) -> Value {
    Value::Array(triples.iter().map(Triple::to_api).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn body(value: Value) -> Body {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn null_is_absent_and_wrong_types_name_the_field() {
        let map = body(json!({
            "a": null, "n": "7", "f": 7.0, "bad": [1], "in": {"x": 1}, "l": [{"k": 1}, 3]
        }));
        let fields = Fields::new(&map);
        assert_eq!(fields.text("a").unwrap(), "");
        assert_eq!(fields.integer_or("n", 0).unwrap(), 7);
        assert_eq!(fields.integer_or("f", 0).unwrap(), 7);
        assert_eq!(fields.integer_or("a", 5).unwrap(), 5);
        let message = |error: Error| error.message;
        assert_eq!(
            message(fields.text("bad").unwrap_err()),
            "bad: must be a string"
        );
        assert_eq!(
            message(fields.texts("bad").unwrap_err()),
            "bad[0]: must be a string"
        );
        let inner = fields.object("in").unwrap().unwrap();
        assert_eq!(
            message(inner.text("x").unwrap_err()),
            "in.x: must be a string"
        );
        assert_eq!(
            message(fields.objects("l").unwrap_err()),
            "l[1]: must be an object"
        );
        assert_eq!(
            message(fields.required_text("nope").unwrap_err()),
            "nope: is required"
        );
    }

    #[test]
    fn triples_must_be_complete() {
        let map = body(json!({"triples": [
            {"s": {"t": "i", "i": "urn:a"}, "p": {"t": "i", "i": "urn:p"}, "o": {"t": "l", "v": "x"}},
            {"s": {"t": "i", "i": "urn:a"}, "p": {"t": "i", "i": "urn:p"}}
        ]}));
        let error = Fields::new(&map).triples("triples").unwrap_err();
        assert_eq!(error.message, "triples[1].o: is required");
    }
}

#[cfg(test)]
mod looked_tests {
    use super::*;
    use crate::engine::translate::looked::{KEY, MOST};
    use serde_json::json;

    fn told(body: Value) -> Vec<Value> {
        let body = body.as_object().cloned().unwrap();
        let looked = Looked::default();
        let fields = Fields::watched(&body, &looked);
        fields.text("doc-limit").ok();
        fields.text_map("options").ok();
        for key in fields.objects("keys").unwrap() {
            key.text("type").ok();
        }
        if let Some(user) = fields.object("inner").unwrap() {
            user.text("name").ok();
        }
        looked.warnings(&body)
    }

    #[test]
    fn what_nobody_reads_is_told_with_what_is_meant() {
        assert_eq!(
            told(json!({"doc-limits": 3, "doc_limit": 1, "what": null, "nonsense": 1})),
            [
                "doc-limits: is not read here; doc-limit is",
                "doc_limit: is not read here; doc-limit is",
                "nonsense: is not read here",
            ]
        );
        let deep = json!({"keys": [{"type": "a", "typ": "b"}, {"x": 1}], "inner": {"names": 1},
                          "options": {"any": 1}, "workspace": "w", "user": "u"});
        assert_eq!(
            told(deep),
            [
                "keys[].typ: is not read here; type is",
                "inner.names: is not read here; name is",
            ]
        );
    }

    #[test]
    fn warnings_are_few_and_short() {
        let many: Body = (0..50)
            .map(|n| (format!("{n}{}", "x".repeat(500)), json!(1)))
            .collect();
        let told = told(Value::Object(many));
        assert_eq!(told.len(), MOST);
        assert!(told[0].as_str().unwrap().len() < 2 * KEY);
    }
}
