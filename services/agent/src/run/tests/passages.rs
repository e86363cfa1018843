//! The tool that returns passages of documents.

use std::sync::Arc;

use base64::Engine;
use tg_clients::library::BASE64;
use tg_mesh::Processor;
use tg_schemas::Class;
use tg_schemas::msg::*;
use tg_schemas::processors::{self, ProcessorSpec, Serves, Spec};
use tg_testkit::fakes::{Embeddings, Played};
use tg_testkit::place::Place;

use super::world::{Say, World, ask_for, question, rows, topic};

const LIBRARY: Spec<Serves<LibrarianRequest, LibrarianResponse>> =
    Spec::pair("request", "response");
const CHUNKS: Spec<Serves<DocumentEmbeddingsRequest, DocumentEmbeddingsResponse>> =
    Spec::pair("request", "response");
const END: &str = "Final Answer: done";

type Chunks = Arc<Played<DocumentEmbeddingsRequest, DocumentEmbeddingsResponse>>;

async fn world(place: &Place, call: &'static str) -> (World, Chunks) {
    let chunks: Chunks = Played::new(|_, asked: DocumentEmbeddingsRequest| {
        let found = ["a", "b"].map(|id| ChunkMatch {
            chunk_id: format!("{}-{id}", asked.collection),
            ..ChunkMatch::default()
        });
        Ok(DocumentEmbeddingsResponse {
            chunks: found.into(),
            ..DocumentEmbeddingsResponse::default()
        })
    });
    let library = Played::new(|_, asked: LibrarianRequest| {
        let text = |id: &String| BASE64.encode(format!("text of {id}"));
        Ok(LibrarianResponse {
            contents: asked.document_ids.iter().map(text).collect(),
            ..LibrarianResponse::default()
        })
    });
    let rows = rows();
    rows.put("tool-native", "rag_query", r#"{"group": ["passages"]}"#);
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
        Processor::new(ProcessorSpec::unlisted("chunks")).serves(CHUNKS, chunks.clone()),
        Processor::new(ProcessorSpec::unlisted("texts")).serves(LIBRARY, library),
    ];
    let script = [Say::Text(call), Say::Text(END)];
    let world = World::among(place, script, rows, more).await;
    world.attached(&["embeddings", "chunks", "texts"]).await;
    (world, chunks)
}

/// The agent `librarian` asks so.
async fn line_042_passages_are_found_and_told_to_the_model(place: Place) {
    for (given, call, collection, most) in [
        (
            "docs",
            "Action: rag_query\nArgs: {\"query\": \"Which?\"}",
            "docs",
            3,
        ),
        // Nobody named a collection for the run.
        (
            "default",
            "Action: rag_query\nArgs: {\"query\": \"Which?\", \"index\": \"other\", \"top_k\": 99}",
            "other",
            50,
        ),
    ] {
        let (world, chunks) = world(&place.another().await, call).await;
        let asked = AgentRequest {
            collection: given.into(),
            group: Some(vec!["*".into()]),
            tool_names: Some(vec!["rag_query".into()]),
            top_k: 3,
            ..question("q", false)
        };
        let said = world.run(&asked).await;
        let seen = said.iter().find(|one| one.message_type == "observation");
        let seen = &seen.expect("an observation").content;
        let expected = ["a", "b"].map(|id| format!("text of {collection}-{id}"));
        assert_eq!(
            *seen,
            format!("Passage 1:\n{}\n\nPassage 2:\n{}", expected[0], expected[1])
        );
        let calls = said.iter().filter(|one| one.message_type == "action");
        assert_eq!(calls.count(), 1);
        let asked = chunks.asked.lock();
        let asked = asked.last().expect("a search");
        assert_eq!((asked.collection.as_str(), asked.limit), (collection, most));
        // The model was told.
        let told = world.asked.lock();
        let shown = serde_json::to_string(&told[1]).expect("JSON");
        assert!(shown.contains(&expected[0]), "{shown}");
    }
}

/// What a document says to the model cannot lead it to a collection that the run is not given, by a list or by the one that its
/// request names.
async fn a_run_with_collections_searches_no_other(place: Place) {
    let call = "Action: rag_query\nArgs: {\"query\": \"Which?\", \"index\": \"other\"}";
    for (given, may) in [
        (&["docs"][..], false),
        (&["docs", "other"][..], true),
        (&[][..], false),
    ] {
        let (world, chunks) = world(&place.another().await, call).await;
        let asked = AgentRequest {
            collection: "docs".into(),
            collections: given.iter().map(|one| (*one).to_owned()).collect(),
            group: Some(vec!["*".into()]),
            tool_names: Some(vec!["rag_query".into()]),
            ..question("q", false)
        };
        let said = world.run(&asked).await;
        let seen = said.iter().find(|one| one.message_type == "observation");
        let seen = &seen.expect("an observation").content;
        let refused = seen == "Error: index: there is no such collection";
        assert_eq!(refused, !may, "{given:?}: {seen}");
        assert_eq!(chunks.asked.lock().len(), usize::from(may), "{given:?}");
    }
}

tg_testkit::on_both_buses!(
    line_042_passages_are_found_and_told_to_the_model,
    a_run_with_collections_searches_no_other,
);
