//! What a JSON reply is to look like.

use jsonschema::PatternOptions;
use serde_json::{Map, Value};

/// Deepest schema that is looked into.
const DEPTH: usize = 64;
/// Most patterns of a schema.
const PATTERNS: usize = 64;
/// Bytes that its patterns have together once they are compiled: a reply is looked through in time that grows with these.
const COMPILED: usize = 512 << 10;
/// Bytes that the engine may keep of what it found out about one pattern.
const CACHED: usize = 256 << 10;

/// What a JSON value must look like.
pub struct Schema {
    source: Map<String, Value>,
    validator: jsonschema::Validator,
}

impl Schema {
    /// Reads a schema. Its patterns are those of an engine that never goes back in a text.
    ///
    /// # Errors
    /// What is wrong with it as a schema, in words.
    pub fn new(source: Map<String, Value>) -> Result<Self, String> {
        let whole = Value::Object(source.clone());
        let patterns = patterns(&whole);
        if patterns > PATTERNS {
            return Err(format!("the schema has more than {PATTERNS} patterns"));
        }
        let engine = PatternOptions::regex()
            .size_limit(COMPILED / patterns.max(1))
            .dfa_size_limit(CACHED);
        let validator = jsonschema::options()
            .with_pattern_options(engine)
            .build(&whole)
            .map_err(|error| error.masked().to_string())?;
        Ok(Self { source, validator })
    }

    /// The schema itself.
    pub fn source(&self) -> &Map<String, Value> {
        &self.source
    }

    /// Whether a value fits.
    ///
    /// # Errors
    /// What does not fit, and where. Repeats nothing of the value.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        self.validator.validate(value).map_err(|error| {
            let at = error.instance_path().to_string();
            let at = if at.is_empty() {
                "the whole"
            } else {
                at.as_str()
            };
            format!("at {at}: {}", error.masked())
        })
    }
}

/// How many patterns a schema has.
fn patterns(schema: &Value) -> usize {
    let (mut patterns, mut left) = (0, vec![schema]);
    while let Some(value) = left.pop() {
        if let Value::Object(of) = value {
            patterns += usize::from(of.get("pattern").is_some_and(Value::is_string));
            let by_name = of.get("patternProperties").and_then(Value::as_object);
            patterns += by_name.map_or(0, |by_name| by_name.len());
            left.extend(of.values());
        } else if let Value::Array(of) = value {
            left.extend(of);
        }
    }
    patterns
}

/// Whether providers can hold the model to a schema: every object closed with all properties required,
/// no bounds on numbers, lengths or counts.
pub(crate) fn is_strict(schema: &Map<String, Value>) -> bool {
    strict(schema, DEPTH)
}

fn strict(schema: &Map<String, Value>, depth: usize) -> bool {
    const LOOSE: &[&str] = &[
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "minLength",
        "maxLength",
        "pattern",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
    ];
    if depth == 0 || LOOSE.iter().any(|word| schema.contains_key(*word)) {
        return false;
    }
    let object = match schema.get("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        _ => schema.contains_key("properties"),
    };
    if object {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return false;
        };
        let required = schema.get("required").and_then(Value::as_array);
        let all = properties.keys().all(|name| {
            required.is_some_and(|names| names.iter().any(|other| other.as_str() == Some(name)))
        });
        let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
        let inside = properties.values().all(|inner| {
            inner
                .as_object()
                .is_none_or(|inner| strict(inner, depth - 1))
        });
        if !(all && closed && inside) {
            return false;
        }
    }
    let inner = |value: &Value| {
        value
            .as_object()
            .is_none_or(|inner| strict(inner, depth - 1))
    };
    schema.get("items").is_none_or(inner)
        && ["oneOf", "anyOf", "allOf"].iter().all(|name| {
            schema
                .get(*name)
                .and_then(Value::as_array)
                .is_none_or(|list| list.iter().all(inner))
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pattern_that_goes_back_in_a_text_is_an_error() {
        let with = |pattern: &str| {
            let schema = json!({"properties": {"a": {"pattern": pattern}}});
            Schema::new(schema.as_object().unwrap().clone())
        };
        let word = with("^[a-z]{1,64}$").unwrap_or_else(|why| panic!("{why}"));
        assert!(word.check(&json!({"a": "b"})).is_ok());
        assert!(word.check(&json!({"a": "B"})).is_err());
        for costly in [r"^(a*)*\1$", "^(?=(a+)+$)", "^.{40000}$"] {
            assert!(with(costly).is_err(), "{costly}");
        }
        let many: Vec<_> = (0..=PATTERNS).map(|_| json!({"pattern": "^a"})).collect();
        let many = json!({ "allOf": many });
        let why = Schema::new(many.as_object().unwrap().clone()).err();
        assert_eq!(why.as_deref(), Some("the schema has more than 64 patterns"));
    }

    #[test]
    fn strict_schemas_are_told_from_loose_ones() {
        let strict = |value: Value| is_strict(value.as_object().unwrap());
        let closed = json!({
            "type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
            "additionalProperties": false,
        });
        assert!(strict(closed.clone()));
        assert!(strict(
            json!({"type": "array", "items": {"type": "string"}})
        ));
        assert!(strict(json!({"type": "array", "items": closed.clone()})));
        assert!(!strict(json!({"type": "object"})));
        assert!(!strict(json!({"type": "integer", "minimum": 1})));
        assert!(!strict(json!({"anyOf": [closed, {"type": "object"}]})));
        let optional = json!({
            "type": "object", "properties": {"a": {}}, "required": [], "additionalProperties": false,
        });
        assert!(!strict(optional));
    }
}
