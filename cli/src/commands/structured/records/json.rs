//! JSON: an array of objects, one object, or objects one after the other (JSON lines); below a path if the
//! records are not at the root. An array is read element by element.

use std::fmt;
use std::io::BufRead;

use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::de::{Deserializer, IoRead};

use super::Out;
use crate::client::{Error, Result};

/// Hands over each record at `root`.
pub(super) fn each(root: &[String], reader: impl BufRead, out: &mut Out<'_, '_>) -> Result<()> {
    let mut reading = Deserializer::new(IoRead::new(reader));
    let mut found = Found {
        out,
        failed: None,
        enough: false,
        there: false,
    };
    while reading.end().is_err() {
        let below = Below {
            path: root,
            found: &mut found,
        };
        let outcome = below.deserialize(&mut reading);
        if let Some(error) = found.failed {
            return Err(error);
        }
        if found.enough {
            return Ok(());
        }
        outcome.map_err(|error| found.out.fault(error))?;
    }
    match found.there {
        true => Ok(()),
        false => {
            let place = match root {
                [] => "at its root".to_owned(),
                path => format!("at '$.{}'", path.join(".")),
            };
            Err(found.out.fault(format!("has no record {place}")))
        }
    }
}

/// What was found so far, and why nothing more is looked for.
struct Found<'a, 'b, 'c> {
    out: &'a mut Out<'b, 'c>,
    failed: Option<Error>,
    enough: bool,
    there: bool,
}

impl Found<'_, '_, '_> {
    fn put(&mut self, value: Value) -> Result<(), &'static str> {
        self.there = true;
        let fields = match value {
            Value::Object(fields) => Ok(fields),
            _ => Err("is not an object".to_owned()),
        };
        match self.out.put(None, fields) {
            Ok(true) => return Ok(()),
            Ok(false) => self.enough = true,
            Err(error) => self.failed = Some(error),
        }
        Err("enough")
    }
}

/// Reads what is at a path; everything else is passed over.
struct Below<'p, 'f, 'a, 'b, 'c> {
    path: &'p [String],
    found: &'f mut Found<'a, 'b, 'c>,
}

impl<'de> DeserializeSeed<'de> for Below<'_, '_, '_, '_, '_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Below<'_, '_, '_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path {
            [] => f.write_str("records"),
            [next, ..] => write!(f, "an object with '{next}'"),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Some((next, rest)) = self.path.split_first() else {
            let record = Value::deserialize_map(map)?;
            return self.found.put(record).map_err(A::Error::custom);
        };
        while let Some(key) = map.next_key::<String>()? {
            if key == *next {
                map.next_value_seed(Below {
                    path: rest,
                    found: self.found,
                })?;
            } else {
                self.found.out.allowance.suspend();
                map.next_value::<IgnoredAny>()?;
                self.found.out.allowance.renew();
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        if !self.path.is_empty() {
            return Err(A::Error::custom("the records are below an array"));
        }
        self.found.there = true;
        while let Some(item) = items.next_element::<Value>()? {
            self.found.put(item).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}

/// The rest of an object as a value.
trait FromMap: Sized {
    fn deserialize_map<'de, A: MapAccess<'de>>(map: A) -> Result<Self, A::Error>;
}

impl FromMap for Value {
    fn deserialize_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut fields = serde_json::Map::new();
        while let Some((key, value)) = map.next_entry::<String, Value>()? {
            fields.insert(key, value);
        }
        Ok(Self::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{fields, read};
    use super::super::{Encoding, Format};
    use serde_json::json;

    #[test]
    fn arrays_objects_and_lines_are_records() {
        let root = Format::Json(Vec::new());
        let two = [json!({"a": 1}), json!({"a": {"b": [2]}})];
        assert_eq!(fields(&root, r#"[{"a": 1}, {"a": {"b": [2]}}]"#), two);
        assert_eq!(fields(&root, "{\"a\": 1}\n{\"a\": {\"b\": [2]}}\n"), two);
        assert_eq!(fields(&root, "[]").len(), 0);
        let below = Format::Json(vec!["data".to_owned(), "items".to_owned()]);
        let text = r#"{"head": [[1], "x"], "data": {"n": 2, "items": [{"a": 1}]}, "tail": {}}"#;
        assert_eq!(fields(&below, text), [json!({"a": 1})]);
    }

    #[test]
    fn what_is_no_record_is_told() {
        let root = Format::Json(Vec::new());
        let all = read(&root, Encoding::Utf8, b"[1, {\"a\": 2}]").expect("read");
        assert_eq!(all[0].1.as_ref().expect_err("a number"), "is not an object");
        assert!(all[1].1.is_ok());
        let fault = |format: &Format, text: &str| {
            let error = read(format, Encoding::Utf8, text.as_bytes()).expect_err("refused");
            error.to_string()
        };
        assert!(fault(&root, "[{]").contains("line 1 column"));
        assert!(fault(&root, "").contains("no record at its root"));
        let below = Format::Json(vec!["data".to_owned()]);
        assert!(fault(&below, r#"{"other": []}"#).contains("no record at '$.data'"));
        assert!(fault(&below, r#"{"data": 3}"#).contains("records"));
    }
}
