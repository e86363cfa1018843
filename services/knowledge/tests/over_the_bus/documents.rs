//! Documents of cores: into the library and out of it.

use tg_schemas::ErrorCode;
use tg_schemas::msg::{KnowledgeRequest, LibraryBlob, LibraryMetadata};
use tg_testkit::place::Place;

use crate::world::{World, about, facts, put};

fn said(id: &str, parent: &str) -> LibraryMetadata {
    LibraryMetadata {
        id: id.into(),
        kind: "text/plain".into(),
        title: format!("title of {id}"),
        parent_id: parent.into(),
        document_type: if parent.is_empty() { "source" } else { "page" }.into(),
        comments: "c".into(),
        tags: vec!["t".into()],
    }
}

fn announce(metadata: LibraryMetadata) -> KnowledgeRequest {
    KnowledgeRequest {
        library_metadata: Some(metadata),
        ..about("put-kg-core", "core")
    }
}

fn content(id: &str, data: &str, offset: i64, total: i64) -> KnowledgeRequest {
    KnowledgeRequest {
        library_blob: Some(LibraryBlob {
            id: id.into(),
            data: data.into(),
            offset,
            total,
        }),
        ..about("put-kg-core", "core")
    }
}

async fn documents_go_into_the_library_and_come_out_with_their_core(place: Place) {
    let world = World::start(&place).await;
    world.one(put("urn:doc", facts("urn:a"))).await;
    for (id, parent) in [("urn:doc", ""), ("urn:page", "urn:doc")] {
        world.one(announce(said(id, parent))).await;
        world.one(content(id, "aGVsbG8=", 0, 0)).await;
        // Once more is the same.
        world.one(content(id, "aGVsbG8=", 0, 0)).await;
    }
    let parts = world.get("get-kg-core", "urn:doc").await;
    let documents: Vec<_> = parts
        .iter()
        .filter_map(|part| part.library_metadata.clone())
        .collect();
    assert_eq!(
        documents,
        [said("urn:doc", ""), said("urn:page", "urn:doc")]
    );
    let blobs: Vec<_> = parts
        .iter()
        .filter_map(|part| part.library_blob.clone())
        .map(|blob| (blob.id, blob.data, blob.total))
        .collect();
    let blob = |id: &str| (id.to_owned(), "aGVsbG8=".to_owned(), 0);
    assert_eq!(blobs, [blob("urn:doc"), blob("urn:page")]);
}

async fn a_large_document_comes_in_parts(place: Place) {
    let world = World::start(&place).await;
    world.one(announce(said("urn:large", ""))).await;
    for (data, offset) in [("aGVs", 0), ("bG8h", 3), ("ISE=", 6)] {
        world.one(content("urn:large", data, offset, 8)).await;
    }
    let documents = world.library.documents.lock();
    let (document, data) = &documents["urn:large"];
    assert_eq!(document.title, "title of urn:large");
    assert_eq!(data, "aGVsbG8hISE=");
}

async fn content_that_nobody_announced_is_refused(place: Place) {
    let world = World::start(&place).await;
    let error = world.ask(content("urn:x", "aGk=", 0, 0)).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::BadRequest);
    assert!(error.message.starts_with("library-blob.id"), "{error}");
    world.one(announce(said("urn:x", ""))).await;
    let error = world.ask(content("urn:x", "aGVs", 3, 9)).await.unwrap_err();
    assert_eq!(
        error.message,
        "library-blob.offset: the part from 0 on is required first"
    );
    // A child whose parent is not there: the library's own words.
    world.one(announce(said("urn:y", "urn:nobody"))).await;
    let error = world.ask(content("urn:y", "aGk=", 0, 0)).await.unwrap_err();
    assert_eq!(error.kind, "librarian-error");
}

tg_testkit::on_both_buses!(
    documents_go_into_the_library_and_come_out_with_their_core,
    a_large_document_comes_in_parts,
    content_that_nobody_announced_is_refused,
);
