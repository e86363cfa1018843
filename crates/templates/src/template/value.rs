//! JSON values as template values. Objects keep the order of their keys. Each value is made once, by whoever reads the JSON, and
//! shared from then on: a template may name a list of objects many times.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use minijinja::value::{Enumerator, Object, ObjectExt, Value};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Map;

/// Keys of an object that are compared one by one; of more there is an index.
const FEW: usize = 8;

/// Terms of this name are read once while they stay the same: an agent offers the same tools in each step.
const SAME: &str = "tools";
/// How many of them a thread keeps, and how long they may be, in bytes.
const KEPT: usize = 8;
const LONGEST: usize = 8 << 10;

thread_local! {
    static KNOWN: RefCell<VecDeque<(String, Value)>> = const { RefCell::new(VecDeque::new()) };
}

/// An object.
#[derive(Debug, Default)]
struct Row {
    entries: Vec<(Value, Value)>,
    /// Where each key is, of an object that has more than a few.
    index: HashMap<Box<str>, usize>,
}

impl Row {
    /// Of two values under one key the later counts, in the place of the first.
    fn put(&mut self, key: Value, value: Value) {
        let name = key.as_str().unwrap_or_default();
        if let Some(at) = self.place(name) {
            self.entries[at].1 = value;
            return;
        }
        if self.entries.len() >= FEW {
            if self.index.is_empty() {
                let places = self.entries.iter().enumerate();
                let places = places.filter_map(|(at, (name, _))| Some((name.as_str()?.into(), at)));
                self.index = places.collect();
            }
            self.index.insert(name.into(), self.entries.len());
        }
        self.entries.push((key, value));
    }

    fn place(&self, key: &str) -> Option<usize> {
        if !self.index.is_empty() {
            return self.index.get(key).copied();
        }
        let mut names = self.entries.iter();
        names.position(|(name, _)| name.as_str() == Some(key))
    }
}

impl Object for Row {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let at = self.place(key.as_str()?)?;
        Some(self.entries[at].1.clone())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        self.mapped_enumerator(|row| Box::new(row.entries.iter().map(|(key, _)| key.clone())))
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.entries.len())
    }
}

/// Values by name, each a JSON text; the name of one that is none.
pub(crate) fn of_terms(terms: &BTreeMap<String, String>) -> Result<Value, &str> {
    let mut row = Row::default();
    for (name, term) in terms {
        let value = read(name, term).map_err(|_| name.as_str())?;
        row.put(Value::from(name.as_str()), value);
    }
    Ok(Value::from_object(row))
}

fn read(name: &str, term: &str) -> Result<Value, serde_json::Error> {
    let parse = || serde_json::from_slice(term.as_bytes()).map(|Read(value)| value);
    if name != SAME || term.len() > LONGEST {
        return parse();
    }
    KNOWN.with_borrow_mut(|known| {
        if let Some((_, value)) = known.iter().find(|(text, _)| text == term) {
            return Ok(value.clone());
        }
        let read = parse();
        if let Ok(value) = &read {
            known.truncate(KEPT - 1);
            known.push_front((term.to_owned(), value.clone()));
        }
        read
    })
}

/// An object of JSON values.
pub(super) fn of_map(map: Map<String, serde_json::Value>) -> Value {
    let mut row = Row::default();
    for (key, value) in map {
        row.put(Value::from(key), of(value));
    }
    Value::from_object(row)
}

fn of(json: serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::from(()),
        serde_json::Value::Bool(flag) => Value::from(flag),
        serde_json::Value::Number(number) => number
            .as_i64()
            .map(Value::from)
            .or_else(|| number.as_u64().map(Value::from))
            .or_else(|| number.as_f64().map(Value::from))
            .unwrap_or_default(),
        serde_json::Value::String(text) => Value::from(text),
        serde_json::Value::Array(items) => {
            Value::from(items.into_iter().map(of).collect::<Vec<_>>())
        }
        serde_json::Value::Object(map) => of_map(map),
    }
}

/// A JSON text as a template value, without a tree between the two.
struct Read(Value);

impl<'de> Deserialize<'de> for Read {
    fn deserialize<D: Deserializer<'de>>(de: D) -> Result<Self, D::Error> {
        de.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::from(()))
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::from(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::from(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(i64::try_from(number).map_or_else(|_| Value::from(number), Value::from))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::from(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::from(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Read(item)) = all.next_element()? {
            items.push(item);
        }
        Ok(Value::from(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<Value, A::Error> {
        let mut row = Row::default();
        while let Some(Read(key)) = all.next_key()? {
            let Read(value) = all.next_value()?;
            row.put(key, value);
        }
        Ok(Value::from_object(row))
    }
}
