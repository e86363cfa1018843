//! The written contract (`specs/api`) and the code, held against each other: every route is in it and
//! nothing else, every example of a request is accepted.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use tg_schemas::Error;

use crate::dispatch::Target;
use crate::doors::socket_frame;
use crate::registry;
use crate::routes::ROUTES;
use crate::translate::{
    About, Body, Fields, Translate, agent, collection, completion, config, flow, generic, iam,
    librarian, load, passthrough, prompt, sparql, tool, triples,
};

const OPENAPI: &str = include_str!("../../../specs/api/openapi.yaml");
const ASYNCAPI: &str = include_str!("../../../specs/api/asyncapi.yaml");

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
        .map(|route| (route.method.to_owned(), route.path.replace("{*", "{")))
        .collect();
    assert_eq!(served, described);
}

#[test]
fn every_socket_is_described() {
    let asyncapi = document(ASYNCAPI);
    for channel in object(&asyncapi, "/channels").values() {
        let address = channel["address"].as_str().unwrap();
        assert!(
            ROUTES
                .iter()
                .any(|route| route.method == "GET" && route.path == address),
            "{address}"
        );
    }
}

fn reads<T: Translate>(body: &Body, about: &About) -> Result<(), Error> {
    T::question(&Fields::new(body), about).map(drop)
}

/// Reads a body as the service would.
fn translate(service: &str, body: &Body) -> Result<(), Error> {
    let operation = body.get("operation").and_then(Value::as_str);
    let about = About {
        operation: operation.unwrap_or_default().to_owned(),
        kind: registry::flow_kind(service).map_or("", |kind| kind.name),
        ..About::default()
    };
    let read = match service {
        "iam" => reads::<iam::Iam>,
        "config" => reads::<config::Config>,
        "flow" => reads::<flow::Flow>,
        "librarian" => reads::<librarian::Librarian>,
        "collection-management" => reads::<collection::Collection>,
        "agent" => reads::<agent::Agent>,
        "text-completion" => reads::<completion::Completion>,
        "prompt" => reads::<prompt::Prompt>,
        "mcp-tool" => reads::<tool::Tool>,
        "triples" => reads::<triples::TriplesQuery>,
        "sparql" => reads::<sparql::Sparql>,
        "thru" => reads::<passthrough::Passthrough>,
        "text-load" => |body: &Body, about: &About| load::text(&Fields::new(body), about).map(drop),
        "document-load" => {
            |body: &Body, about: &About| load::document(&Fields::new(body), about).map(drop)
        }
        _ => reads::<generic::Generic>,
    };
    read(body, &about)
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
        ("batch", |body| triples::import_frame(body).map(drop)),
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

fn as_frame(body: &Body) -> Result<(), Error> {
    let text = Value::Object(body.clone()).to_string();
    match socket_frame::parse(text.as_bytes(), true) {
        Ok(socket_frame::Incoming::Ask(question)) => {
            translate(question.target.name(), &question.body)
        }
        Ok(_) => Ok(()),
        Err(refused) => Err(refused.fault.error()),
    }
}
