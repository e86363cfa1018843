//! Embeddings, and look-ups of entities and chunks.

use tg_clients::embeddings::{Embedded, embed};
use tg_mesh::Cx;
use tg_schemas::msg::{
    DocumentEmbeddingsRequest, EntityMatch, GraphEmbeddingsRequest, KeywordIndexRequest,
};
use tg_schemas::processors::shared::{DOCUMENT_EMBEDDINGS, GRAPH_EMBEDDINGS, KEYWORD_INDEX};
use tg_schemas::{Error, ErrorCode};

use super::few;

/// Look-ups at a time; a question has no more (see [`crate::engine::concepts::MOST`]).
const AT_ONCE: usize = 16;
/// Times that a question is embedded again because the vectors of its collection are of another model: they may be switched
/// over in between.
const RETRIES: usize = 2;
/// Stands for the model where the flow's own gave no vectors. None has this name, so a store says which model its vectors are of.
const NO_MODEL: &str = "(none)";

/// What one look-up came to.
enum Found<T> {
    Here(T),
    /// The vectors of the collection are of this model.
    Other(String),
}

impl<T> Found<T> {
    fn of(found: T, model: String) -> Self {
        match model.is_empty() {
            true => Self::Here(found),
            false => Self::Other(model),
        }
    }
}

/// Makes the look-ups; where the collection's vectors are of another model, again with vectors of that one.
async fn in_its_model<T, F>(
    cx: &Cx,
    embedded: &mut Embedded,
    look_up: impl Fn(Vec<f32>, String, bool) -> F,
) -> Result<Vec<T>, Error>
where
    F: Future<Output = Result<Found<T>, Error>>,
{
    for left in (0..=RETRIES).rev() {
        // Asked the last time it is an error, which names both.
        let look_ups = embedded.vectors.iter();
        let look_ups =
            look_ups.map(|vector| look_up(vector.clone(), embedded.model.clone(), left > 0));
        let mut found = Vec::new();
        let mut other = None;
        for one in few(look_ups.collect(), AT_ONCE).await {
            match one {
                Ok(Found::Other(model)) => other = Some(model),
                Ok(Found::Here(one)) => found.push(Ok(one)),
                Err(error) => found.push(Err(error)),
            }
        }
        match other {
            Some(model) => embedded.again_as(cx, &model).await?,
            None => return some(cx, found),
        }
    }
    let text = "the collection is being changed to another embeddings model: ask again";
    Err(Error::new(ErrorCode::Unavailable, text))
}

/// The look-ups of texts, and what was searched with. A flow's own model that cannot be asked now keeps nobody from vectors
/// that are of another one, which questions are embedded by until the collection is switched over.
async fn of_texts<T, F>(
    cx: &Cx,
    searches: Vec<String>,
    look_up: impl Fn(Vec<f32>, String, bool) -> F,
) -> Result<(Vec<T>, Embedded), Error>
where
    F: Future<Output = Result<Found<T>, Error>>,
{
    match embed(cx, searches.clone(), None).await {
        Ok(mut embedded) => {
            let found = in_its_model(cx, &mut embedded, look_up).await?;
            Ok((found, embedded))
        }
        Err(error) if error.code().is_over() => Err(error),
        Err(error) => {
            let mut embedded = Embedded {
                texts: searches,
                vectors: vec![vec![1.0]],
                model: NO_MODEL.to_owned(),
            };
            match in_its_model(cx, &mut embedded, look_up).await {
                Ok(found) if embedded.model != NO_MODEL => Ok((found, embedded)),
                _ => Err(error),
            }
        }
    }
}

/// Entities nearest to each text, one list per text, and what was searched with. Fails only when every look-up does.
pub async fn entities(
    cx: &Cx,
    collection: &str,
    searches: Vec<String>,
    limit: usize,
) -> Result<(Vec<Vec<EntityMatch>>, Embedded), Error> {
    let look_up = |vector, model, tell_model| async move {
        let request = GraphEmbeddingsRequest {
            vector,
            limit: limit as i64,
            collection: collection.to_owned(),
            model,
            tell_model,
            ..GraphEmbeddingsRequest::default()
        };
        let answer = cx.ask(GRAPH_EMBEDDINGS, &request)?.last().await?;
        Ok(Found::of(answer.entities, answer.model))
    };
    of_texts(cx, searches, look_up).await
}

/// Chunks nearest to each text, one list per text, best first, and what was searched with. Fails only when every look-up does.
pub async fn by_meaning(
    cx: &Cx,
    collection: &str,
    searches: Vec<String>,
    limit: usize,
) -> Result<(Vec<Vec<String>>, Embedded), Error> {
    let look_up = |vector, model, tell_model| async move {
        let request = DocumentEmbeddingsRequest {
            vector,
            limit: limit as i64,
            collection: collection.to_owned(),
            model,
            tell_model,
            ..DocumentEmbeddingsRequest::default()
        };
        let mut answer = cx.ask(DOCUMENT_EMBEDDINGS, &request)?.last().await?;
        answer.chunks.sort_by(|a, b| b.score.total_cmp(&a.score));
        let ids = answer.chunks.into_iter().map(|chunk| chunk.chunk_id);
        Ok(Found::of(ids.collect(), answer.model))
    };
    of_texts(cx, searches, look_up).await
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
