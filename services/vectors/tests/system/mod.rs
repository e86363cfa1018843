//! The processors of this service in one flow.

use std::sync::Arc;

use tempfile::TempDir;
use tg_mesh::Processor;
use tg_schemas::Class;
use tg_schemas::msg::Metadata;
use tg_schemas::processors::embeddings;
use tg_testkit::config::Config;
use tg_testkit::fakes::Embeddings;
use tg_testkit::flow::{TestFlow, Wiring};
use tg_testkit::place::Place;
use tg_vectors::Options;

const WIRING: &[Wiring] = &[
    (
        "graph-embeddings-write",
        &[("input", Class::Flow, "graph-embeddings-store")],
    ),
    (
        "doc-embeddings-write",
        &[("input", Class::Flow, "document-embeddings-store")],
    ),
    (
        "row-embeddings-write",
        &[("input", Class::Flow, "row-embeddings-store")],
    ),
    (
        "graph-embeddings-query",
        &[("request", Class::Request, "graph-embeddings")],
    ),
    (
        "doc-embeddings-query",
        &[("request", Class::Request, "document-embeddings")],
    ),
    (
        "row-embeddings-query",
        &[("request", Class::Request, "row-embeddings")],
    ),
    ("embeddings", &[("request", Class::Request, "embeddings")]),
    (
        "kw-index",
        &[
            ("input", Class::Flow, "chunk-load"),
            ("request", Class::Request, "keyword-index"),
        ],
    ),
];

/// Metadata of a record.
pub fn metadata(id: &str, collection: &str) -> Option<Metadata> {
    Some(Metadata {
        id: id.to_owned(),
        root: "urn:doc".to_owned(),
        collection: collection.to_owned(),
    })
}

/// The flow with the service's processors; the directory is kept until the end.
pub async fn start(place: &Place, config: Config) -> (TestFlow, TempDir) {
    start_beside(place, config, Embeddings::new("none/1", |_| vec![1.0])).await
}

/// The same with who makes vectors.
pub async fn start_beside(
    place: &Place,
    config: Config,
    played: Arc<Embeddings>,
) -> (TestFlow, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        data_dir: dir.path().to_owned(),
        ..Options::default()
    };
    let host = |mesh: &_| {
        let mut all = tg_vectors::processors(mesh, options);
        all.push(Processor::new(embeddings::PROCESSOR).serves(embeddings::REQUEST, played));
        all
    };
    (TestFlow::start(place, config, WIRING, host).await, dir)
}
