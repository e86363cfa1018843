//! Blueprints that must be refused, each for its reason and at its path.

use serde_json::{Value, json};

use super::super::catalog::Catalog;
use super::super::check::check;
use super::super::validation::MAX_FAULTS;

fn refused(name: &str, blueprint: &Value, catalog: &Catalog, path: &str, words: &str) {
    let faults = check(name, &blueprint.to_string(), catalog);
    let hit = faults
        .list()
        .iter()
        .any(|f| f.path == path && f.message.contains(words));
    assert!(hit, "wanted '{words}' at {path}, got {:?}", faults.list());
}

/// A sound blueprint to spoil.
fn sound() -> Value {
    json!({
        "flow": {
            "prompt:{id}": {"topics": {
                "request": "request:tg:prompt:{workspace}:{id}",
                "response": "response:tg:prompt:{workspace}:{id}",
            }},
            "triples-write:{id}": {"topics": {"input": "flow:tg:triples-store:{workspace}:{id}"}},
            "text-completion:{id}": {"topics": {}, "parameters": {"model": "{model}"}},
        },
        "blueprint": {},
        "interfaces": {
            "prompt": {
                "request": "request:tg:prompt:{workspace}:{id}",
                "response": "response:tg:prompt:{workspace}:{id}",
            },
        },
        "parameters": {"model": {"type": "llm-model"}},
    })
}

/// Replaces the value at a JSON pointer and expects the fault there, or at `path`.
fn spoilt(pointer: &str, value: Value, path: Option<&str>, words: &str) {
    let mut blueprint = sound();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let key = key.replace("~1", "/");
    blueprint.pointer_mut(parent).unwrap()[key] = value;
    refused(
        "b",
        &blueprint,
        &Catalog::default(),
        path.unwrap_or(pointer),
        words,
    );
}

const READ: &str = "/flow/triples-write:{id}/topics/input";
const ASKED: &str = "/flow/prompt:{id}/topics/request";

#[test]
fn the_sound_one_is_sound() {
    let faults = check("b", &sound().to_string(), &Catalog::default());
    assert!(faults.is_empty(), "{}", faults.text());
}

#[test]
fn topics_that_reach_too_far() {
    for (topic, words) in [
        (
            "flow:tg:triples-store:victim:default",
            "'{workspace}' is required",
        ),
        (
            "flow:tg:triples-store",
            "not the topic of a known global service",
        ),
        (
            "flow:tg:triples-store:{model}:{id}",
            "'{workspace}' is required",
        ),
        (
            "flow:tg:triples-store:x{workspace}:{id}",
            "must directly follow",
        ),
        (
            "flow:tg:triples-store:{workspace}",
            "two flows would both take",
        ),
        (
            "flow:tg:triples-store:{workspace}:{model}",
            "two flows would both take",
        ),
        ("flow:xx:triples-store:{workspace}:{id}", "second part"),
        ("request:tg:triples-store:{workspace}:{id}", "class 'flow'"),
        (
            "flow:tg:triples-store:{workspace}:{id}:{nothing}",
            "matches no parameter",
        ),
        ("triples-store", "must have the form"),
        ("flow:tg:a\u{0}b:{workspace}:{id}", "control characters"),
        ("request:tg:librarian:{workspace}", "class 'flow'"),
    ] {
        spoilt(READ, json!(topic), None, words);
    }
    for (topic, words) in [
        ("request:tg:librarian:{workspace}", "cannot replace"),
        ("request:tg:config", "cannot replace"),
        (
            "request:tg:agent:other:default",
            "'{workspace}' is required",
        ),
    ] {
        spoilt(ASKED, json!(topic), None, words);
    }
    // A spec that asks may use a service, but only the one that takes its message.
    let path = "/flow/prompt:{id}/topics/text-completion-request";
    spoilt(
        path,
        json!("request:tg:iam"),
        None,
        "does not take TextCompletionRequest",
    );
    spoilt(
        path,
        json!("request:tg:prompt:{workspace}:{id}"),
        Some(path),
        "carries PromptRequest",
    );
}

#[test]
fn names_that_do_not_fit() {
    let base = "x".repeat(60);
    let topic = format!("flow:tg:{base}:{{workspace}}:{{id}}");
    spoilt(READ, json!(topic), None, "255 is the most");
    let base = "x".repeat(300);
    spoilt(
        READ,
        json!(format!("flow:tg:{base}:{{workspace}}:{{id}}")),
        None,
        "255 is the most",
    );
}

#[test]
fn wrong_shapes() {
    for (pointer, value, words) in [
        ("/flow", json!([]), "must be an object"),
        (READ, json!(7), "must be a string"),
        (READ, Value::Null, "must be a string"),
        (
            "/flow/text-completion:{id}/parameters/model",
            json!({}),
            "must be a string",
        ),
        (
            "/flow/text-completion:{id}/parameters/model",
            json!("{x"),
            "'{' without a '}'",
        ),
        (
            "/flow/text-completion:{id}/parameters/model",
            json!("{who}"),
            "matches no parameter",
        ),
        ("/flow/nobody:{id}", json!({}), "unknown processor"),
        ("/flow/config-svc:{id}", json!({}), "outside of flows"),
        ("/flow/prompt:fixed", json!({}), "must be '{id}'"),
        ("/flow/prompt", json!({}), "must have the form"),
        ("/flow/a--b:{id}", json!({}), "single '-'"),
        (
            "/flow/prompt:{id}/topics/unheard",
            json!("flow:tg:x:{workspace}:{id}"),
            "no such spec",
        ),
        ("/interfaces/prompt", json!("x"), "must be an object"),
        (
            "/interfaces/prompt/request",
            json!("request:tg:agent:{workspace}:{id}"),
            "no processor",
        ),
        (
            "/interfaces/prompt/response",
            json!("response:tg:x:{workspace}:{id}"),
            "must be 'response:tg:prompt",
        ),
        ("/parameters/id", json!({}), "reserved"),
        ("/parameters/model", json!({"controlled-by": "nobody"}), ""),
    ] {
        let path = (pointer == "/parameters/model").then_some("/parameters/model/controlled-by");
        spoilt(pointer, value, path, words);
    }
    spoilt(
        "/interfaces/prompt",
        json!({"flow": "request:tg:prompt:{workspace}:{id}"}),
        Some("/interfaces/prompt/flow"),
        "class 'flow'",
    );
    spoilt(
        "/interfaces/prompt",
        json!({"flow": "flow:tg:librarian:{workspace}"}),
        None,
        "of the flow",
    );
    spoilt(
        "/parameters/model",
        json!({"controlled-by": "model"}),
        Some("/parameters/model/controlled-by"),
        "circular",
    );
    spoilt(
        "/blueprint/prompt-rag:{blueprint}",
        json!({"topics": {"request": "request:tg:prompt-rag:{workspace}:{id}"}}),
        Some("/blueprint/prompt-rag:{blueprint}/topics/request"),
        "not supported",
    );
    spoilt(
        "/blueprint/prompt-rag:{blueprint}",
        json!({"topics": {"request": "request:tg:prompt-rag:{workspace}"}}),
        Some("/blueprint/prompt-rag:{blueprint}/topics/request"),
        "'{blueprint}' must follow",
    );
    spoilt(
        "/flow/prompt-rag:{id}",
        json!({"topics": {"request": "request:tg:prompt:{workspace}:{id}"}}),
        Some("/flow/prompt-rag:{id}/topics/request"),
        "answers this topic already",
    );
}

#[test]
fn broken_documents() {
    let catalog = Catalog::default();
    for text in [
        "",
        "{",
        "[]",
        "null",
        "7",
        "\"x\"",
        "{\"flow\": 1e999}",
        "\u{0}\u{1}",
    ] {
        assert!(!check("b", text, &catalog).is_empty(), "{text}");
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(!check("b", &deep, &catalog).is_empty());
    let huge = format!("{{\"flow\":{{\"a\":\"{}\"}}}}", "x".repeat(2 << 20));
    assert!(!check("b", &huge, &catalog).is_empty());
    let many: serde_json::Map<String, Value> = (0..200)
        .map(|n| (format!("nobody{n}:{{id}}"), json!({})))
        .collect();
    let faults = check("b", &json!({ "flow": many }).to_string(), &catalog);
    assert_eq!(faults.list().len(), MAX_FAULTS, "the list is bounded");
    for name in ["", "a\nb"] {
        refused(name, &sound(), &catalog, "/", "name");
    }
}

#[test]
fn a_row_or_a_shared_mesh_lets_unknown_processors_in() {
    let mut blueprint = sound();
    blueprint["flow"]["mine:{id}"] = json!({"topics": {"in": "flow:tg:mine:{workspace}:{id}"}});
    let path = "/flow/mine:{id}";
    refused(
        "b",
        &blueprint,
        &Catalog::default(),
        path,
        "unknown processor",
    );
    let row = r#"{"specs":[{"name":"in","role":"reads","message":"Chunk"}]}"#;
    for catalog in [Catalog::new([("mine", row)], false), Catalog::new([], true)] {
        let faults = check("b", &blueprint.to_string(), &catalog);
        assert!(faults.is_empty(), "{}", faults.text());
    }
    blueprint["flow"]["mine:{id}"]["topics"]["in"] = json!("request:tg:mine:{workspace}:{id}");
    let catalog = Catalog::new([("mine", row)], false);
    refused(
        "b",
        &blueprint,
        &catalog,
        "/flow/mine:{id}/topics/in",
        "class 'flow'",
    );
    // Also where anything goes, nothing reaches another workspace.
    blueprint["flow"]["mine:{id}"]["topics"]["in"] = json!("request:tg:agent:victim:default");
    refused(
        "b",
        &blueprint,
        &Catalog::new([], true),
        "/flow/mine:{id}/topics/in",
        "is required",
    );
}
