//! Operations as requests on the socket and on the bus, made from their types: the generated section of `specs/api/asyncapi.yaml` is
//! what this writes. `UPDATE=1 cargo test -p tg-gateway requests_are_described` writes it.

use std::path::Path;

use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};
use tg_schemas::operations::{Operation, SESSIONS, Visit, visit};

use super::operations::{effect, replaced, section};
use super::{ASYNCAPI, OPENAPI, document, object};

/// What the generated section holds.
const NAME: &str = "requests";
/// Where the types of requests and replies are described.
const TYPES: &str = "#/components/schemas/";

/// Collects the requests of operations.
struct Requests {
    types: SchemaGenerator,
    described: Map<String, Value>,
}

fn name_of(operation: &str) -> String {
    format!("{SESSIONS}.{operation}")
}

impl Visit for Requests {
    fn visit<O: Operation>(&mut self) {
        let meta = O::META;
        let request = json!(self.types.subschema_for::<O::Request>());
        let reply = json!(self.types.subschema_for::<O::Reply>());
        let mut own = json!({
            "type": "object",
            "required": ["operation"],
            "properties": {"operation": {"const": meta.name}},
        });
        if !meta.stream.is_empty() {
            own["properties"]["streaming"] = json!({"type": "boolean"});
        }
        let described = json!({
            "description": meta.summary,
            "x-capability": meta.capability,
            "x-effect": effect(meta.effect),
            "x-since": meta.since,
            "x-streams": !meta.stream.is_empty(),
            "x-result": reply["$ref"],
            "allOf": [own, request],
        });
        self.described.insert(name_of(meta.name), described);
    }
}

/// The frame that has one of the requests, and a part of its answer.
fn frames(requests: &Map<String, Value>) -> Map<String, Value> {
    let refs = requests.keys();
    let refs: Vec<Value> = refs
        .map(|name| json!({"$ref": format!("{TYPES}{name}")}))
        .collect();
    let request = json!({
        "type": "object",
        "description": "A request of the service `sessions`. On the bus its body is `request`.",
        "required": ["id", "service", "request"],
        "properties": {
            "id": {},
            "service": {"const": SESSIONS},
            "workspace": {"type": "string"},
            "request": {"oneOf": refs},
        },
    });
    let part = json!({
        "type": "object",
        "description": "The `response` of a part. With `streaming` each part is an event, and the last one has the result in `data`.",
        "properties": {
            "result": {"type": "object"},
            "error": {"type": "object"},
            "event": {"type": "string"},
            "data": {"type": "object"},
        },
    });
    let frames = [("SessionsRequest", request), ("SessionsResponse", part)];
    let frames = frames.map(|(name, described)| (name.to_owned(), described));
    frames.into_iter().collect()
}

/// All that is generated.
fn schemas() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut requests = Requests {
        types: settings.into_generator(),
        described: Map::new(),
    };
    visit(&mut requests);
    let mut all = frames(&requests.described);
    all.extend(requests.described);
    // The description is whole without the other one.
    all.extend(requests.types.take_definitions(true));
    all
}

#[test]
fn requests_are_described_as_their_types_say() {
    let entries = Map::from_iter([("schemas".to_owned(), Value::Object(schemas()))]);
    let wanted = replaced(ASYNCAPI, NAME, &section(NAME, 2, &entries));
    if std::env::var_os("UPDATE").is_some() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../specs/api/asyncapi.yaml");
        std::fs::write(file, &wanted).unwrap();
        return;
    }
    assert!(
        ASYNCAPI == wanted,
        "specs/api/asyncapi.yaml differs from the types: UPDATE=1 cargo test -p tg-gateway requests_are_described"
    );
}

/// What the requests name is described, and alike in both descriptions.
#[test]
fn what_requests_name_is_described_as_for_routes() {
    let openapi = document(OPENAPI);
    let types = object(&openapi, "/components/schemas");
    let all = schemas();
    let mut named = 0;
    for (name, described) in &all {
        let request = described.pointer("/allOf/1/$ref").and_then(Value::as_str);
        let result = described.get("x-result").and_then(Value::as_str);
        for place in [request, result].into_iter().flatten() {
            let known = place.strip_prefix(TYPES).unwrap_or_default();
            assert!(types.contains_key(known), "{name}: {place}");
            assert_eq!(types.get(known), all.get(known), "{name}: {place}");
            named += 1;
        }
    }
    assert!(named > 70, "{named}");
}
