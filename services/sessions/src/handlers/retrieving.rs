//! Passages for an agent before it answers: its question becomes a vector, the flow finds chunks, and the library has their texts.
//! What fails is logged, and the agent answers without it.

use std::time::Duration;

use tg_clients::flow_records::ReadyFlows;
use tg_clients::library::Library;
use tg_mesh::{Ask, Cx, Deadline, warn_of};
use tg_schemas::msg::{
    DocumentEmbeddingsRequest, DocumentEmbeddingsResponse, EmbeddingsRequest, EmbeddingsResponse,
    RerankerDocument, RerankerQuery, RerankerRequest, RerankerResponse,
};
use tg_schemas::{Class, Error, ErrorCode, FlowId, Topic};
use tokio::time::timeout;

use crate::engine::definition::{Definition, Reranking};
use crate::engine::retrieval::{self, Hit, merged, shown};
use crate::engine::workspace_agent::COLLECTIONS;

/// Interfaces of a flow that makes vectors, and that finds chunks by them.
const EMBEDDINGS: &str = "embeddings";
const CHUNKS: &str = "document-embeddings";
/// Interface of a flow that puts passages in order.
const RERANKER: &str = "reranker";
/// Characters of a passage that it reads.
const READ: usize = 1_000;
/// Passages whose documents are looked up, at most.
const DOCUMENTS: usize = 50;
/// How long each question may take, and all about documents.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What was found for a question.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// As the agent is shown it; empty: nothing.
    pub(super) shown: String,
    /// Chunk, collection and document of each passage; a document that is not known is empty.
    pub(super) chunks: Vec<[String; 3]>,
}

/// A flow among those that are known.
type OneFlow<'a> = (&'a ReadyFlows, &'a FlowId);

/// One search.
struct Search<'a> {
    cx: &'a Cx,
    chunks: Topic,
    vector: Vec<f32>,
    model: String,
    each: usize,
}

/// The topic of an interface of a flow.
fn topic(cx: &Cx, (flows, flow): OneFlow<'_>, interface: &str) -> Result<Topic, Error> {
    let record = flows.get(cx.config(), cx.workspace(), flow.as_str());
    let named = record
        .as_ref()
        .and_then(|one| one.topic(interface, Class::Request));
    let named = named.ok_or_else(|| {
        let text = "the flow has no interface for this";
        Error::new(ErrorCode::NotImplemented, text)
    })?;
    Topic::parse(named)
}

fn options(cx: &Cx) -> Ask {
    let end = Deadline::after(TIMEOUT);
    Ask {
        deadline: Some(end.min(cx.deadline)),
        ..cx.ask_options()
    }
}

impl Search<'_> {
    async fn of(&self, collection: &str) -> Result<Vec<Hit>, Error> {
        let question = DocumentEmbeddingsRequest {
            vector: self.vector.clone(),
            limit: i64::try_from(self.each).unwrap_or(i64::MAX),
            collection: collection.to_owned(),
            model: self.model.clone(),
            ..DocumentEmbeddingsRequest::default()
        };
        let answer = self.cx.mesh.ask(&self.chunks, &question, options(self.cx));
        let answer: DocumentEmbeddingsResponse = answer.last().await?;
        if let Some(error) = answer.error {
            return Err(error);
        }
        let hit = |one: tg_schemas::msg::ChunkMatch| Hit {
            chunk: one.chunk_id,
            collection: collection.to_owned(),
            score: one.score,
        };
        Ok(answer.chunks.into_iter().map(hit).collect())
    }
}

/// Passages for a question, of the collections that the agent reads before it answers.
pub(super) async fn passages(cx: &Cx, flow: OneFlow<'_>, agent: &Definition, query: &str) -> Found {
    if agent.collections.is_empty() {
        return Found::default();
    }
    match found(cx, flow, agent, query).await {
        Ok(found) => found,
        Err(error) => {
            warn_of!(cx, agent = agent.name, %error, "an agent answers without passages");
            Found::default()
        }
    }
}

async fn found(
    cx: &Cx,
    flow: OneFlow<'_>,
    agent: &Definition,
    query: &str,
) -> Result<Found, Error> {
    let question = EmbeddingsRequest {
        texts: vec![query.to_owned()],
        ..EmbeddingsRequest::default()
    };
    let answer = cx
        .mesh
        .ask(&topic(cx, flow, EMBEDDINGS)?, &question, options(cx));
    let mut answer: EmbeddingsResponse = answer.last().await?;
    let vector = answer.take_vectors(1).and_then(|mut all| all.pop());
    let search = Search {
        cx,
        chunks: topic(cx, flow, CHUNKS)?,
        vector: vector.ok_or_else(|| Error::new(ErrorCode::Internal, "there is no vector"))?,
        model: answer.model,
        each: usize::try_from(agent.rag_top_k).unwrap_or(1).max(1),
    };
    let mut all = Vec::new();
    for collection in agent.collections.iter().take(COLLECTIONS) {
        match search.of(collection).await {
            Ok(hits) => all.push(hits),
            Err(error) => {
                // The others are searched all the same.
                all.push(Vec::new());
                warn_of!(cx, collection, %error, "a collection is not searched");
            }
        }
    }
    let best = merged(all, search.each, agent.rag_min_score);
    let ids: Vec<String> = best.iter().map(|hit| hit.chunk.clone()).collect();
    let library = Library::of_workspace(cx).at_most(TIMEOUT);
    let texts = library.texts(&ids).await?;
    let there = best.into_iter().zip(texts);
    let there = there.filter_map(|(hit, passage)| Some((hit, passage?.text)));
    let mut there: Vec<(Hit, String)> = there.collect();
    if let Some(by) = agent.rerank.as_ref().filter(|_| !there.is_empty()) {
        there = reranked((cx, flow), query, there, by).await;
    }
    let (hits, texts): (Vec<Hit>, Vec<String>) = there.into_iter().unzip();
    let ids = hits.iter().take(DOCUMENTS).map(|hit| hit.chunk.clone());
    let ids: Vec<String> = ids.collect();
    // They are named where the library says them soon: the turn goes on without.
    let documents = timeout(TIMEOUT, library.documents_of(&ids)).await;
    let mut documents = documents.unwrap_or_default().into_iter();
    let chunks = hits.into_iter().map(|hit| {
        let document = documents.next().flatten();
        let document = document.map_or_else(String::new, |one| one.id);
        [hit.chunk, hit.collection, document]
    });
    Ok(Found {
        shown: shown(&texts),
        chunks: chunks.collect(),
    })
}

/// The passages that a reranking service, or the reranker of the flow, finds the best. Where it does not answer, the order of the
/// searches decides.
async fn reranked(
    asked: (&Cx, OneFlow<'_>),
    query: &str,
    passages: Vec<(Hit, String)>,
    by: &Reranking,
) -> Vec<(Hit, String)> {
    let places = match places(asked, query, &passages, by).await {
        Ok(places) => places,
        Err(error) => {
            warn_of!(asked.0, %error, "passages are not reranked");
            (0..passages.len()).collect()
        }
    };
    retrieval::reranked(passages, places, most(by))
}

/// How many passages are kept.
fn most(by: &Reranking) -> usize {
    usize::try_from(by.kept).unwrap_or(1).max(1)
}

/// Where the best passages stand, the best first.
async fn places(
    (cx, flow): (&Cx, OneFlow<'_>),
    query: &str,
    passages: &[(Hit, String)],
    by: &Reranking,
) -> Result<Vec<usize>, Error> {
    let texts = passages.iter().zip(0..);
    let documents = texts.map(|((_, text), at): (_, usize)| RerankerDocument {
        document_id: at.to_string(),
        document_text: text.chars().take(READ).collect(),
    });
    let question = RerankerRequest {
        queries: vec![RerankerQuery {
            query_id: "0".to_owned(),
            query_text: query.to_owned(),
        }],
        documents: documents.collect(),
        limit: i64::try_from(most(by)).unwrap_or(i64::MAX),
        settings: by.settings.clone(),
    };
    let answer = cx
        .mesh
        .ask(&topic(cx, flow, RERANKER)?, &question, options(cx));
    let answer: RerankerResponse = answer.last().await?;
    if let Some(error) = answer.error {
        return Err(error);
    }
    let places = answer.results.iter();
    Ok(places
        .filter_map(|one| one.document_id.parse().ok())
        .collect())
}
