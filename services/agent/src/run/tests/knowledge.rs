//! The tools that look into the collections of a run.

use std::sync::Arc;

use base64::Engine;
use tg_clients::library::BASE64;
use tg_mesh::Processor;
use tg_schemas::msg::*;
use tg_schemas::processors::{self, ProcessorSpec, Serves, Spec};
use tg_schemas::{Class, Error, ErrorCode};
use tg_testkit::fakes::{Embeddings, Played};
use tg_testkit::place::Place;

use super::world::{Say, World, ask_for, question, rows, topic};

const LIBRARY: Spec<Serves<LibrarianRequest, LibrarianResponse>> =
    Spec::pair("request", "response");
const CHUNKS: Spec<Serves<DocumentEmbeddingsRequest, DocumentEmbeddingsResponse>> =
    Spec::pair("request", "response");

/// The tools, as rows name them.
const TOOLS: [&str; 7] = [
    "list_kbs",
    "list_documents",
    "count_documents",
    "summarize_kb",
    "search_kb",
    "list_chunks",
    "get_document",
];

/// Each collection has a document, which has a page, which has a chunk.
fn library() -> Arc<Played<LibrarianRequest, LibrarianResponse>> {
    let document = |base: &str| DocumentMetadata {
        id: format!("{base}-doc"),
        title: format!("Report of {base}"),
        kind: "text/plain".to_owned(),
        ..DocumentMetadata::default()
    };
    let part = |id: String, kind: &str, parent: String| DocumentMetadata {
        id,
        parent_id: parent,
        document_type: kind.to_owned(),
        ..DocumentMetadata::default()
    };
    Played::new(move |_, asked: LibrarianRequest| {
        let id = asked.document_id.as_str();
        let base = id.split('-').next().unwrap_or_default();
        let found = match asked.operation.as_str() {
            "list-documents" => vec![document(&asked.collection)],
            "list-children" if id.ends_with("-doc") => {
                vec![part(format!("{base}-page"), "page", id.to_owned())]
            }
            "list-children" if id.ends_with("-page") => {
                vec![part(format!("{base}-chunk"), "chunk", id.to_owned())]
            }
            _ => Vec::new(),
        };
        let known = match id.rsplit('-').next() {
            _ if asked.operation != "get-document-metadata" => None,
            Some("doc") => Some(document(base)),
            Some("page") => Some(part(id.to_owned(), "page", format!("{base}-doc"))),
            Some("chunk") => Some(part(id.to_owned(), "chunk", format!("{base}-page"))),
            _ => return Err(Error::new(ErrorCode::NotFound, "there is no such document")),
        };
        let text = |id: &String| BASE64.encode(format!("text of {id}"));
        Ok(LibrarianResponse {
            document_metadata: known,
            document_metadatas: found,
            contents: asked.document_ids.iter().map(text).collect(),
            ..LibrarianResponse::default()
        })
    })
}

/// The later collection of the alphabet fits better.
fn vectors() -> Arc<Played<DocumentEmbeddingsRequest, DocumentEmbeddingsResponse>> {
    Played::new(|_, asked: DocumentEmbeddingsRequest| {
        if asked.collection == "bad" {
            return Err(Error::new(ErrorCode::Internal, "it is broken"));
        }
        let score = if asked.collection == "k2" { 0.9 } else { 0.5 };
        Ok(DocumentEmbeddingsResponse {
            chunks: vec![ChunkMatch {
                chunk_id: format!("{}-chunk", asked.collection),
                score,
                ..ChunkMatch::default()
            }],
            ..DocumentEmbeddingsResponse::default()
        })
    })
}

/// The row of a tool.
const ROW: &str = r#"{"group": ["knowledge"]}"#;

/// A flow with these tools, each with this row, whose model makes these calls, one after the other.
async fn world(place: &Place, row: &str, calls: Vec<Say>) -> World {
    let rows = rows();
    for tool in TOOLS {
        rows.put("tool-native", tool, row);
    }
    for (name, processor, base) in [
        ("embeddings-request", "embeddings", "embeddings"),
        ("document-embeddings-request", "chunks", "chunks"),
        ("librarian-request", "texts", "texts"),
    ] {
        let request = topic(Class::Request, base).to_string();
        ask_for(&rows, name, processor, &request);
    }
    let more = vec![
        Processor::new(processors::embeddings::PROCESSOR).serves(
            processors::embeddings::REQUEST,
            Embeddings::new("", |_| vec![1.0]),
        ),
        Processor::new(ProcessorSpec::unlisted("chunks")).serves(CHUNKS, vectors()),
        Processor::new(ProcessorSpec::unlisted("texts")).serves(LIBRARY, library()),
    ];
    let world = World::among(place, calls, rows, more).await;
    world.attached(&["embeddings", "chunks", "texts"]).await;
    world
}

/// What the tools returned in a run that may look into these collections.
async fn seen(place: &Place, calls: &[&'static str], collections: &[&str]) -> Vec<String> {
    seen_with(place, ROW, calls, collections).await
}

/// The same with tools of this row.
async fn seen_with(
    place: &Place,
    row: &str,
    calls: &[&'static str],
    collections: &[&str],
) -> Vec<String> {
    let script = calls.iter().copied().chain(["Final Answer: done"]);
    let world = world(place, row, script.map(Say::Text).collect()).await;
    let asked = AgentRequest {
        group: Some(vec!["*".into()]),
        tool_names: Some(TOOLS.map(str::to_owned).to_vec()),
        collections: collections.iter().map(|one| (*one).to_owned()).collect(),
        ..question("q", false)
    };
    let said = world.run(&asked).await;
    let seen = said.into_iter();
    let seen = seen.filter(|one| one.message_type == "observation");
    seen.map(|one| one.content).collect()
}

async fn each_tool_looks_into_the_collections_of_the_run(place: Place) {
    let calls = [
        "Action: list_kbs\nArgs: {}",
        "Action: list_documents\nArgs: {}",
        "Action: count_documents\nArgs: {\"knowledgeBaseId\": \"k2\"}",
        "Action: summarize_kb\nArgs: {\"knowledgeBaseId\": \"k1\"}",
        "Action: search_kb\nArgs: {\"query\": \"Which?\", \"limit\": 99}",
        "Action: list_chunks\nArgs: {\"documentId\": \"k1-doc\"}",
        "Action: get_document\nArgs: {\"documentId\": \"k2-chunk\"}",
    ];
    let seen = seen(&place, &calls, &["k1", "bad", "k2"]).await;
    let expected = [
        "* k1\n* bad\n* k2",
        "* Report of k1 (k1-doc) in k1\n* Report of bad (bad-doc) in bad\n* Report of k2 (k2-doc) in k2",
        "k2: 1 document",
        "k1: 1 document\n* Report of k1 (k1-doc)",
        // One that cannot be searched is left out.
        "Passage k2-chunk in k2:\ntext of k2-chunk\n\nPassage k1-chunk in k1:\ntext of k1-chunk",
        "Chunk k1-chunk:\ntext of k1-chunk",
        "Id: k2-doc\nTitle: Report of k2\nMedia type: text/plain",
    ];
    assert_eq!(seen, expected);
}

async fn a_run_looks_into_no_other_collection(place: Place) {
    let calls = [
        "Action: search_kb\nArgs: {\"query\": \"Which?\", \"knowledgeBaseId\": \"k2\"}",
        "Action: get_document\nArgs: {\"documentId\": \"k2-chunk\"}",
        "Action: list_chunks\nArgs: {\"documentId\": \"k2-doc\"}",
        "Action: list_documents\nArgs: {\"collection\": \"k2\"}",
        "Action: summarize_kb\nArgs: {}",
    ];
    let seen = seen(&place, &calls, &["k1"]).await;
    assert_eq!(seen.len(), calls.len(), "{seen:?}");
    let base = "Error: knowledgeBaseId: there is no such knowledge base";
    assert!(seen[0].starts_with(base), "{seen:?}");
    for told in &seen[1..3] {
        assert_eq!(told, "Error: documentId: there is no such document");
    }
    for told in &seen[3..] {
        assert!(told.starts_with("Error: "), "{told}");
    }
}

async fn a_tool_with_a_collection_of_its_own_looks_into_that_one(place: Place) {
    let row = r#"{"group": ["knowledge"], "collection": "k2"}"#;
    let calls = [
        "Action: list_kbs\nArgs: {}",
        "Action: get_document\nArgs: {\"documentId\": \"k2-chunk\"}",
        "Action: get_document\nArgs: {\"documentId\": \"k1-chunk\"}",
    ];
    let seen = seen_with(&place, row, &calls, &["k1"]).await;
    let expected = [
        "* k2",
        "Id: k2-doc\nTitle: Report of k2\nMedia type: text/plain",
        "Error: documentId: there is no such document",
    ];
    assert_eq!(seen, expected);
}

tg_testkit::on_both_buses!(
    a_tool_with_a_collection_of_its_own_looks_into_that_one,
    each_tool_looks_into_the_collections_of_the_run,
    a_run_looks_into_no_other_collection,
);
