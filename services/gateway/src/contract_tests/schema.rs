//! As much of JSON Schema as the description of the endpoints uses: whether a value fits, which keys there are, and a
//! sample with all of them. And samples of messages, made from their Avro schemas.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// How deep schemas that hold themselves are followed.
const DEEP: usize = 4;

/// Schemas of a document.
pub(super) struct Schemas<'a>(pub(super) &'a Value);

impl<'a> Schemas<'a> {
    /// A schema itself, in place of what names it.
    pub(super) fn resolved(&self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str() {
            Some(name) => {
                let found = self.0.pointer(name.trim_start_matches('#'));
                self.resolved(found.unwrap_or_else(|| panic!("{name} is not there")))
            }
            None => schema,
        }
    }

    fn choices(&self, schema: &'a Value) -> Option<&'a Vec<Value>> {
        let any = schema.get("anyOf").or_else(|| schema.get("oneOf"));
        any.and_then(Value::as_array)
    }

    /// What does not fit, with the path that leads to it.
    pub(super) fn misfit(&self, schema: &'a Value, value: &Value, at: &str) -> Option<String> {
        let schema = self.resolved(schema);
        if let Some(choices) = self.choices(schema) {
            let fits = choices
                .iter()
                .any(|one| self.misfit(one, value, at).is_none());
            return (!fits).then(|| format!("{at}: {value} fits none of the choices"));
        }
        if schema.get("const").is_some_and(|wanted| wanted != value) {
            return Some(format!("{at}: {value} is not {}", schema["const"]));
        }
        let known = schema.get("enum").and_then(Value::as_array);
        if known.is_some_and(|known| !known.contains(value)) {
            return Some(format!("{at}: {value} is none of {}", schema["enum"]));
        }
        let types: Vec<&str> = match &schema["type"] {
            Value::String(one) => vec![one],
            Value::Array(some) => some.iter().filter_map(Value::as_str).collect(),
            _ => vec![],
        };
        if !types.is_empty() && !types.iter().any(|name| is(name, value)) {
            return Some(format!("{at}: {value} is no {types:?}"));
        }
        match value {
            Value::Object(object) => self.misfit_of_object(schema, object, at),
            Value::Array(items) => {
                let item = schema.get("items")?;
                items
                    .iter()
                    .find_map(|one| self.misfit(item, one, &format!("{at}[]")))
            }
            _ => None,
        }
    }

    fn misfit_of_object(
        &self,
        schema: &'a Value,
        object: &Map<String, Value>,
        at: &str,
    ) -> Option<String> {
        let required = schema.get("required").and_then(Value::as_array);
        for key in required.into_iter().flatten().filter_map(Value::as_str) {
            if !object.contains_key(key) {
                return Some(format!("{at}: {key} is not there"));
            }
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        let more = schema
            .get("additionalProperties")
            .filter(|more| more.is_object());
        for (key, value) in object {
            let path = format!("{at}.{key}");
            let described = properties.and_then(|known| known.get(key)).or(more);
            match described {
                Some(schema) => {
                    let misfit = self.misfit(schema, value, &path);
                    if misfit.is_some() {
                        return misfit;
                    }
                }
                // An object without any properties is of any shape.
                None if properties.is_some() => return Some(format!("{path}: is not described")),
                None => {}
            }
        }
        None
    }

    /// Paths of all keys, written as those that translators look at.
    pub(super) fn paths(&self, schema: &'a Value) -> BTreeSet<String> {
        let mut paths = BTreeSet::new();
        self.add_paths(schema, "", DEEP, &mut paths);
        paths
    }

    fn add_paths(&self, schema: &'a Value, at: &str, deep: usize, paths: &mut BTreeSet<String>) {
        let schema = self.resolved(schema);
        if deep == 0 {
            return;
        }
        for choice in self.choices(schema).into_iter().flatten() {
            self.add_paths(choice, at, deep, paths);
        }
        if let Some(items) = schema.get("items") {
            let items = self.resolved(items);
            self.add_paths(
                items,
                &format!("{}[].", at.trim_end_matches('.')),
                deep,
                paths,
            );
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        for (key, inner) in properties.into_iter().flatten() {
            paths.insert(format!("{at}{key}"));
            self.add_paths(inner, &format!("{at}{key}."), deep - 1, paths);
        }
    }

    /// A value with every key that there is.
    pub(super) fn sample(&self, schema: &'a Value) -> Value {
        self.sample_within(schema, DEEP)
    }

    fn sample_within(&self, schema: &'a Value, deep: usize) -> Value {
        let schema = self.resolved(schema);
        if let Some(first) = self.choices(schema).and_then(|choices| choices.first()) {
            return self.sample_within(first, deep);
        }
        if let Some(value) = schema.get("const").or_else(|| schema["enum"].get(0)) {
            return value.clone();
        }
        let name = schema["type"]
            .as_str()
            .or_else(|| schema["type"][0].as_str());
        match name.unwrap_or("string") {
            "integer" | "number" => json!(1),
            "boolean" => json!(false),
            "array" if deep > 0 => json!([self.sample_within(&schema["items"], deep)]),
            "array" => json!([]),
            "object" => {
                let properties = schema.get("properties").and_then(Value::as_object);
                let known = properties.into_iter().flatten().filter(|_| deep > 0);
                let keys =
                    known.map(|(key, inner)| (key.clone(), self.sample_within(inner, deep - 1)));
                Value::Object(keys.collect())
            }
            _ => json!("eA=="),
        }
    }
}

fn is(name: &str, value: &Value) -> bool {
    match name {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => value.is_null(),
    }
}

/// A message with something in every field but `error`.
pub(super) fn message(avro: &str) -> Value {
    let schema: Value = serde_json::from_slice(avro.as_bytes()).unwrap();
    let mut known = Map::new();
    let mut value = of_avro(&schema, &mut known, DEEP + 2);
    value["error"] = Value::Null;
    value
}

/// `known`: the records by name, which are written out where they come first.
fn of_avro(schema: &Value, known: &mut Map<String, Value>, deep: usize) -> Value {
    match schema {
        Value::Array(choices) => {
            let some = choices.iter().find(|one| *one != "null" && deep > 0);
            some.map_or(Value::Null, |one| of_avro(one, known, deep - 1))
        }
        Value::Object(object) => match object["type"].as_str().unwrap_or_default() {
            "record" => {
                let name = object["name"].as_str().unwrap_or_default().to_owned();
                known.insert(name, schema.clone());
                let fields = object["fields"].as_array().into_iter().flatten();
                let filled = fields.map(|field| {
                    let name = field["name"].as_str().unwrap_or_default().to_owned();
                    let value = match field["free"].as_bool() {
                        // JSON of any shape.
                        Some(true) => json!({"k": "x"}),
                        _ => of_avro(&field["type"], known, deep),
                    };
                    (name, value)
                });
                Value::Object(filled.collect())
            }
            "array" => json!([of_avro(&object["items"], known, deep.saturating_sub(1))]),
            "map" => json!({"k": of_avro(&object["values"], known, deep.saturating_sub(1))}),
            _ => of_avro(&object["type"], known, deep),
        },
        Value::String(name) => match name.as_str() {
            "int" | "long" => json!(7),
            "float" | "double" => json!(0.5),
            "boolean" => json!(true),
            "string" | "bytes" => json!("x"),
            name => {
                let short = name.rsplit('.').next().unwrap_or(name);
                match known.get(short).cloned() {
                    Some(record) if deep > 0 => of_avro(&record, known, deep - 1),
                    _ => Value::Null,
                }
            }
        },
        _ => Value::Null,
    }
}
