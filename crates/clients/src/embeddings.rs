//! The embeddings service: texts as vectors.

use std::time::Duration;

use tg_mesh::{Ask, Cx, Mesh, Peer};
use tg_schemas::msg::{EmbeddingsRequest, EmbeddingsResponse, Metadata};
use tg_schemas::processors::shared;
use tg_schemas::{Error, ErrorCode, Topic};

use crate::caller::Caller;
use crate::neighbours::Neighbours;

/// Texts as vectors, and the model that made them.
#[derive(Debug, Clone, Default)]
pub struct Embedded {
    /// The texts.
    pub texts: Vec<String>,
    /// One per text, in the order of the texts.
    pub vectors: Vec<Vec<f32>>,
    /// Name of the model; empty if the service does not say.
    pub model: String,
}

impl Embedded {
    /// The model, if the service says which.
    pub fn told(&self) -> Option<String> {
        Some(self.model.clone()).filter(|model| !model.is_empty())
    }

    /// Makes them again by the model that a collection's vectors are of: while a collection is changed to another model, and
    /// before, the flow's own is another one.
    ///
    /// # Errors
    /// `conflict`, which names both models, where that one is not served any more; otherwise what the service says.
    pub async fn again_as(&mut self, cx: &Cx, model: &str) -> Result<(), Error> {
        let question = texts(self.texts.clone(), model);
        let answer = Caller::of_flow(cx, shared::EMBEDDINGS)
            .last(&question)
            .await;
        let answer = answer.map_err(|error| match error.code() {
            ErrorCode::NotFound | ErrorCode::BadRequest => not_served(model, &self.model),
            _ => error,
        })?;
        self.vectors = made_by(answer, self.texts.len(), model)
            .ok_or_else(|| not_served(model, &self.model))?;
        model.clone_into(&mut self.model);
        Ok(())
    }
}

/// The vectors of an answer, if they are of this model.
fn made_by(mut answer: EmbeddingsResponse, count: usize, model: &str) -> Option<Vec<Vec<f32>>> {
    let vectors = answer.take_vectors(count)?;
    (answer.model == model).then_some(vectors)
}

/// A question cannot be asked of vectors that nobody makes any more.
fn not_served(held: &str, now: &str) -> Error {
    let text = format!(
        "model: this collection's vectors were made by '{held}', which the embeddings service does not serve any more; it \
         makes those of '{now}'. Have the collection embedded again (tg reembed-collection), or serve the former model"
    );
    Error::new(ErrorCode::Conflict, text)
}

/// Turns texts into vectors of one model, on this process's own account; no texts are not asked for.
///
/// # Errors
/// What the service behind the topic says, and `conflict` where it makes vectors of another model.
pub async fn embed_as(
    mesh: &Mesh,
    topic: &Topic,
    wanted: Vec<String>,
    model: &str,
    within: Duration,
) -> Result<Vec<Vec<f32>>, Error> {
    let count = wanted.len();
    if count == 0 {
        return Ok(Vec::new());
    }
    let question = texts(wanted, model);
    let caller: Caller<EmbeddingsRequest, EmbeddingsResponse> =
        Caller::of_process(mesh, topic.clone()).at_most(within);
    let answer = caller.last(&question).await?;
    made_by(answer, count, model).ok_or_else(|| {
        let text = "model: the flow makes vectors of another model now";
        Error::new(ErrorCode::Conflict, text)
    })
}

/// How it stands with the server that makes vectors behind a topic, in a sentence; `None` where there is none, or a foreign
/// service does not say.
///
/// # Errors
/// What is wrong with it, or how the question failed.
pub async fn status(mesh: &Mesh, topic: &Topic, within: Duration) -> Result<Option<String>, Error> {
    let asking: Caller<EmbeddingsRequest, EmbeddingsResponse> =
        Caller::of_process(mesh, topic.clone()).at_most(within);
    if !asking.neighbours().say_how_they_are() {
        return Ok(None);
    }
    let ask = EmbeddingsRequest {
        operation: "status".to_owned(),
        ..EmbeddingsRequest::default()
    };
    let told = asking.last(&ask).await?.status;
    Ok(Some(told).filter(|told| !told.is_empty()))
}

/// A text that a flow's embeddings are asked for when only their model matters: always the same, so that its vector is
/// remembered.
const SAMPLE: &str = "model";

/// The model that the embeddings behind a topic have now; `None` if they do not say. `ask` is for whom they are asked.
///
/// # Errors
/// How the question failed.
pub async fn model_of(peer: &Peer, topic: &Topic, ask: Ask) -> Result<Option<String>, Error> {
    named(Caller::for_somebody(peer, topic.clone(), ask)).await
}

/// The same, asked on this process's own account.
///
/// # Errors
/// How the question failed.
pub async fn model_now(
    mesh: &Mesh,
    topic: &Topic,
    within: Duration,
) -> Result<Option<String>, Error> {
    named(Caller::of_process(mesh, topic.clone()).at_most(within)).await
}

async fn named(
    asking: Caller<EmbeddingsRequest, EmbeddingsResponse>,
) -> Result<Option<String>, Error> {
    let told = asking
        .last(&texts(vec![SAMPLE.to_owned()], ""))
        .await?
        .model;
    Ok(Some(told).filter(|model| !model.is_empty()))
}

/// Turns texts into vectors, all at once; no texts are not asked for. With `patience` the answer may take as long,
/// whatever is left of the message's own deadline.
///
/// # Errors
/// What the service says, and `internal` when it does not return one vector for each text.
pub async fn embed(
    cx: &Cx,
    wanted: Vec<String>,
    patience: Option<Duration>,
) -> Result<Embedded, Error> {
    let count = wanted.len();
    if count == 0 {
        return Ok(Embedded::default());
    }
    let mut caller = Caller::of_flow(cx, shared::EMBEDDINGS);
    if let Some(patience) = patience {
        caller = caller.patient(patience);
    }
    let question = texts(wanted, "");
    let mut answer = caller.last(&question).await?;
    let vectors = answer.take_vectors(count).ok_or_else(|| {
        Error::new(
            ErrorCode::Internal,
            "the embeddings service returned another number of vectors than texts",
        )
    })?;
    Ok(Embedded {
        texts: question.texts,
        vectors,
        model: answer.model,
    })
}

/// The chunk that a store takes all vectors of a record to be of, from its metadata; `None` where each vector names its
/// own, so that records of several chunks may be joined.
pub fn chunk_of<'a>(peer: &Peer, metadata: &'a Metadata) -> Option<&'a str> {
    let foreign = !Neighbours::of(peer).name_chunks_by_vector();
    foreign.then_some(metadata.id.as_str())
}

/// The question for vectors of texts by a model, or the service's own where none is named; they come packed from a service of ours.
fn texts(texts: Vec<String>, model: &str) -> EmbeddingsRequest {
    EmbeddingsRequest {
        texts,
        model: model.to_owned(),
        packed: true,
        ..EmbeddingsRequest::default()
    }
}
