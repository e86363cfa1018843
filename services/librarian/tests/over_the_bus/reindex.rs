//! What was processed is processed again where something has changed.

use std::collections::BTreeMap;

use serde_json::json;
use tg_schemas::ErrorCode;
use tg_schemas::msg::{LibrarianRequest, ProcessingMetadata, Reindexed};
use tg_testkit::place::Place;

use crate::flow;
use crate::world::{World, about};

fn of_collection(collection: &str) -> LibrarianRequest {
    LibrarianRequest {
        processing_metadata: Some(ProcessingMetadata {
            collection: collection.into(),
            ..ProcessingMetadata::default()
        }),
        ..about("reindex", "")
    }
}

fn dry(of: LibrarianRequest) -> LibrarianRequest {
    LibrarianRequest {
        dry_run: true,
        ..of
    }
}

async fn asked(world: &World, ask: LibrarianRequest) -> Vec<Reindexed> {
    world.library(ask).await.unwrap().reindexed
}

/// Document, outcome and chunks that are due.
fn short(told: &[Reindexed]) -> Vec<(&str, &str, i64)> {
    told.iter()
        .map(|one| {
            (
                one.document_id.as_str(),
                one.outcome.as_str(),
                one.chunks_due,
            )
        })
        .collect()
}

async fn process(world: &World, id: &str, document: &str) {
    let ask = LibrarianRequest {
        processing_metadata: Some(ProcessingMetadata {
            id: id.into(),
            document_id: document.into(),
            flow: "f".into(),
            collection: "c".into(),
            tags: vec!["t".into()],
            ..ProcessingMetadata::default()
        }),
        ..about("add-processing", "")
    };
    world.library(ask).await.unwrap();
    world.until(id, "complete").await;
}

async fn only_what_changed_is_processed_again(place: Place) {
    let world = World::start(&place).await;
    let stores = flow::start(&world).await;
    world.add("urn:d", "text/plain", "one two").await;
    world.add("urn:e", "text/plain", "three").await;
    process(&world, "p", "urn:d").await;
    process(&world, "q", "urn:e").await;
    let none = world.library(about("reindex", "")).await.unwrap_err();
    assert!(none.message.starts_with("processing-metadata: "), "{none}");
    let mut missing = of_collection("");
    missing.processing_metadata.as_mut().unwrap().document_id = "urn:none".into();
    let missing = world.library(missing).await.unwrap_err();
    assert_eq!(missing.code(), ErrorCode::NotFound);
    assert!(asked(&world, of_collection("elsewhere")).await.is_empty());
    let same = asked(&world, of_collection("c")).await;
    assert_eq!(
        short(&same),
        [("urn:d", "unchanged", 0), ("urn:e", "unchanged", 0)]
    );

    // The index is set otherwise: whatever it has of a chunk is made anew.
    let topic = "flow:tg:chunk-load:default:f";
    let row = json!({"topics": {"input": topic}, "epoch": 1, "parameters": {"language": "it"}});
    let row = row.to_string();
    let rows = [("processor:kw-index", "f", Some(row.as_str()))];
    world.config.change(&world.mesh, "default", &rows).await;
    let changes = BTreeMap::from([("kw-index".to_owned(), vec!["parameters".to_owned()])]);
    let due = loop {
        // The view follows in a moment.
        let due = asked(&world, dry(of_collection("c"))).await;
        if !due[0].changes.is_empty() {
            break due;
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    };
    assert_eq!(short(&due), [("urn:d", "due", 2), ("urn:e", "due", 1)]);
    assert_eq!((&due[0].changes, due[0].chunks), (&changes, 2));
    assert!(
        stores.sent.lock().values().all(|times| *times == 1),
        "nothing is done yet"
    );
    // A page at a time, and where the next begins.
    let first = LibrarianRequest {
        limit: 1,
        ..of_collection("c")
    };
    let first = world.library(first).await.unwrap();
    assert_eq!(short(&first.reindexed), [("urn:d", "begun", 2)]);
    assert_eq!(first.reindexed[0].processing_id, "p");
    let rest = LibrarianRequest {
        after: first.next,
        ..of_collection("c")
    };
    assert_eq!(short(&asked(&world, rest).await), [("urn:e", "begun", 1)]);
    for id in ["p", "q"] {
        let done = world.until(id, "complete").await;
        assert_eq!(done.tags, ["t"], "in the place of the one before");
    }
    let sent: Vec<u32> = stores.sent.lock().values().copied().collect();
    assert_eq!(sent, [2, 2, 2]);
    let same = asked(&world, of_collection("c")).await;
    assert!(
        same.iter().all(|one| one.outcome == "unchanged"),
        "{same:?}"
    );

    // All of it, whatever changed.
    let forced = LibrarianRequest {
        force: true,
        ..of_collection("c")
    };
    let begun = asked(&world, forced).await;
    assert_eq!(
        short(&begun),
        [("urn:d", "begun", 2), ("urn:e", "begun", 1)]
    );
    for id in ["p", "q"] {
        world.until(id, "complete").await;
    }
    let sent: Vec<u32> = stores.sent.lock().values().copied().collect();
    assert_eq!(sent, [3, 3, 3], "each chunk is read once more");
    back_again(&world, &stores, topic).await;
    let rows = [("flow", "f", None)];
    world.config.change(&world.mesh, "default", &rows).await;
    let stopped = loop {
        let stopped = asked(&world, of_collection("c")).await;
        if stopped.iter().all(|one| one.outcome == "not-possible") {
            break stopped;
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    };
    assert_eq!(stopped[0].why, "flow 'f' does not run: start it first");
}

/// The index is set as it was at first: that is a change like any other, and then nothing is due.
async fn back_again(world: &World, stores: &flow::Stores, topic: &str) {
    let row = json!({"topics": {"input": topic}, "epoch": 1}).to_string();
    let rows = [("processor:kw-index", "f", Some(row.as_str()))];
    world.config.change(&world.mesh, "default", &rows).await;
    let due = loop {
        let due = asked(world, dry(of_collection("c"))).await;
        if !due[0].changes.is_empty() {
            break due;
        }
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    };
    let changes = BTreeMap::from([("kw-index".to_owned(), vec!["parameters".to_owned()])]);
    assert_eq!(
        (due[0].outcome.as_str(), &due[0].changes),
        ("due", &changes)
    );
    let begun = asked(world, of_collection("c")).await;
    assert_eq!(
        short(&begun),
        [("urn:d", "begun", 2), ("urn:e", "begun", 1)]
    );
    for id in ["p", "q"] {
        world.until(id, "complete").await;
    }
    let sent: Vec<u32> = stores.sent.lock().values().copied().collect();
    assert_eq!(sent, [4, 4, 4]);
    let same = asked(world, of_collection("c")).await;
    assert!(
        same.iter().all(|one| one.outcome == "unchanged"),
        "{same:?}"
    );
}

tg_testkit::on_both_buses!(only_what_changed_is_processed_again);
