//! When two calls are the same, and two results.

use serde_json::{Map, Number, Value};
use sha2::{Digest, Sha256};

/// Hash of what a tool is given: of its canonical JSON, or of the text itself where that is none.
pub fn args_hash(arguments: &str) -> String {
    match serde_json::from_slice::<Value>(arguments.as_bytes()) {
        Ok(value) => hash(&canonical(&value)),
        Err(_) => hash(arguments),
    }
}

/// Hash of what a tool returned.
pub fn result_hash(observation: &str) -> String {
    hash(observation)
}

fn hash(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}

/// JSON with sorted keys, without blanks, and with whole numbers written as such.
fn canonical(value: &Value) -> String {
    sorted(value).to_string()
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut pairs: Vec<_> = map.iter().collect();
            pairs.sort_by_key(|(key, _)| *key);
            let pairs = pairs
                .into_iter()
                .map(|(key, value)| (key.clone(), sorted(value)));
            Value::Object(pairs.collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Number(number) => whole(number).map_or_else(|| value.clone(), Value::Number),
        other => other.clone(),
    }
}

/// The same number as an integer, where it is one. Beyond what 64 bits hold, numbers are written as they are read.
fn whole(number: &Number) -> Option<Number> {
    let float = number.as_f64().filter(|_| number.is_f64())?;
    if float.fract() != 0.0 {
        return None;
    }
    let text = format!("{float:.0}");
    let signed = text.parse::<i64>().ok().map(Number::from);
    signed.or_else(|| text.parse::<u64>().ok().map(Number::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 86
    #[test]
    fn line_086_the_same_arguments_have_the_same_hash_however_they_are_written() {
        let same = [
            r#"{"a":1,"b":{"x":[1,2],"y":null}}"#,
            r#"{ "b" : {"y":null, "x":[1.0, 2e0]}, "a" : 1.0 }"#,
        ];
        assert_eq!(args_hash(same[0]), args_hash(same[1]));
        for other in [
            r#"{"a":2,"b":{"x":[1,2],"y":null}}"#,
            r#"{"a":1,"b":{"x":[2,1],"y":null}}"#,
            r#"{"a":"1","b":{"x":[1,2],"y":null}}"#,
            r#"{"a":1.5,"b":{"x":[1,2],"y":null}}"#,
            r#"{"a":1}"#,
        ] {
            assert_ne!(args_hash(same[0]), args_hash(other), "{other}");
        }
    }

    #[test]
    fn hashes_are_those_of_the_text() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(result_hash(""), empty);
        assert_eq!(args_hash("not JSON"), result_hash("not JSON"));
        assert_eq!(
            args_hash(r#"{"b":-0.0,"a":18446744073709551615}"#),
            result_hash(r#"{"a":18446744073709551615,"b":0}"#)
        );
        assert_eq!(args_hash("[1e300]"), result_hash("[1e+300]"));
    }
}
