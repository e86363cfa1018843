//! The fields of the description and those of the code: what a request may have is what is looked at, what a reply may
//! have is what is written, of the types that are described.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::schema::{Schemas, message};
use super::translators::{self, Translator};
use super::{FLOW_SERVICE, OPENAPI, document, object};
use crate::engine::translate::agent::Summary;
use crate::registry;

/// Kinds that foreign processors serve: what they take and say is theirs.
const FOREIGN: [&str; 3] = ["cloze", "decision-scoring", "field-extraction"];

/// What the gateway reads or writes beside the translators.
const BESIDE: [&str; 6] = [
    "blob-parts",
    "explainable",
    "operation",
    "streaming",
    "workspace",
    "user.workspace",
];

/// What the flow service says in the one text that it has.
const IN_THE_TEXT: [&str; 10] = [
    "already-running",
    "doctor",
    "faults",
    "processors",
    "put-aside",
    "receipt",
    "status",
    "unused-parameters",
    "waiting-for",
    "why",
];

/// Every service and kind, with its path.
fn services() -> Vec<(&'static str, String)> {
    let own = registry::all_services();
    // The gateway answers these itself.
    let own = own.filter(|name| !["requests", registry::ANSWERS].contains(name));
    // What it takes and answers is described by the types themselves.
    let own = own.filter(|name| *name != registry::SESSIONS);
    let own = own.map(|name| (name, format!("/api/v1/{name}")));
    let kinds = registry::all_kinds().map(|kind| kind.name);
    let kinds = kinds.filter(|name| !FOREIGN.contains(name));
    let kinds = kinds.map(|name| (name, FLOW_SERVICE.replace("{kind}", name)));
    own.chain(kinds).collect()
}

fn operations(service: &str) -> Vec<&'static str> {
    let own = registry::all_operations().filter(|row| row.0 == service);
    let own: Vec<_> = own.map(|row| row.1).collect();
    match own.is_empty() {
        true => vec![""],
        false => own,
    }
}

fn request<'a>(openapi: &'a Value, path: &str) -> &'a Value {
    let post = &object(openapi, "/paths")[path]["post"];
    post.pointer("/requestBody/content/application~1json/schema")
        .unwrap()
}

fn reply<'a>(openapi: &'a Value, schemas: &Schemas<'a>, path: &str) -> &'a Value {
    let response = &object(openapi, "/paths")[path]["post"]["responses"]["200"];
    let response = schemas.resolved(response);
    let schema = response
        .pointer("/content/application~1json/schema")
        .unwrap();
    schema["anyOf"].as_array().unwrap().last().unwrap()
}

/// A body, and bodies that lack one of its keys: a translator that finds one key looks for no other.
fn bodies(whole: &Map<String, Value>) -> Vec<Map<String, Value>> {
    let without = whole.keys().map(|key| {
        let mut body = whole.clone();
        body.remove(key);
        body
    });
    let mut older = Value::Object(whole.clone());
    forget(&mut older, "vector");
    let older = older.as_object().cloned().into_iter();
    let all = std::iter::once(whole.clone()).chain(without);
    all.chain(older).collect()
}

/// Takes a key out, however deep.
fn forget(value: &mut Value, key: &str) {
    match value {
        Value::Object(object) => {
            object.remove(key);
            object.values_mut().for_each(|inner| forget(inner, key));
        }
        Value::Array(items) => items.iter_mut().for_each(|inner| forget(inner, key)),
        _ => {}
    }
}

#[test]
fn a_request_is_described_with_what_is_read_of_it() {
    let openapi = document(OPENAPI);
    let schemas = Schemas(&openapi);
    for (name, path) in services() {
        let schema = request(&openapi, &path);
        let described = schemas.paths(schema);
        let mut sample = schemas.sample(schema);
        sample["vector"] = json!([1.0]);
        let translator = translators::of(name);
        let mut looked = BTreeSet::new();
        for body in bodies(sample.as_object().unwrap()) {
            for operation in operations(name) {
                looked.extend(translator.looks_at(&body, operation));
            }
        }
        let taken_whole = |path: &str| {
            let stars = looked.iter().filter_map(|one| one.strip_suffix('*'));
            stars.into_iter().any(|within| path.starts_with(within))
        };
        for path in &described {
            let known = looked.contains(path) || BESIDE.contains(&path.as_str());
            // Terms, and what has rules of its own, are read in one piece.
            let within = looked.iter().any(|one| {
                path.starts_with(&format!("{one}.")) || path.starts_with(&format!("{one}[]."))
            });
            let deeper = looked.iter().any(|one| is_below(one, parent(path)));
            assert!(
                known || taken_whole(path) || (within && !deeper),
                "{name}: nobody reads {path}"
            );
        }
        for path in looked.iter().filter(|path| !path.ends_with('*')) {
            assert!(described.contains(path), "{name}: {path} is not described");
        }
    }
}

/// The object that holds a key, as a prefix.
fn parent(path: &str) -> &str {
    path.rfind('.').map_or("", |at| &path[..=at])
}

fn is_below(path: &str, prefix: &str) -> bool {
    !prefix.is_empty() && path.starts_with(prefix)
}

#[test]
fn every_example_of_a_request_fits_its_schema() {
    let openapi = document(OPENAPI);
    let schemas = Schemas(&openapi);
    for (name, path) in services() {
        let post = &object(&openapi, "/paths")[&path]["post"];
        let pointer = "/requestBody/content/application~1json/examples";
        let examples = post.pointer(pointer).and_then(Value::as_object);
        for (example, value) in examples.into_iter().flatten() {
            let misfit = schemas.misfit(request(&openapi, &path), &value["value"], "");
            assert_eq!(misfit, None, "{name}: {example}");
        }
    }
}

/// Answers with one field filled, and with all.
fn answers(translator: &Translator) -> Vec<Value> {
    let whole = message(translator.answer);
    let fields = whole.as_object().unwrap();
    let one = fields.iter().map(|(key, value)| json!({ key: value }));
    let mut answers: Vec<Value> = one.chain([json!({}), whole.clone()]).collect();
    for kind in ["ask", "construct", "select"] {
        if fields.contains_key("query_type") {
            let mut answer = whole.clone();
            answer["query_type"] = json!(kind);
            answers.push(answer);
        }
    }
    answers
}

#[test]
fn a_reply_is_described_with_what_is_written_and_of_what_type() {
    let openapi = document(OPENAPI);
    let schemas = Schemas(&openapi);
    for (name, path) in services() {
        let schema = reply(&openapi, &schemas, &path);
        let translator = translators::of(name);
        let mut written = BTreeSet::new();
        for answer in answers(&translator) {
            for operation in operations(name) {
                let mut shown = translator.shows(answer.clone(), operation);
                if name == "agent" {
                    shown = Summary::default().finish(shown);
                }
                let misfit = schemas.misfit(schema, &Value::Object(shown.clone()), "");
                assert_eq!(misfit, None, "{name} {operation}");
                add_paths(&Value::Object(shown), "", &mut written);
            }
        }
        for path in schemas.paths(schema) {
            let own = name == "flow" && IN_THE_TEXT.iter().any(|key| path.starts_with(key));
            let term = written
                .iter()
                .any(|one| path.starts_with(one) && one.ends_with(".t"));
            let known = written.contains(&path) || own || path == "warnings";
            assert!(
                known || term || is_of_a_term(&path),
                "{name}: nobody writes {path}"
            );
        }
    }
}

/// Keys below a term are those of its kind alone.
fn is_of_a_term(path: &str) -> bool {
    let terms = ["s", "p", "o", "entity", "values[]"];
    let within =
        |name: &str| path.contains(&format!(".{name}.")) || path.starts_with(&format!("{name}."));
    terms.iter().any(|name| within(name)) || path.ends_with("].g") || path.ends_with(".vectors")
}

fn add_paths(value: &Value, at: &str, paths: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, inner) in object {
                paths.insert(format!("{at}{key}"));
                add_paths(inner, &format!("{at}{key}."), paths);
            }
        }
        Value::Array(items) => {
            let at = format!("{}[].", at.trim_end_matches('.'));
            items.iter().for_each(|item| add_paths(item, &at, paths));
        }
        _ => {}
    }
}
