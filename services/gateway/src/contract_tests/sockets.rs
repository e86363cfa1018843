//! The description of the sockets and the code, both ways: which sockets there are, and what the gateway says on them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tg_schemas::msg::{
    DocumentEmbeddings, EntityContexts, ExtractedObject, GraphEmbeddings, Triples,
};
use tg_schemas::{Error, ErrorCode, Message};

use super::schema::{Schemas, message};
use super::{ASYNCAPI, OPENAPI, document, object};
use crate::ask::Part;
use crate::engine::translate::Body;
use crate::engine::translate::bulk::{self, BulkKind};
use crate::error::RequestError;
use crate::handlers::counts::Counts;
use crate::handlers::socket_frame as frame;
use crate::registry::EXPORTS;

/// Which routes answer with a socket is seen from outside: `what_upgrades_is_described_and_nothing_else` of the tests.
#[test]
fn every_socket_is_described_and_nothing_else() {
    let (openapi, asyncapi) = (document(OPENAPI), document(ASYNCAPI));
    let channels = object(&asyncapi, "/channels").values();
    let described: BTreeSet<&str> = channels
        .map(|channel| channel["address"].as_str().unwrap())
        .collect();
    let paths = object(&openapi, "/paths").iter();
    let upgraded: BTreeSet<&str> = paths
        .filter(|(_, methods)| methods.pointer("/get/responses/101").is_some())
        .map(|(path, _)| path.as_str())
        .collect();
    assert_eq!(upgraded, described);
}

/// Names of the messages that the gateway sends, by the operations of the description.
fn sent(asyncapi: &Value) -> BTreeSet<String> {
    let mut sent = BTreeSet::new();
    for operation in object(asyncapi, "/operations").values() {
        let messages = match operation["action"].as_str() {
            Some("send") => &operation["messages"],
            _ => &operation["reply"]["messages"],
        };
        for message in messages.as_array().into_iter().flatten() {
            let name = message["$ref"].as_str().unwrap().rsplit('/').next();
            sent.insert(name.unwrap().to_owned());
        }
    }
    sent
}

/// A record with something in every field.
fn full<M: Message>() -> M {
    let mut value = message(M::AVRO);
    value.as_object_mut().unwrap().remove("error");
    serde_json::from_value(value).unwrap()
}

fn exported(kind: BulkKind) -> Vec<Body> {
    match kind {
        BulkKind::Triples => [full(), Triples::default()]
            .iter()
            .map(bulk::show_triples)
            .collect(),
        BulkKind::GraphEmbeddings => [full(), GraphEmbeddings::default()]
            .iter()
            .map(bulk::show_graph_embeddings)
            .collect(),
        BulkKind::DocumentEmbeddings => [full(), DocumentEmbeddings::default()]
            .iter()
            .map(bulk::show_document_embeddings)
            .collect(),
        BulkKind::EntityContexts => [full(), EntityContexts::default()]
            .iter()
            .map(bulk::show_entity_contexts)
            .collect(),
        BulkKind::Rows => [full(), ExtractedObject::default()]
            .iter()
            .map(bulk::show_rows)
            .collect(),
    }
}

/// Every kind of frame that the gateway writes, made by what makes it, under the name that the description has for it.
fn frames() -> BTreeMap<&'static str, Vec<Value>> {
    let id = json!({"any": ["value", 1]});
    let fault = || Error::new(ErrorCode::Busy, "later");
    let body = |last| Part::Body {
        body: Body::from_iter([("content".to_owned(), json!("x"))]).into(),
        last,
        failed: false,
    };
    let part = |part| {
        let written = frame::part(&id, part, None);
        serde_json::from_slice::<Value>(written.as_bytes()).expect("JSON")
    };
    let mut frames = BTreeMap::from([
        ("authOk", vec![frame::auth_ok("default")]),
        ("authFailed", vec![frame::auth_failed()]),
        ("part", [false, true].map(|last| part(body(last))).into()),
        (
            "failure",
            vec![
                part(Part::Error(fault())),
                frame::failure(&id, &RequestError::AccessDenied),
                RequestError::NotAnObject.frame(None),
            ],
        ),
    ]);
    let counts = [Counts::default(), Counts::sample(false)];
    let settled = Counts::sample(true);
    for kind in BulkKind::ALL {
        for counts in &counts {
            let status = [false, true].map(|complete| counts.status(kind, complete));
            frames.entry("status").or_default().extend(status);
            let confirmed = counts.confirmed(kind);
            frames.entry("confirmed").or_default().push(confirmed);
        }
        let status = settled.status(kind, true);
        frames.entry("status").or_default().push(status);
        let stored = settled.confirmed(kind);
        frames.entry("stored").or_default().push(stored);
    }
    for settled in Counts::sample_frames() {
        let name = if settled["refused"].is_object() {
            "refused"
        } else {
            "unconfirmed"
        };
        frames.entry(name).or_default().push(settled);
    }
    for (name, kind) in [
        ("triples", BulkKind::Triples),
        ("graphEmbeddings", BulkKind::GraphEmbeddings),
        ("documentEmbeddings", BulkKind::DocumentEmbeddings),
        ("entityContexts", BulkKind::EntityContexts),
        ("rows", BulkKind::Rows),
    ] {
        assert!(EXPORTS.iter().any(|(exported, _)| *exported == kind.name()));
        let records = exported(kind).into_iter().map(Value::Object);
        frames.insert(name, records.collect());
    }
    assert_eq!(EXPORTS.len(), 5, "each kind of an export is above");
    frames
}

#[test]
fn every_frame_of_the_gateway_is_as_described() {
    let asyncapi = document(ASYNCAPI);
    let schemas = Schemas(&asyncapi);
    let messages = object(&asyncapi, "/components/messages");
    let frames = frames();
    let made: BTreeSet<String> = frames.keys().map(|&name| name.to_owned()).collect();
    assert_eq!(made, sent(&asyncapi), "frames, and those described");
    for (name, frames) in frames {
        for frame in frames {
            let misfit = schemas.misfit(&messages[name]["payload"], &frame, name);
            assert_eq!(misfit, None, "{frame}");
        }
    }
}

/// What somebody copies from the description is what it describes.
#[test]
fn every_example_is_as_described() {
    let asyncapi = document(ASYNCAPI);
    let schemas = Schemas(&asyncapi);
    for (name, message) in object(&asyncapi, "/components/messages") {
        let examples = message["examples"].as_array();
        for example in examples.unwrap_or_else(|| panic!("{name} has no examples")) {
            let misfit = schemas.misfit(&message["payload"], &example["payload"], name);
            assert_eq!(misfit, None, "{name} {}", example["name"]);
        }
    }
}
