//! Processing: to its end, through failures, stops and edits.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tg_schemas::ErrorCode;
use tg_schemas::msg::{DocumentMetadata, LibrarianRequest, ProcessingMetadata};
use tg_testkit::place::Place;

use crate::flow;
use crate::world::{World, about, soon};

fn into(id: &str, document: &str, collection: &str) -> LibrarianRequest {
    LibrarianRequest {
        processing_metadata: Some(ProcessingMetadata {
            id: id.into(),
            document_id: document.into(),
            flow: "f".into(),
            collection: collection.into(),
            time: 77,
            tags: vec!["t".into()],
            ..ProcessingMetadata::default()
        }),
        ..about("add-processing", "")
    }
}

fn by_id(operation: &str, processing: &str) -> LibrarianRequest {
    LibrarianRequest {
        processing_id: processing.into(),
        ..about(operation, "")
    }
}

fn edit(id: &str, content: &str) -> LibrarianRequest {
    LibrarianRequest {
        document_metadata: Some(DocumentMetadata {
            id: id.into(),
            ..DocumentMetadata::default()
        }),
        content: STANDARD.encode(content),
        ..about("update-document", "")
    }
}

async fn a_document_is_processed_to_its_end(place: Place) {
    let world = World::start(&place).await;
    let stores = flow::start(&world).await;
    world.add("urn:d", "text/plain", "one two three").await;
    let added = world.library(into("p", "urn:d", "c")).await.unwrap();
    assert_eq!(added.processing_metadatas[0].id, "p");
    let done = world.until("p", "complete").await;
    let progress: Vec<_> = done
        .progress
        .iter()
        .map(|(k, n)| (k.as_str(), *n))
        .collect();
    let labels = tg_provenance::vocabulary_labels().len() as i64;
    assert_eq!(
        progress,
        [
            ("chunks", 3),
            ("chunks-total", 3),
            ("keywords", 3),
            ("records", 6),
            ("records-total", 6),
            // What is known of the document stands in the default graph and in the one of sources.
            ("triples", labels + 10),
            ("triples-total", labels + 10),
        ]
    );
    assert_eq!(
        (done.time, done.tags.len(), done.error.as_str()),
        (77, 1, "")
    );
    assert_eq!(stores.count("c"), 3);
    let row = world.config.get("default", "collection", "c");
    assert!(row.is_some(), "the collection was made");
    // The same request again succeeds and starts nothing; another one cannot have the id.
    world.library(into("p", "urn:d", "c")).await.unwrap();
    assert_eq!(stores.count("c"), 3);
    world.add("urn:e", "text/plain", "four").await;
    let taken = world.library(into("p", "urn:e", "c")).await.unwrap_err();
    assert_eq!(taken.message, "Processing already exists");
    // The names of the vocabulary are there once.
    world.library(into("q", "urn:e", "c")).await.unwrap();
    let second = world.until("q", "complete").await;
    assert_eq!(second.progress["triples"], 10);
    let listed = world.library(about("list-processing", "")).await.unwrap();
    let listed: Vec<_> = listed
        .processing_metadatas
        .iter()
        .map(|one| (one.id.as_str(), one.status.as_str()))
        .collect();
    assert_eq!(listed, [("p", "complete"), ("q", "complete")]);
    let children = world
        .library(about("list-children", "urn:d"))
        .await
        .unwrap();
    assert_eq!(children.document_metadatas.len(), 3);
    let theirs = world.parts("other", &about("list-children", "urn:d")).await;
    assert!(theirs.unwrap()[0].document_metadatas.is_empty());
}

/// All requests are of one second: another one came in between, so the first is no repetition any more.
async fn what_was_processed_before_a_change_is_processed_again(place: Place) {
    let world = World::start(&place).await;
    let stores = flow::start(&world).await;
    world.add("urn:d", "text/plain", "one two").await;
    world.library(into("p", "urn:d", "c")).await.unwrap();
    world.until("p", "complete").await;
    world.library(edit("urn:d", "three")).await.unwrap();
    let stale = world.library(into("p", "urn:d", "c")).await.unwrap_err();
    assert_eq!(stale.code(), ErrorCode::Conflict);
    world.library(into("q", "urn:d", "c")).await.unwrap();
    world.until("q", "complete").await;
    world.library(edit("urn:d", "one two")).await.unwrap();
    let stale = world.library(into("p", "urn:d", "c")).await.unwrap_err();
    assert_eq!(stale.message, "Processing already exists");
    world.library(into("p again", "urn:d", "c")).await.unwrap();
    world.until("p again", "complete").await;
    assert_eq!(stores.count("c"), 2);
}

async fn an_edited_document_costs_what_was_edited(place: Place) {
    let world = World::start(&place).await;
    let stores = flow::start(&world).await;
    world.add("urn:d", "text/plain", "one two three").await;
    for (id, collection) in [("p1", "c"), ("p2", "elsewhere")] {
        world.library(into(id, "urn:d", collection)).await.unwrap();
        world.until(id, "complete").await;
    }
    world
        .library(edit("urn:d", "one three four"))
        .await
        .unwrap();
    world.library(into("p3", "urn:d", "c")).await.unwrap();
    let done = world.until("p3", "complete").await;
    assert_eq!(
        (done.progress["chunks"], done.progress["unchanged"]),
        (1, 2)
    );
    // What moved to another page says the same; where it is now is told.
    let three = world.library(about("get-document-metadata", "urn:chunk:three"));
    let three = three.await.unwrap().document_metadata.unwrap();
    assert_eq!(three.comments, "page 2");
    let sent = stores.sent.lock().clone();
    let sent: Vec<_> = sent.iter().map(|(id, n)| (id.as_str(), *n)).collect();
    assert_eq!(
        sent,
        [
            ("urn:chunk:four", 1),
            ("urn:chunk:one", 2),
            ("urn:chunk:three", 2),
            ("urn:chunk:two", 2),
        ]
    );
    // Complete means that what is gone is gone, here and not elsewhere.
    let two = |collection: &str| (collection.to_owned(), "urn:chunk:two".to_owned());
    assert!(!stores.words.lock().contains(&two("c")));
    assert!(stores.words.lock().contains(&two("elsewhere")));
    assert_eq!((stores.count("c"), stores.count("elsewhere")), (3, 3));
    // Nothing changed: nothing is sent.
    world.library(into("p4", "urn:d", "c")).await.unwrap();
    let same = world.until("p4", "complete").await;
    assert_eq!(
        (same.progress.get("chunks"), same.progress["unchanged"]),
        (None, 3)
    );
    // Whoever takes the processing back has everything done again.
    for id in ["p1", "p3", "p4"] {
        world.library(by_id("remove-processing", id)).await.unwrap();
    }
    world.library(into("p5", "urn:d", "c")).await.unwrap();
    assert_eq!(world.until("p5", "complete").await.progress["chunks"], 3);
}

async fn what_failed_is_tried_again_and_nothing_else(place: Place) {
    let world = World::start(&place).await;
    let stores = flow::start(&world).await;
    stores.picky.store(true, Ordering::SeqCst);
    world.add("urn:d", "text/plain", "one bad1 two bad2").await;
    world.library(into("p", "urn:d", "c")).await.unwrap();
    let failed = world.until("p", "failed").await;
    assert_eq!(failed.error, "2 of 7 records failed");
    let errors: Vec<_> = failed
        .errors
        .iter()
        .map(|one| {
            (
                one.subject.as_str(),
                one.processor.as_str(),
                one.message.as_str(),
            )
        })
        .collect();
    assert_eq!(
        errors,
        [
            ("urn:chunk:bad1", "kw-index", "cannot take bad1"),
            ("urn:chunk:bad2", "kw-index", "cannot take bad2"),
        ]
    );
    // Still picky: fails again.
    world.library(by_id("retry-processing", "p")).await.unwrap();
    world.until("p", "failed").await;
    stores.picky.store(false, Ordering::SeqCst);
    world.library(by_id("retry-processing", "p")).await.unwrap();
    let done = world.until("p", "complete").await;
    assert!(done.errors.is_empty() && done.error.is_empty());
    assert_eq!((stores.count("c"), done.progress["keywords"]), (4, 4));
    assert!(stores.sent.lock().values().all(|times| *times == 1));
}

async fn what_is_mostly_done_is_complete_with_warnings(place: Place) {
    let world = World::start(&place).await;
    let stores = flow::start(&world).await;
    stores.picky.store(true, Ordering::SeqCst);
    world.add("urn:d", "text/plain", "one two three bad1").await;
    world.library(into("p", "urn:d", "c")).await.unwrap();
    let done = world.until("p", "complete").await;
    assert_eq!((done.warnings, done.errors_total), (1, 1));
    assert_eq!(done.errors[0].message, "cannot take bad1");
    assert_eq!(done.errors[0].kind, "bad-request");
    assert!(done.error.is_empty(), "{}", done.error);
    // It can still be tried again, and that is said.
    assert_eq!(done.retry, "retry-processing");
    stores.picky.store(false, Ordering::SeqCst);
    world.library(by_id("retry-processing", "p")).await.unwrap();
    soon("all of it is there", || stores.count("c") == 4).await;
    // It is complete before, too: what is waited for is that nothing is left out.
    let whole = async {
        while world.until("p", "complete").await.warnings > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let whole = tokio::time::timeout(Duration::from_secs(60), whole).await;
    whole.expect("complete without warnings");
    assert!(world.status("p").await.retry.is_empty());
}

async fn a_stopped_flow_stops_its_runs(place: Place) {
    let world = World::start(&place).await;
    let stores = flow::start(&world).await;
    world.add("urn:d", "text/plain", "one two").await;
    let held = stores.held.lock().await;
    world.library(into("p", "urn:d", "c")).await.unwrap();
    world.library(into("waits", "urn:d", "c")).await.unwrap();
    let waits = world.status("waits").await;
    assert_eq!(waits.status, "processing");
    assert!(
        waits.error.starts_with("waits for another run"),
        "{}",
        waits.error
    );
    soon("chunks are sent", || stores.sent.lock().len() == 2).await;
    let rows = [("flow", "f", None)];
    world.config.change(&world.mesh, "default", &rows).await;
    let stopped = world.until("p", "stopped").await;
    assert_eq!(stopped.error, "the flow was stopped");
    world.until("waits", "stopped").await;
    let refused = world
        .library(by_id("retry-processing", "p"))
        .await
        .unwrap_err();
    assert!(refused.message.contains("does not run"), "{refused}");
    drop(held);
    flow::run(&world, 2).await;
    for id in ["p", "waits"] {
        let retried = world.library(by_id("retry-processing", id)).await.unwrap();
        assert_ne!(retried.processing_metadatas[0].status, "stopped");
        world.until(id, "complete").await;
    }
    assert_eq!(stores.count("c"), 2);
}

async fn runs_of_a_deleted_collection_stop_and_stay_so(place: Place) {
    let world = World::start(&place).await;
    let stores = flow::start(&world).await;
    world.add("urn:d", "text/plain", "one two").await;
    let held = stores.held.lock().await;
    world.library(into("p", "urn:d", "c")).await.unwrap();
    soon("chunks are sent", || stores.sent.lock().len() == 2).await;
    let gone = world.collections("default", "delete-collection", "c").await;
    gone.unwrap();
    let stopped = world.status("p").await;
    assert_eq!(
        (stopped.status.as_str(), stopped.error.as_str()),
        ("stopped", "the collection was deleted")
    );
    drop(held);
    // Made again, it is done from the beginning, into the new one.
    world.library(by_id("retry-processing", "p")).await.unwrap();
    world.until("p", "complete").await;
    let row = world.config.get("default", "collection", "c").unwrap();
    assert!(row.contains("\"incarnation\":1"), "{row}");
    assert!(stores.sent.lock().values().all(|times| *times == 2));
}

async fn what_is_cancelled_makes_nothing_more_and_blocks_nothing(place: Place) {
    let world = World::start(&place).await;
    let stores = flow::start(&world).await;
    world.add("urn:d", "text/plain", "one two").await;
    let held = stores.held.lock().await;
    world.library(into("p", "urn:d", "c")).await.unwrap();
    soon("chunks are sent", || stores.sent.lock().len() == 2).await;
    world.library(into("next", "urn:d", "c")).await.unwrap();
    let removed = world
        .library(by_id("remove-processing", "p"))
        .await
        .unwrap();
    let left = &removed.processing_metadatas[0];
    assert_eq!(left.status, "stopped");
    assert!(left.error.starts_with("cancelled: "), "{}", left.error);
    let gone = world.library(by_id("processing-status", "p")).await;
    assert_eq!(gone.unwrap_err().code(), ErrorCode::NotFound);
    let again = world.library(by_id("remove-processing", "p")).await;
    assert_eq!(
        again.unwrap_err().message,
        "Processing object does not exist"
    );
    drop(held);
    world.until("next", "complete").await;
}

async fn a_removed_document_is_taken_out_of_every_store(place: Place) {
    let world = World::start(&place).await;
    let stores = flow::start(&world).await;
    world.add("urn:d", "text/plain", "one two").await;
    world.add("urn:e", "text/plain", "three").await;
    for (id, document, collection) in [
        ("1", "urn:d", "c"),
        ("2", "urn:d", "k"),
        ("3", "urn:e", "c"),
    ] {
        world.library(into(id, document, collection)).await.unwrap();
        world.until(id, "complete").await;
    }
    world
        .library(about("remove-document", "urn:d"))
        .await
        .unwrap();
    soon("nothing is left of it", || {
        stores.count("c") == 1 && stores.count("k") == 0
    })
    .await;
    let first = stores.retracted.lock()[0].clone();
    assert_eq!(first.metadata.as_ref().unwrap().root, "urn:d");
    assert_eq!(first.chunks, ["urn:d", "urn:chunk:one", "urn:chunk:two"]);
    let titles = first
        .triples
        .iter()
        .filter(|one| one.o == Some(tg_schemas::Term::literal("title of urn:d")));
    assert_eq!(titles.count(), 4, "title and label, in both graphs");
    let left = world.library(about("list-processing", "")).await.unwrap();
    assert_eq!(left.processing_metadatas.len(), 1);
}

async fn the_next_process_goes_on_where_the_last_one_was(place: Place) {
    let dir = Arc::new(tempfile::tempdir().unwrap());
    let world = World::start_with(&place, dir.clone(), Arc::default()).await;
    let stores = flow::start(&world).await;
    world.add("urn:d", "text/plain", "one two").await;
    let held = stores.held.lock().await;
    world.library(into("p", "urn:d", "c")).await.unwrap();
    world.library(into("q", "urn:d", "c")).await.unwrap();
    soon("chunks are sent", || stores.sent.lock().len() == 2).await;
    let config = world.config.clone();
    world.mesh.stop(Duration::ZERO).await;
    drop((world, held));
    let world = World::start_with(&place, dir, config).await;
    flow::start_over(&world, &stores).await;
    world.until("p", "complete").await;
    world.until("q", "complete").await;
    assert_eq!(stores.count("c"), 2);
}

async fn what_it_will_cost_is_told_and_nothing_is_done(place: Place) {
    let world = World::start(&place).await;
    let stores = flow::start(&world).await;
    let text = "x".repeat(25);
    world.add("urn:d", "text/plain", &text).await;
    let dry = |ask: LibrarianRequest| LibrarianRequest {
        dry_run: true,
        ..ask
    };
    let told = world.library(dry(into("p", "urn:d", "c"))).await.unwrap();
    assert_eq!(told.estimate["bytes"], 25);
    assert_eq!(told.estimate["chunks"], 16);
    assert_eq!(told.estimate["model-calls"], 0);
    let before = LibrarianRequest {
        document_metadata: Some(DocumentMetadata {
            kind: "text/plain".into(),
            ..DocumentMetadata::default()
        }),
        total_size: 10,
        ..dry(into("p", "", "c"))
    };
    assert_eq!(world.library(before).await.unwrap().estimate["chunks"], 1);
    let listed = world.library(about("list-processing", "")).await.unwrap();
    assert!(listed.processing_metadatas.is_empty());
    assert!(stores.sent.lock().is_empty());
    assert_eq!(world.config.get("default", "collection", "c"), None);
}

async fn what_cannot_be_processed_is_refused_and_leaves_nothing(place: Place) {
    let world = World::start(&place).await;
    flow::start(&world).await;
    world.add("urn:d", "text/plain", "one").await;
    world.add("urn:pdf", "application/pdf", "%PDF-").await;
    let why = async |ask: LibrarianRequest| world.library(ask).await.unwrap_err().message;
    let mut elsewhere = into("p", "urn:d", "c");
    elsewhere.processing_metadata.as_mut().unwrap().flow = "g".into();
    assert_eq!(
        why(elsewhere).await,
        "Invalid flow ID: there is no flow 'g'"
    );
    assert_eq!(
        why(into("p", "urn:x", "c")).await,
        "Document does not exist"
    );
    assert_eq!(
        why(into("p", "urn:d", "")).await,
        "Collection parameter is required"
    );
    assert_eq!(
        why(into("", "urn:d", "c")).await,
        "processing-metadata.id: is required"
    );
    assert_eq!(
        why(into("p", "urn:pdf", "c")).await,
        "processing-metadata.flow: nothing in flow 'f' reads documents of kind application/pdf"
    );
    for odd in ["my document", "urn:a%"] {
        world.add(odd, "text/plain", "one").await;
        let why = why(into("p", odd, "c")).await;
        let said =
            "processing-metadata.document-id: a document that is processed is named by an IRI";
        assert!(why.starts_with(said), "{why}");
    }
    let listed = world.library(about("list-processing", "")).await.unwrap();
    assert!(listed.processing_metadatas.is_empty());
    assert_eq!(world.config.get("default", "collection", "c"), None);
}

async fn a_document_that_comes_along_is_added_and_processed(place: Place) {
    let world = World::start(&place).await;
    let stores = flow::start(&world).await;
    let load = |content: &str, id: &str| LibrarianRequest {
        document_metadata: Some(DocumentMetadata {
            id: id.into(),
            title: "T".into(),
            ..DocumentMetadata::default()
        }),
        content: STANDARD.encode(content),
        ..LibrarianRequest {
            operation: "load-document".into(),
            ..into("", "", "c")
        }
    };
    let loaded = world.library(load("one two", "")).await.unwrap();
    assert!(loaded.document_id.starts_with("https://trustgraph.ai/doc/"));
    let id = loaded.processing_metadatas[0].id.clone();
    world.until(&id, "complete").await;
    let again = world.library(load("two three", &loaded.document_id)).await;
    let again = again.unwrap();
    assert_eq!(again.document_id, loaded.document_id);
    world
        .until(&again.processing_metadatas[0].id, "complete")
        .await;
    assert_eq!(stores.count("c"), 2);
}

tg_testkit::on_both_buses!(
    a_document_is_processed_to_its_end,
    what_was_processed_before_a_change_is_processed_again,
    an_edited_document_costs_what_was_edited,
    what_failed_is_tried_again_and_nothing_else,
    what_is_mostly_done_is_complete_with_warnings,
    a_stopped_flow_stops_its_runs,
    runs_of_a_deleted_collection_stop_and_stay_so,
    what_is_cancelled_makes_nothing_more_and_blocks_nothing,
    a_removed_document_is_taken_out_of_every_store,
    the_next_process_goes_on_where_the_last_one_was,
    what_it_will_cost_is_told_and_nothing_is_done,
    what_cannot_be_processed_is_refused_and_leaves_nothing,
    a_document_that_comes_along_is_added_and_processed,
);
