//! The embeddings service: texts as vectors.

use std::time::Duration;

use tg_mesh::{Ask, Cx, Mesh, Peer};
use tg_schemas::msg::{EmbeddingsRequest, EmbeddingsResponse};
use tg_schemas::processors::shared;
use tg_schemas::{Error, ErrorCode, Topic};

use crate::caller::Caller;

/// Texts as vectors, and the model that made them.
#[derive(Debug, Clone, Default)]
pub struct Embedded {
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
    let told = asking.last(&texts(vec![SAMPLE.to_owned()])).await?.model;
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
    let mut answer = caller.last(&texts(wanted)).await?;
    let vectors = answer.take_vectors(count).ok_or_else(|| {
        Error::new(
            ErrorCode::Internal,
            "the embeddings service returned another number of vectors than texts",
        )
    })?;
    Ok(Embedded {
        vectors,
        model: answer.model,
    })
}

/// The question for vectors of texts, which come packed from a service of ours.
fn texts(texts: Vec<String>) -> EmbeddingsRequest {
    EmbeddingsRequest {
        texts,
        packed: true,
        ..EmbeddingsRequest::default()
    }
}
