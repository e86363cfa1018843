//! What stands around the service: a model that sums up, and a flow that finds passages.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tg_mesh::{Cx, Processor};
use tg_schemas::msg::{
    ChatCompletionRequest, ChatCompletionResponse, ChatUsage, ChunkMatch,
    DocumentEmbeddingsRequest, DocumentEmbeddingsResponse, DocumentMetadata, EmbeddingsRequest,
    EmbeddingsResponse, LibrarianRequest, LibrarianResponse, RerankerRequest, RerankerResponse,
    RerankerResult,
};
use tg_schemas::processors::{
    doc_embeddings_query, embeddings, librarian, reranker, text_completion,
};
use tg_schemas::{Class, Error, ErrorCode};
use tg_testkit::fakes::{Play, Played};
use tg_testkit::flow::Wiring;

/// What the played model says.
pub(super) type Sums =
    Arc<Mutex<Box<dyn Fn(&ChatCompletionRequest) -> Result<String, Error> + Send>>>;
/// The played model.
pub(super) type Model = Arc<Played<ChatCompletionRequest, ChatCompletionResponse>>;
/// What finds chunks. Of the collection `bad` it finds none: it fails.
pub(super) type Chunks = Arc<Played<DocumentEmbeddingsRequest, DocumentEmbeddingsResponse>>;

/// Processors of the flow, but for its agent.
pub(super) const WIRING: [Wiring; 4] = [
    ("text-completion", &[]),
    ("embeddings", &[("request", Class::Request, "embeddings")]),
    (
        "doc-embeddings-query",
        &[("request", Class::Request, "document-embeddings")],
    ),
    ("reranker", &[("request", Class::Request, "reranker")]),
];

/// Where the reranking service of a workspace is.
pub(super) const ORDER: &str = "https://order.example/rerank";

/// A model that says what the test says.
pub(super) fn model(sums: &Sums) -> Model {
    let summed = sums.clone();
    Played::new(move |cx: &Cx, asked: ChatCompletionRequest| {
        // It counts in the budgets of whoever the turn is for.
        assert_eq!(cx.counted(), None);
        let with = summed.lock();
        Ok(Play::of(vec![ChatCompletionResponse {
            content: (**with)(&asked)?,
            model: Some(asked.model.unwrap_or_else(|| "of-flow".to_owned())),
            backend: Some("near".to_owned()),
            attempts: Some(2),
            usage: Some(ChatUsage {
                input: 10,
                output: 5,
                total: 15,
                ..ChatUsage::default()
            }),
            end_of_stream: true,
            ..ChatCompletionResponse::default()
        }]))
    })
}

/// Eight chunks of each collection.
pub(super) fn chunks() -> Chunks {
    Played::new(|_: &Cx, asked: DocumentEmbeddingsRequest| {
        if asked.collection == "bad" {
            return Err(Error::new(ErrorCode::Storage, "out of order"));
        }
        let found = (0..8).take(usize::try_from(asked.limit).unwrap_or_default());
        let found = found.map(|at| ChunkMatch {
            chunk_id: format!("{}-{at}", asked.collection),
            score: 0.9 - f64::from(at) / 100.0,
            ..ChunkMatch::default()
        });
        Ok(DocumentEmbeddingsResponse {
            chunks: found.collect(),
            ..DocumentEmbeddingsResponse::default()
        })
    })
}

/// The processors around the service.
pub(super) fn processors(model: &Model, chunks: &Chunks) -> Vec<Processor> {
    let vectors = Played::new(|_: &Cx, asked: EmbeddingsRequest| {
        let vectors = vec![vec![1.0_f32, 0.0]; asked.texts.len()];
        Ok(EmbeddingsResponse::new(
            &vectors,
            "e".to_owned(),
            asked.packed,
        ))
    });
    // A chunk `docs-1` is a part of the document `docs`.
    let library = Played::new(|_: &Cx, asked: LibrarianRequest| {
        if asked.operation == "get-document-metadata" {
            let parent = asked.document_id.split_once('-').map(|(parent, _)| parent);
            let known = DocumentMetadata {
                parent_id: parent.unwrap_or_default().to_owned(),
                id: asked.document_id.clone(),
                ..DocumentMetadata::default()
            };
            return Ok(LibrarianResponse {
                document_metadata: Some(known),
                ..LibrarianResponse::default()
            });
        }
        let text = |id: &String| STANDARD.encode(format!("text of {id}"));
        Ok(LibrarianResponse {
            contents: asked.document_ids.iter().map(text).collect(),
            ..LibrarianResponse::default()
        })
    });
    // The last text fits best, for the service of a workspace the second. It fails for the question `fail`.
    let order = Played::new(|_: &Cx, asked: RerankerRequest| {
        if asked.queries[0].query_text == "fail" {
            return Err(Error::new(ErrorCode::Internal, "out of order"));
        }
        let most = usize::try_from(asked.limit).unwrap_or_default();
        let settings = asked.settings.unwrap_or_default();
        let by = settings.service.unwrap_or_default();
        let mut documents = asked.documents;
        match (by.url.as_str(), by.credential.starts_with("file:")) {
            (ORDER, true) if settings.model == "m9" => drop(documents.remove(0)),
            _ => documents.reverse(),
        }
        let best = documents.into_iter().take(most);
        let results = best.map(|one| RerankerResult {
            document_id: one.document_id,
            ..RerankerResult::default()
        });
        Ok(RerankerResponse {
            error: None,
            results: results.collect(),
        })
    });
    vec![
        Processor::new(reranker::PROCESSOR).serves(reranker::REQUEST, order),
        Processor::new(text_completion::PROCESSOR).serves(text_completion::CHAT, model.clone()),
        Processor::new(embeddings::PROCESSOR).serves(embeddings::REQUEST, vectors),
        Processor::new(doc_embeddings_query::PROCESSOR)
            .serves(doc_embeddings_query::REQUEST, chunks.clone()),
        Processor::new(librarian::PROCESSOR).serves(librarian::LIBRARIAN, library),
    ]
}

/// The record of the flow; one that finds passages has the interfaces for it.
pub(super) fn record(retrieves: bool) -> Value {
    let topics = |base: &str| {
        json!({"request": format!("request:tg:{base}:default:default"),
               "response": format!("response:tg:{base}:default:default")})
    };
    let mut interfaces = json!({"agent": topics("agent")});
    if retrieves {
        for base in ["embeddings", "document-embeddings", "reranker"] {
            interfaces[base] = topics(base);
        }
    }
    json!({"description": "d", "blueprint-name": "b", "parameters": {}, "epoch": 1,
           "interfaces": interfaces})
}
