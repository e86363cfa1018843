//! Types and schema files, held together: a type says the names, the order, the kinds and the defaults of its fields,
//! and a file says nothing else. Each record is written once, in its own file; where another one holds it, it is
//! written out again by `UPDATE=1 cargo test -p tg-schemas schema_files`, and the test tells where that was forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::{Map, Value, json};

use super::{ContentType, decode, encode};
use crate::Message;
use crate::rdf::Term;

/// Holds a type against its file: a body whose every field says something is read, says the same, and is written
/// and read again; what the file says where nothing is said is what the type says.
pub(super) fn holds<M: Message + Default + PartialEq + std::fmt::Debug>() {
    let schema: Value = serde_json::from_str(M::AVRO).expect("a schema is JSON");
    let mut records = BTreeMap::new();
    collect(&schema, &mut records);
    let empty = serde_json::to_value(M::default()).expect("a message is JSON");
    let mut full = sample(&schema, &records);
    for field in schema["fields"].as_array().expect("fields") {
        let name = field["name"].as_str().expect("a name");
        let Some(usual) = empty.get(name) else {
            // Left out where it says nothing.
            continue;
        };
        if field["free"] == json!(true) {
            full[name] = usual.clone();
            assert_eq!(&free(field), usual, "{}.{name}: default", M::NAME);
        } else if let Some(default) = field.get("default") {
            assert_eq!(default, usual, "{}.{name}: default", M::NAME);
        }
    }
    let body = serde_json::to_vec(&full).expect("JSON");
    let message: M = match decode(&body, ContentType::Json) {
        Ok(message) => message,
        Err(error) => panic!(
            "{}: the type does not read what the file says: {error}",
            M::NAME
        ),
    };
    let said = serde_json::to_value(&message).expect("a message is JSON");
    assert_eq!(said, full, "{}: the type says something else", M::NAME);
    let avro = encode(&message, ContentType::Avro).expect("written");
    assert_eq!(
        decode::<M>(&avro, ContentType::Avro).expect("read"),
        message
    );
}

/// A value of this schema in which every field says something.
fn sample(schema: &Value, records: &BTreeMap<String, Value>) -> Value {
    match schema {
        Value::String(name) => match name.as_str() {
            "string" => json!("text"),
            "long" => json!(7),
            "double" | "float" => json!(0.5),
            "boolean" => json!(true),
            "null" => Value::Null,
            name => sample(&records[local(name)], records),
        },
        Value::Array(variants) => sample(&variants[1], records),
        Value::Object(map) => match map["type"].as_str() {
            Some("array") => json!([sample(&map["items"], records)]),
            Some("map") => json!({"key": sample(&map["values"], records)}),
            Some("record") if local(text(&map["name"])) == "Term" => {
                serde_json::to_value(Term::iri("urn:a")).expect("a term is JSON")
            }
            Some("record") => {
                let mut value = Map::new();
                for field in map["fields"].as_array().expect("fields") {
                    let inner = match field["free"] == json!(true) {
                        true => free(field),
                        false => sample(&field["type"], records),
                    };
                    value.insert(text(&field["name"]).to_owned(), inner);
                }
                Value::Object(value)
            }
            _ => sample(&map["type"], records),
        },
        other => panic!("no schema: {other}"),
    }
}

/// What a field of unknown shape says where nothing is said: its default as text, which may be empty.
fn free(field: &Value) -> Value {
    serde_json::from_str(text(&field["default"])).unwrap_or(Value::Null)
}

/// Every record that is written out in a schema, by its name.
fn collect(schema: &Value, into: &mut BTreeMap<String, Value>) {
    match schema {
        Value::Object(map) => {
            if map.get("type") == Some(&json!("record")) {
                into.entry(local(text(&map["name"])).to_owned())
                    .or_insert_with(|| schema.clone());
            }
            map.values().for_each(|value| collect(value, into));
        }
        Value::Array(list) => list.iter().for_each(|value| collect(value, into)),
        _ => {}
    }
}

/// A schema with every record written out where it first stands, from its own definition, and named afterwards.
fn written_out(
    schema: &Value,
    own: &BTreeMap<String, Value>,
    seen: &mut BTreeSet<String>,
) -> Value {
    let named = |text: &str| own.contains_key(local(text)) && text.starts_with("threadgraph.");
    match schema {
        Value::String(name) if named(name) => record(local(name), own, seen),
        Value::Object(map) if map.get("type") == Some(&json!("record")) => {
            record(local(text(&map["name"])), own, seen)
        }
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (key.clone(), written_out(value, own, seen)))
            .collect(),
        Value::Array(list) => list
            .iter()
            .map(|value| written_out(value, own, seen))
            .collect(),
        other => other.clone(),
    }
}

fn record(name: &str, own: &BTreeMap<String, Value>, seen: &mut BTreeSet<String>) -> Value {
    if !seen.insert(name.to_owned()) {
        return json!(format!("threadgraph.{name}"));
    }
    let mut whole = own[name].clone();
    if let Some(fields) = whole["fields"].as_array_mut() {
        for field in fields {
            field["type"] = written_out(&field["type"], own, seen);
        }
    }
    whole
}

fn local(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn shown(schema: &Value) -> String {
    let mut out = Vec::new();
    let mut writer = Serializer::with_formatter(&mut out, PrettyFormatter::with_indent(b" "));
    serde::Serialize::serialize(schema, &mut writer).expect("JSON");
    String::from_utf8(out).expect("UTF-8") + "\n"
}

fn files() -> BTreeMap<String, (PathBuf, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("avro");
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        let name = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let text = std::fs::read_to_string(&path).expect("a file");
        files.insert(name, (path, text));
    }
    files
}

#[test]
fn schema_files_are_what_is_generated() {
    let files = files();
    let mut own = BTreeMap::new();
    let mut shared = BTreeMap::new();
    for (name, (_, text)) in &files {
        let schema: Value = serde_json::from_str(text).expect("a schema is JSON");
        assert_eq!(
            schema["name"],
            json!(name),
            "a file is called as its record"
        );
        collect(&schema, &mut shared);
        own.insert(name.clone(), schema);
    }
    // Records that are no message of their own (terms, triples, errors) are written where they first stand.
    for (name, schema) in shared {
        own.entry(name).or_insert(schema);
    }
    let mut stale = Vec::new();
    for (name, (path, text)) in &files {
        let made = shown(&record(name, &own, &mut BTreeSet::new()));
        if made.trim_end() == text.trim_end() {
            continue;
        }
        match std::env::var_os("UPDATE") {
            Some(_) => std::fs::write(path, made).expect("written"),
            None => stale.push(name.as_str()),
        }
    }
    assert!(
        stale.is_empty(),
        "not as generated (UPDATE=1 writes them): {}",
        stale.join(", ")
    );
}

#[test]
fn what_a_type_does_not_say_is_noticed() {
    let own = BTreeMap::from([
        (
            "A".to_owned(),
            json!({"type": "record", "name": "A", "fields": [{"name": "b", "type": "threadgraph.B"},
            {"name": "c", "type": ["null", "threadgraph.B"]}]}),
        ),
        (
            "B".to_owned(),
            json!({"type": "record", "name": "B", "fields": [{"name": "d", "type": "long"}]}),
        ),
    ]);
    let made = record("A", &own, &mut BTreeSet::new());
    assert_eq!(made["fields"][0]["type"], own["B"]);
    assert_eq!(made["fields"][1]["type"][1], json!("threadgraph.B"));
    assert_eq!(sample(&made, &own), json!({"b": {"d": 7}, "c": {"d": 7}}));
}
