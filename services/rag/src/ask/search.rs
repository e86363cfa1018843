//! Embeddings, and look-ups of entities and chunks.

pub use tg_clients::embeddings::Embedded;
use tg_mesh::Cx;
use tg_schemas::Error;
use tg_schemas::msg::{
    DocumentEmbeddingsRequest, EntityMatch, GraphEmbeddingsRequest, KeywordIndexRequest,
};
use tg_schemas::processors::shared::{DOCUMENT_EMBEDDINGS, GRAPH_EMBEDDINGS, KEYWORD_INDEX};

use super::few;

/// Look-ups at a time; a question has no more (see [`crate::engine::concepts::MOST`]).
const AT_ONCE: usize = 16;

/// Entities nearest to each vector, one list per vector. Fails only when every look-up does.
pub async fn entities(
    cx: &Cx,
    collection: &str,
    embedded: &Embedded,
    limit: usize,
) -> Result<Vec<Vec<EntityMatch>>, Error> {
    let look_ups = embedded.vectors.iter().map(|vector| async move {
        let request = GraphEmbeddingsRequest {
            vector: vector.clone(),
            limit: limit as i64,
            collection: collection.to_owned(),
            model: embedded.model.clone(),
            ..GraphEmbeddingsRequest::default()
        };
        let answer = cx.ask(GRAPH_EMBEDDINGS, &request)?;
        Ok(answer.last().await?.entities)
    });
    some(cx, few(look_ups.collect(), AT_ONCE).await)
}

/// Chunks nearest to each vector, one list per vector, best first. Fails only when every look-up does.
pub async fn by_meaning(
    cx: &Cx,
    collection: &str,
    embedded: &Embedded,
    limit: usize,
) -> Result<Vec<Vec<String>>, Error> {
    let look_ups = embedded.vectors.iter().map(|vector| async move {
        let request = DocumentEmbeddingsRequest {
            vector: vector.clone(),
            limit: limit as i64,
            collection: collection.to_owned(),
            model: embedded.model.clone(),
            ..DocumentEmbeddingsRequest::default()
        };
        let answer = cx.ask(DOCUMENT_EMBEDDINGS, &request)?;
        let mut chunks = answer.last().await?.chunks;
        chunks.sort_by(|a, b| b.score.total_cmp(&a.score));
        Ok(chunks.into_iter().map(|chunk| chunk.chunk_id).collect())
    });
    some(cx, few(look_ups.collect(), AT_ONCE).await)
}

/// Chunks that hold a question's words, best first.
pub async fn by_words(
    cx: &Cx,
    collection: &str,
    question: &str,
    limit: usize,
) -> Result<Vec<String>, Error> {
    let request = KeywordIndexRequest {
        query: question.to_owned(),
        limit: limit as i64,
        collection: collection.to_owned(),
    };
    let answer = cx.ask(KEYWORD_INDEX, &request)?;
    let mut chunks = answer.last().await?.chunks;
    chunks.sort_by(|a, b| b.score.total_cmp(&a.score));
    Ok(chunks.into_iter().map(|chunk| chunk.chunk_id).collect())
}

/// What succeeded; the first failure if nothing did, or if the question is over.
fn some<T>(cx: &Cx, results: Vec<Result<T, Error>>) -> Result<Vec<T>, Error> {
    let mut found = Vec::with_capacity(results.len());
    let mut failure = None;
    for result in results {
        match result {
            Ok(one) => found.push(one),
            Err(error) if error.code().is_over() => return Err(error),
            Err(error) => {
                tg_mesh::warn_of!(cx, %error, "a lookup failed");
                failure.get_or_insert(error);
            }
        }
    }
    match failure {
        Some(error) if found.is_empty() => Err(error),
        _ => Ok(found),
    }
}
