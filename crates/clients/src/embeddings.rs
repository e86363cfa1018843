//! The embeddings service: texts as vectors.

use std::time::Duration;

use tg_mesh::{Cx, Mesh};
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

/// The model that makes vectors behind a topic, asked on this process's own account; empty if it does not say.
///
/// # Errors
/// How the question failed.
pub async fn model_of(mesh: &Mesh, topic: &Topic, within: Duration) -> Result<String, Error> {
    let asking: Caller<EmbeddingsRequest, EmbeddingsResponse> =
        Caller::of_process(mesh, topic.clone()).at_most(within);
    // Without a text only the model is told.
    let answer = asking.last(&EmbeddingsRequest::default()).await?;
    Ok(answer.model)
}

/// Turns texts into vectors, all at once; no texts are not asked for. With `patience` the answer may take as long,
/// whatever is left of the message's own deadline.
///
/// # Errors
/// What the service says, and `internal` when it does not return one vector for each text.
pub async fn embed(
    cx: &Cx,
    texts: Vec<String>,
    patience: Option<Duration>,
) -> Result<Embedded, Error> {
    let count = texts.len();
    if count == 0 {
        return Ok(Embedded::default());
    }
    let request = EmbeddingsRequest {
        texts,
        packed: true,
        ..EmbeddingsRequest::default()
    };
    let mut caller = Caller::of_flow(cx, shared::EMBEDDINGS);
    if let Some(patience) = patience {
        caller = caller.patient(patience);
    }
    let mut answer = caller.last(&request).await?;
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
