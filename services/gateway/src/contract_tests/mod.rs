//! The written contract (`specs/api`) and the code, held against each other: every route is in it and
//! nothing else, every example of a request is accepted.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use tg_schemas::Error;

use crate::call::Target;
use crate::engine::mcp::tools::TOOLS;
use crate::engine::translate::Body;
use crate::engine::translate::bulk::{BulkKind, Record};
use crate::handlers::mcp_target::target;
use crate::handlers::socket_frame;
use crate::registry::{self, Gate};
use crate::routes::ROUTES;

mod fields;
mod operations;
mod requests;
mod schema;
mod sockets;
mod translators;

const OPENAPI: &str = include_str!("../../../../specs/api/openapi.yaml");
const ASYNCAPI: &str = include_str!("../../../../specs/api/asyncapi.yaml");

/// Path of a kind of flow service.
const FLOW_SERVICE: &str = "/api/v1/flow/{flow}/service/{kind}";

fn document(text: &str) -> Value {
    serde_yaml_ng::from_str(text).unwrap()
}

fn object<'a>(value: &'a Value, pointer: &str) -> &'a Map<String, Value> {
    value
        .pointer(pointer)
        .and_then(Value::as_object)
        .unwrap_or_else(|| panic!("nothing at {pointer}"))
}

#[test]
fn every_route_is_described_and_nothing_else() {
    let openapi = document(OPENAPI);
    let mut described = BTreeSet::new();
    for (path, methods) in object(&openapi, "/paths") {
        for method in methods.as_object().unwrap().keys() {
            described.insert((method.to_uppercase(), path.clone()));
        }
    }
    let served: BTreeSet<_> = ROUTES
        .iter()
        .flat_map(|route| {
            let paths = named(&route.path.replace("{*", "{"));
            paths.map(|path| (route.method.to_owned(), path))
        })
        .collect();
    assert_eq!(served, described);
}

/// The paths of a route: where it has a service or kind of a table, one for each, so that each has types of its own.
fn named(path: &str) -> impl Iterator<Item = String> + use<> {
    let names: Vec<&str> = match path {
        "/api/v1/{kind}" => registry::all_services().collect(),
        FLOW_SERVICE => registry::all_kinds().map(|kind| kind.name).collect(),
        _ => vec![""],
    };
    let path = path.to_owned();
    names.into_iter().map(move |name| match name {
        "" => path.clone(),
        name => path.replace("{kind}", name),
    })
}

/// Each code that a endpoint closes a socket with is in the description, and no other.
#[test]
fn every_close_code_is_described() {
    let asyncapi = document(ASYNCAPI);
    // Closed over what comes, whatever it is for.
    let over_frames = include_str!("../handlers/narrow.rs");
    let over_frames = over_frames.split("#[cfg(test)]").next().unwrap_or_default();
    let endpoints = [
        (
            "socket",
            include_str!("../handlers/socket.rs").to_owned() + over_frames,
        ),
        (
            "import",
            include_str!("../handlers/import.rs").to_owned() + over_frames,
        ),
        ("export", include_str!("../handlers/export.rs").to_owned()),
    ];
    for (endpoint, code) in endpoints {
        let named = [
            (1000, "CloseCode::Normal"),
            (1001, "CloseCode::Away"),
            (1007, "CloseCode::Invalid"),
            (1008, "CloseCode::Policy"),
            (1009, "CloseCode::Size"),
            (1011, "CloseCode::Error"),
            (1013, "CloseCode::Again"),
        ];
        let closes = named.iter().filter(|(_, name)| code.contains(name));
        let closes: BTreeSet<String> = closes.map(|(code, _)| code.to_string()).collect();
        let described = object(&asyncapi, &format!("/x-close-codes/{endpoint}"));
        let described: BTreeSet<String> = described.keys().cloned().collect();
        assert_eq!(closes, described, "{endpoint}");
    }
}

/// Reads a body as the service would.
fn translate(service: &str, body: &Body) -> Result<(), Error> {
    let operation = body.get("operation").and_then(Value::as_str);
    translators::of(service).reads(body, operation.unwrap_or_default())
}

#[test]
fn every_example_of_a_request_is_accepted() {
    let openapi = document(OPENAPI);
    let mut seen = 0;
    for (path, methods) in object(&openapi, "/paths") {
        let pointer = "/post/requestBody/content/application~1json/examples";
        let Some(Value::Object(examples)) = methods.pointer(pointer) else {
            continue;
        };
        for (name, example) in examples {
            let body = example["value"].as_object().unwrap();
            let service = name.split('.').next().unwrap();
            translate(service, body).unwrap_or_else(|error| panic!("{path} {name}: {error}"));
            let known = if path.contains("/flow/") {
                service == "thru" || Target::kind(service, "default").is_ok()
            } else if path.contains("/auth/") {
                service == "iam"
            } else {
                Target::service(service, body).is_ok()
            };
            assert!(known, "{path} {name}");
            seen += 1;
        }
    }
    assert!(seen > 30, "only {seen} examples were found");
}

#[test]
fn every_frame_of_a_client_is_accepted() {
    let asyncapi = document(ASYNCAPI);
    for (message, read) in [
        ("auth", as_frame as fn(&Body) -> Result<(), Error>),
        ("request", as_frame),
        ("cancel", as_frame),
        ("triples", |body| frame(BulkKind::Triples, body)),
        ("graphEmbeddings", |body| {
            frame(BulkKind::GraphEmbeddings, body)
        }),
        ("documentEmbeddings", |body| {
            frame(BulkKind::DocumentEmbeddings, body)
        }),
        ("entityContexts", |body| {
            frame(BulkKind::EntityContexts, body)
        }),
        ("rows", |body| frame(BulkKind::Rows, body)),
    ] {
        let pointer = format!("/components/messages/{message}/examples");
        let examples = asyncapi.pointer(&pointer).and_then(Value::as_array);
        let examples = examples.unwrap_or_else(|| panic!("{message} has no examples"));
        for example in examples {
            let body = example["payload"].as_object().unwrap();
            read(body).unwrap_or_else(|error| panic!("{message} {}: {error}", example["name"]));
        }
    }
}

fn frame(kind: BulkKind, body: &Body) -> Result<(), Error> {
    Record::read(kind, body).map(drop)
}

#[test]
fn every_line_of_an_import_is_accepted_and_every_kind_has_one() {
    let openapi = document(OPENAPI);
    let pointer = "/paths/~1api~1v1~1flow~1{flow}~1import~1{kind}/post/requestBody/content/application~1x-ndjson/examples";
    let examples = object(&openapi, pointer);
    for kind in BulkKind::ALL {
        let example = &examples[kind.name()]["value"];
        for line in example.as_str().unwrap().lines() {
            let line: Value = serde_json::from_slice(line.as_bytes()).unwrap();
            frame(kind, line.as_object().unwrap()).unwrap();
        }
    }
    assert_eq!(examples.len(), BulkKind::ALL.len());
    let parameters = object(&openapi, "/components/parameters/ImportKind/schema");
    let described = parameters["enum"].as_array().unwrap().iter();
    let described: BTreeSet<_> = described.map(|kind| kind.as_str().unwrap()).collect();
    let served: BTreeSet<_> = registry::IMPORTS.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(served, described);
}

#[test]
fn every_operation_is_described_with_its_capability_and_nothing_else() {
    let openapi = document(OPENAPI);
    let mut described = BTreeSet::new();
    for (path, methods) in object(&openapi, "/paths") {
        let Some(gates) = methods.pointer("/post/x-operations") else {
            continue;
        };
        let service = path.trim_start_matches("/api/v1/").to_owned();
        for (gate, operations) in gates.as_object().unwrap() {
            for operation in operations.as_array().unwrap() {
                let operation = operation.as_str().unwrap().to_owned();
                described.insert((service.clone(), operation, gate.clone()));
            }
        }
    }
    let served: BTreeSet<_> = registry::all_operations()
        .map(|(service, operation, gate)| {
            (
                service.to_owned(),
                operation.to_owned(),
                text(gate).to_owned(),
            )
        })
        .collect();
    assert_eq!(served, described);
}

#[test]
fn every_kind_is_described_with_its_capability_and_has_an_example() {
    let openapi = document(OPENAPI);
    for kind in registry::all_kinds() {
        let path = FLOW_SERVICE.replace("{kind}", kind.name);
        let described = object(&openapi, "/paths")[&path]["post"]
            .as_object()
            .unwrap();
        assert_eq!(described["x-capability"], text(kind.gate), "{path}");
        let examples = described["requestBody"].pointer("/content/application~1json/examples");
        let examples = examples.and_then(Value::as_object).unwrap();
        assert!(examples.contains_key(kind.name), "{path}");
    }
}

#[test]
fn every_tool_is_described_with_its_capability_and_nothing_else() {
    let openapi = document(OPENAPI);
    let described: BTreeSet<_> = object(&openapi, "/paths/~1mcp/post/x-tools")
        .iter()
        .flat_map(|(gate, tools)| {
            let tools = tools.as_array().unwrap().iter();
            tools.map(move |tool| (tool.as_str().unwrap().to_owned(), gate.clone()))
        })
        .collect();
    let served: BTreeSet<_> = TOOLS
        .iter()
        .map(|tool| {
            let target = target(tool, "f").unwrap_or_else(|_| panic!("{}", tool.name));
            (tool.name.to_owned(), text(target.gate()).to_owned())
        })
        .collect();
    assert_eq!(served, described);
}

fn text(gate: Gate) -> &'static str {
    match gate {
        Gate::Public => "public",
        Gate::Authenticated => "authenticated",
        Gate::Needs(capability) => capability,
    }
}

fn as_frame(body: &Body) -> Result<(), Error> {
    let text = Value::Object(body.clone()).to_string();
    match socket_frame::parse(text.as_bytes(), true) {
        Ok(socket_frame::Incoming::Ask(_)) => {
            let question = socket_frame::question(text.as_bytes());
            let question = question.map_err(|fault| fault.error())?;
            translate(question.target.name(), &question.body)
        }
        Ok(_) => Ok(()),
        Err(refused) => Err(refused.fault.error()),
    }
}
