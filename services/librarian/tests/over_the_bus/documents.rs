//! Documents and uploads.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tg_mesh::Ask;
use tg_schemas::ErrorCode;
use tg_schemas::msg::{Criteria, DocumentMetadata, LibrarianRequest, LibraryText, LibraryTexts};
use tg_schemas::processors::librarian::LIBRARY_TEXTS;
use tg_storage::blob::BlobId;
use tg_storage::rusqlite::{Connection, OpenFlags};
use tg_testkit::config::Config;
use tg_testkit::place::Place;

use crate::world::{SOON, World, about};

async fn a_document_is_added_streamed_and_removed(place: Place) {
    let world = World::start(&place).await;
    world.add("urn:doc", "text/plain", "hello world").await;
    world.add("urn:empty", "text/plain", "").await;
    let whole = world.library(about("get-document-content", "urn:doc"));
    assert_eq!(whole.await.unwrap().content, "aGVsbG8gd29ybGQ=");
    let stream = LibrarianRequest {
        chunk_size: 6,
        ..about("stream-document", "urn:doc")
    };
    let parts = world.parts("default", &stream).await.unwrap();
    let shape: Vec<_> = parts
        .iter()
        .map(|part| (part.content.as_str(), part.bytes_received, part.is_final))
        .collect();
    assert_eq!(shape, [("aGVsbG8g", 6, false), ("d29ybGQ=", 11, true)]);
    let second = LibrarianRequest {
        only_chunk: true,
        chunk_index: 1,
        ..stream.clone()
    };
    let one = world.library(second.clone()).await.unwrap();
    assert_eq!(
        (one.content.as_str(), one.chunk_index, one.total_chunks),
        ("d29ybGQ=", 1, 2)
    );
    let past = LibrarianRequest {
        chunk_index: 2,
        ..second
    };
    let past = world.library(past).await.unwrap_err();
    assert_eq!(past.message, "chunk-index: must be 0 to 1");
    let empty = world.library(about("stream-document", "urn:empty"));
    let empty = empty.await.unwrap();
    assert_eq!((empty.content.as_str(), empty.total_chunks), ("", 1));
    let contents = LibrarianRequest {
        document_ids: ["urn:none", "urn:doc"].map(str::to_owned).to_vec(),
        ..about("get-contents", "")
    };
    let contents = world.library(contents).await.unwrap();
    assert_eq!(contents.contents, ["", "aGVsbG8gd29ybGQ="]);
    assert_eq!(contents.document_metadatas[0].id, "urn:doc");

    let other = world.parts("other", &about("list-documents", "")).await;
    assert!(other.unwrap()[0].document_metadatas.is_empty());
    let theirs = about("stream-document", "urn:doc");
    let stolen = world.parts("other", &theirs).await;
    assert_eq!(stolen.unwrap_err().code(), ErrorCode::NotFound);
    let listed = LibrarianRequest {
        criteria: vec![Criteria {
            key: "title".into(),
            value: "doc".into(),
            operator: "contains".into(),
        }],
        ..about("list-documents", "")
    };
    let listed = world.library(listed).await.unwrap().document_metadatas;
    assert_eq!(
        (listed.len(), listed[0].document_type.as_str()),
        (1, "source")
    );
    let removed = world.library(about("remove-document", "urn:doc"));
    removed.await.unwrap();
    let gone = world.library(about("stream-document", "urn:doc"));
    assert_eq!(gone.await.unwrap_err().code(), ErrorCode::NotFound);
}

async fn an_upload_is_told_where_it_stands(place: Place) {
    let world = World::start(&place).await;
    let begin = LibrarianRequest {
        document_metadata: Some(DocumentMetadata {
            id: "urn:big".into(),
            kind: "application/pdf".into(),
            tags: vec!["t".into()],
            ..DocumentMetadata::default()
        }),
        total_size: 7,
        chunk_size: 3,
        ..about("begin-upload", "")
    };
    let begun = world.library(begin).await.unwrap();
    assert_eq!((begun.chunk_size, begun.total_chunks), (3, 3));
    let on = |operation: &str| LibrarianRequest {
        upload_id: begun.upload_id.clone(),
        ..about(operation, "")
    };
    let chunk = |at: i64, content: &str| LibrarianRequest {
        chunk_index: at,
        content: STANDARD.encode(content),
        ..on("upload-chunk")
    };
    let taken = world.library(chunk(0, "abc")).await.unwrap();
    assert_eq!((taken.chunks_received, taken.bytes_received), (1, 3));
    let wrong = world.library(chunk(1, "de")).await.unwrap_err();
    assert!(wrong.message.contains("must have 3"), "{wrong}");
    world.library(chunk(2, "g")).await.unwrap();
    let status = world.library(on("get-upload-status")).await.unwrap();
    assert_eq!(
        (
            status.received_chunks,
            status.missing_chunks,
            status.chunk_size
        ),
        (vec![0, 2], vec![1], 3)
    );
    assert_eq!(status.upload_state, "in-progress");
    let foreign = world
        .parts("other", &on("get-upload-status"))
        .await
        .unwrap();
    assert_eq!(foreign[0].upload_state, "expired");
    let listed = world.library(on("list-uploads")).await.unwrap();
    assert_eq!(listed.upload_sessions[0].document_id, "urn:big");
    world.library(chunk(1, "def")).await.unwrap();
    let done = world.library(on("complete-upload")).await.unwrap();
    assert_eq!(
        (done.document_id.as_str(), done.object_id.len()),
        ("urn:big", 64)
    );
    let status = world.library(on("get-upload-status")).await.unwrap();
    assert_eq!(status.upload_state, "completed");
    let content = world.library(about("get-document-content", "urn:big"));
    assert_eq!(content.await.unwrap().content, STANDARD.encode("abcdefg"));
    let known = world
        .library(about("get-document", "urn:big"))
        .await
        .unwrap();
    assert_eq!(known.document_metadata.unwrap().tags, ["t"]);
    let abort = world.library(about("abort-upload", "")).await.unwrap_err();
    assert_eq!(abort.message, "upload-id: is required");
}

async fn an_upload_is_gone_on_with_by_its_hash(place: Place) {
    let world = World::start(&place).await;
    let begin = |content: &str, question: &str| LibrarianRequest {
        document_metadata: Some(DocumentMetadata {
            id: "urn:big".into(),
            kind: "text/plain".into(),
            title: question.into(),
            ..DocumentMetadata::default()
        }),
        total_size: 7,
        chunk_size: 3,
        content_hash: BlobId::of(content.as_bytes()).to_string(),
        ..about("begin-upload", "")
    };
    let chunk = |upload: &str, at: i64, content: &str| LibrarianRequest {
        upload_id: upload.into(),
        chunk_index: at,
        content: STANDARD.encode(content),
        ..about("upload-chunk", "")
    };
    let complete = |upload: &str| LibrarianRequest {
        upload_id: upload.into(),
        ..about("complete-upload", "")
    };
    let first = world.library(begin("abcdefg", "one")).await.unwrap();
    assert_eq!(
        (first.missing_chunks, first.upload_state.as_str()),
        (vec![0, 1, 2], "in-progress")
    );
    let upload = first.upload_id;
    world.library(chunk(&upload, 1, "def")).await.unwrap();
    let again = world.library(begin("abcdefg", "two")).await.unwrap();
    assert_eq!(
        (
            again.upload_id.as_str(),
            again.received_chunks,
            again.missing_chunks
        ),
        (&*upload, vec![1], vec![0, 2])
    );
    let changed = world.library(begin("abcdefX", "three")).await.unwrap();
    assert_ne!(changed.upload_id, upload);
    assert_eq!(changed.missing_chunks, [0, 1, 2]);
    for (at, content) in [(0, "abc"), (1, "def"), (2, "g")] {
        let other = chunk(&changed.upload_id, at, content);
        world.library(other).await.unwrap();
    }
    let wrong = world.library(complete(&changed.upload_id)).await;
    let wrong = wrong.unwrap_err();
    assert!(
        wrong.message.starts_with("content-hash: must be"),
        "{wrong}"
    );
    let none = world.library(about("get-document-metadata", "urn:big"));
    assert_eq!(none.await.unwrap_err().code(), ErrorCode::NotFound);

    for (at, content) in [(0, "abc"), (2, "g")] {
        world.library(chunk(&upload, at, content)).await.unwrap();
    }
    world.library(complete(&upload)).await.unwrap();
    let known = world.library(about("get-document-metadata", "urn:big"));
    let known = known.await.unwrap().document_metadata.unwrap();
    let hash = BlobId::of(b"abcdefg").to_string();
    assert_eq!((known.content_hash, known.title), (hash, "two".into()));
}

/// The content of a document, as soon as it is there.
async fn content(world: &World, id: &str) -> String {
    let there = async {
        loop {
            match world.library(about("get-document-content", id)).await {
                Ok(found) => return found.content,
                Err(_) => tokio::time::sleep(Duration::from_millis(2)).await,
            }
        }
    };
    tokio::time::timeout(SOON, there).await.unwrap()
}

async fn texts_of_a_trace_are_taken_in_once(place: Place) {
    let world = World::start(&place).await;
    let text = |id: &str, text: &str| LibraryText {
        id: id.into(),
        title: "Agent Thought: ü".into(),
        time: 1_700_000_000,
        text: text.into(),
    };
    let topic = LIBRARY_TEXTS.of_system();
    for texts in [
        vec![text("urn:t:1", "first")],
        // Again, as after a crash, in other words: what is there stays. No other text of the record is lost by it.
        vec![text("urn:t:1", "other"), text("urn:t:2", "zwei ü")],
    ] {
        let workspace = "default".to_owned();
        let last = texts[texts.len() - 1].id.clone();
        let record = LibraryTexts { workspace, texts };
        world
            .mesh
            .record(&topic, &record, Ask::default())
            .await
            .unwrap();
        // Two records may be read in any order: which text stays is known of one after the other.
        content(&world, &last).await;
    }
    let second = content(&world, "urn:t:2").await;
    assert_eq!(STANDARD.decode(second).unwrap(), "zwei ü".as_bytes());
    let first = world.library(about("get-document-content", "urn:t:1"));
    assert_eq!(first.await.unwrap().content, STANDARD.encode("first"));
    let known = world.library(about("get-document-metadata", "urn:t:2"));
    let known = known.await.unwrap().document_metadata.unwrap();
    assert_eq!(
        (known.document_type.as_str(), known.kind.as_str()),
        ("answer", "text/plain")
    );
    assert_eq!(
        (known.title.as_str(), known.time),
        ("Agent Thought: ü", 1_700_000_000)
    );
    let theirs = about("get-document-content", "urn:t:1");
    let theirs = world.parts("other", &theirs).await;
    assert_eq!(theirs.unwrap_err().code(), ErrorCode::NotFound);
}

async fn texts_of_a_workspace_that_is_gone_are_forgotten(place: Place) {
    let stone = r#"{"generation":5,"deleted-at":1,"purge-after":2}"#;
    let deleted = Config::default();
    deleted.set("__workspaces__", "tombstone", "gone", stone);
    let world =
        World::start_with(&place, tempfile::tempdir().unwrap().into(), deleted.into()).await;
    let rows = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let file = world.dir.path().join("librarian.sqlite");
        let conn = Connection::open_with_flags(file, flags).unwrap();
        let count = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        let ever = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'document'";
        (count(ever), count("SELECT count(*) FROM document"))
    };
    assert_eq!(rows(), (0, 0));
    let texts = |workspace: &str| LibraryTexts {
        workspace: workspace.into(),
        texts: vec![LibraryText {
            id: "urn:t:late".into(),
            text: "late".into(),
            ..LibraryText::default()
        }],
    };
    let topic = LIBRARY_TEXTS.of_system();
    for workspace in ["gone", "default"] {
        let sent = world
            .mesh
            .record(&topic, &texts(workspace), Ask::default())
            .await;
        sent.unwrap();
    }
    let taken_in = async {
        while rows() == (0, 0) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, taken_in).await.unwrap();
    let late = about("get-document-content", "urn:t:late");
    assert!(world.library(late).await.is_ok());
    assert_eq!(rows(), (1, 1));
}

async fn damaged_metadata_is_told(place: Place) {
    let world = World::start(&place).await;
    for document in ["urn:doc", "urn:well"] {
        world.add(document, "text/plain", "hello world").await;
    }
    let file = world.dir.path().join("librarian.sqlite");
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(file, flags).unwrap();
    conn.busy_timeout(SOON).unwrap();
    for (column, whole) in [("metadata", "[]"), ("tags", "[]")] {
        let set = format!("UPDATE document SET {column} = ?1 WHERE id = 'urn:doc'");
        assert_eq!(conn.execute(&set, [r#"[{"s": "#]).unwrap(), 1);
        for request in [
            about("get-document-metadata", "urn:doc"),
            about("list-documents", ""),
        ] {
            let error = world.library(request).await.unwrap_err();
            let told = (error.code(), error.message.as_str());
            assert_eq!(
                told,
                (ErrorCode::Storage, "the store is damaged"),
                "{column}"
            );
        }
        let well = world.library(about("get-document-metadata", "urn:well"));
        assert!(well.await.is_ok(), "{column}");
        conn.execute(&set, [whole]).unwrap();
    }
}

tg_testkit::on_both_buses!(
    damaged_metadata_is_told,
    a_document_is_added_streamed_and_removed,
    an_upload_is_told_where_it_stands,
    an_upload_is_gone_on_with_by_its_hash,
    texts_of_a_trace_are_taken_in_once,
    texts_of_a_workspace_that_is_gone_are_forgotten,
);
