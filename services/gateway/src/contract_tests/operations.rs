//! The description of operations as types, made from the types: the generated sections of `specs/api/openapi.yaml` are what
//! this writes. `UPDATE=1 cargo test -p tg-gateway operations_are_described` writes them.

use std::path::Path;

use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};
use tg_schemas::operations::{
    ALL, Effect, FailureCode, Field, Form, Meta, Operation, SESSIONS, TENANT, Visit, WORKSPACE,
    visit,
};

use super::OPENAPI;
use crate::paths::is_of_turn;

/// What the generated sections stand between, by what they hold.
const BEGIN: &str = "  # Generated from schemas/src/operations, ";
const END: &str = "  # End of what is generated, ";
/// Name of the schema of a failure.
const FAILURE: &str = "OperationFailure";

/// Adds the paths of operations, and collects the schemas that they name.
struct Emitter {
    schemas: SchemaGenerator,
    paths: Map<String, Value>,
}

impl Emitter {
    fn new() -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        Self {
            schemas: settings.into_generator(),
            paths: Map::new(),
        }
    }
}

/// A parameter of a route.
fn parameter(place: &str, name: &str, form: Form, required: bool) -> Value {
    let kind = match form {
        Form::Text => "string",
        Form::Whole => "integer",
        Form::Flag => "boolean",
    };
    json!({"name": name, "in": place, "required": required, "schema": {"type": kind}})
}

/// What a client says of a stream of events that it may leave, and by which it joins the stream again.
fn of_stream(meta: &Meta) -> [Value; 2] {
    let words: &[&str] = match is_of_turn(meta.stream) {
        // The turn continues in any case.
        true => &["detach"],
        false => &["cancel", "detach"],
    };
    [
        json!({
            "name": "X-On-Disconnect",
            "in": "header",
            "required": false,
            "description": "With `detach` the events have an id, and the stream can be joined again.",
            "schema": {"type": "string", "enum": words},
        }),
        json!({"$ref": "#/components/parameters/LastEvent"}),
    ]
}

fn parameters(meta: &Meta) -> Vec<Value> {
    let of_workspace = meta.path.contains("{workspace}").then_some(WORKSPACE);
    let in_path = of_workspace.into_iter().chain(meta.path_fields());
    let in_path = in_path.map(|name| parameter("path", name, Form::Text, true));
    let of = |place: &'static str| move |one: &Field| parameter(place, one.name, one.form, false);
    let tenant = parameter("header", TENANT, Form::Text, false);
    let tenant = of_workspace.is_none().then_some(tenant);
    in_path
        .chain(meta.headers.iter().map(of("header")))
        .chain(tenant)
        .chain(meta.query.iter().map(of("query")))
        .collect()
}

pub(super) fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::Read => "read",
        Effect::Write => "write",
        Effect::Confirm => "confirm",
    }
}

/// What all operations may answer instead of their reply.
fn failed() -> Value {
    let schema = json!({"$ref": format!("#/components/schemas/{FAILURE}")});
    json!({"description": "Why it was not done.", "content": {"application/json": {"schema": schema}}})
}

impl Visit for Emitter {
    fn visit<O: Operation>(&mut self) {
        let meta = O::META;
        let request = self.schemas.subschema_for::<O::Request>();
        let reply = self.schemas.subschema_for::<O::Reply>();
        let mut done = json!({"description": "Done."});
        if meta.status != 204 {
            done["content"] = json!({"application/json": {"schema": reply}});
        }
        let mut described = json!({
            "operationId": meta.name,
            "x-capability": meta.capability,
            "x-effect": effect(meta.effect),
            "x-since": meta.since,
            "tags": ["agents"],
            "summary": meta.summary,
            "parameters": parameters(&meta),
            "responses": {meta.status.to_string(): done, "default": failed()},
        });
        if matches!(meta.method, "POST" | "PATCH" | "PUT") {
            // The path and headers say the rest of it.
            let content = json!({"application/json": {"schema": request}});
            described["requestBody"] = json!({"required": false, "content": content});
        }
        if !meta.stream.is_empty() {
            let mut streamed = described.clone();
            streamed["operationId"] = format!("{}-stream", meta.name).into();
            if let Some(parameters) = streamed["parameters"].as_array_mut() {
                parameters.extend(of_stream(&meta));
            }
            let events = json!({"text/event-stream": {"schema": {"type": "string"}}});
            let done = json!({"description": "What happens, as events.", "content": events});
            streamed["responses"] = json!({"200": done, "default": failed()});
            let path = self.paths.entry(meta.stream).or_insert_with(|| json!({}));
            path[meta.method.to_lowercase()] = streamed;
        }
        let path = self.paths.entry(meta.path).or_insert_with(|| json!({}));
        path[meta.method.to_lowercase()] = described;
    }
}

/// The same operations by their names, over `/api/v1` and the socket.
fn by_name() -> Value {
    let mut names: Map<String, Value> = Map::new();
    for meta in ALL.iter().filter(|meta| meta.service == SESSIONS) {
        let listed = names.entry(meta.capability).or_insert_with(|| json!([]));
        if let Some(listed) = listed.as_array_mut() {
            listed.push(meta.name.into());
        }
    }
    let all: Vec<&str> = ALL.iter().map(|meta| meta.name).collect();
    let request = json!({
        "type": "object",
        "required": ["operation"],
        "description": "The name of an operation, and its request as the route of the operation has it.",
        "properties": {
            "operation": {"type": "string", "enum": all},
            "workspace": {"$ref": "#/components/schemas/WorkspaceName"},
        },
    });
    let reply = json!({
        "type": "object",
        "description": "`result` as the route of the operation answers it, or `error`.",
        "properties": {"result": {"type": "object"}, "error": {"type": "object"}},
    });
    json!({"post": {
        "operationId": "sessions",
        "x-operations": names,
        "tags": ["agents"],
        "summary": "Agents and sessions, by the name of the operation.",
        "requestBody": {"required": true, "content": {"application/json": {"schema": request}}},
        "responses": refused_before(json!({
            "description": "The result, or why there is none.",
            "content": {"application/json": {"schema": reply}},
        })),
    }})
}

/// The answer of a service below `/api/v1`, and what is refused before it is asked.
fn refused_before(answered: Value) -> Value {
    let of = |name: &str| json!({"$ref": format!("#/components/responses/{name}")});
    json!({
        "200": answered, "400": of("Malformed"), "401": of("Unknown"), "403": of("Denied"),
        "404": of("NoWorkspace"), "413": of("TooLarge"), "429": of("Paced"),
    })
}

fn failure() -> Value {
    let codes: Vec<&str> = FailureCode::all().map(FailureCode::as_str).collect();
    json!({
        "type": "object",
        "required": ["error"],
        "description": "Why an operation was not done.",
        "properties": {
            "error": {
                "type": "object",
                "required": ["code", "message"],
                "properties": {
                    "code": {"type": "string", "enum": codes},
                    "message": {"type": "string"},
                    "request_id": {"type": "string"},
                    "requestId": {"type": "string"},
                },
            },
            "successor_session_id": {
                "type": "string",
                "description": "The session in which an archived one continues.",
            },
        },
    })
}

/// A section of the document: its entries two or four spaces from the margin.
pub(super) fn section(name: &str, indent: usize, entries: &Map<String, Value>) -> String {
    let text = serde_yaml_ng::to_string(entries).unwrap();
    let margin = " ".repeat(indent);
    let lines = text.lines().map(|line| match line {
        "" => String::new(),
        line => format!("{margin}{line}"),
    });
    let lines: Vec<String> = lines.collect();
    format!("{BEGIN}{name}\n{}\n{END}{name}\n", lines.join("\n"))
}

/// The document with its generated sections as the types say.
fn whole(document: &str) -> String {
    let mut emitter = Emitter::new();
    visit(&mut emitter);
    emitter
        .paths
        .insert(format!("/api/v1/{SESSIONS}"), by_name());
    let mut schemas = emitter.schemas.take_definitions(true);
    schemas.insert(FAILURE.to_owned(), failure());
    let paths = section("paths", 2, &emitter.paths);
    let schemas = section("schemas", 4, &schemas);
    let document = replaced(document, "paths", &paths);
    replaced(&document, "schemas", &schemas)
}

pub(super) fn replaced(document: &str, name: &str, section: &str) -> String {
    let (begin, end) = (format!("{BEGIN}{name}\n"), format!("{END}{name}\n"));
    let from = document.find(&begin).expect("the section begins");
    let to = document.find(&end).expect("the section ends") + end.len();
    format!("{}{section}{}", &document[..from], &document[to..])
}

#[test]
fn operations_are_described_as_their_types_say() {
    let wanted = whole(OPENAPI);
    if std::env::var_os("UPDATE").is_some() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../specs/api/openapi.yaml");
        std::fs::write(file, &wanted).unwrap();
        return;
    }
    assert!(
        OPENAPI == wanted,
        "specs/api/openapi.yaml differs from the types: UPDATE=1 cargo test -p tg-gateway operations_are_described"
    );
}
