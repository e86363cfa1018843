//! The embeddings service: texts as vectors.

use std::time::Duration;

use tg_mesh::{Cx, Deadline};
use tg_schemas::msg::{EmbeddingsRequest, EmbeddingsResponse};
use tg_schemas::{Error, ErrorCode};

const SPEC: &str = "embeddings-request";

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
    };
    let mut options = cx.ask_options();
    if let Some(patience) = patience {
        options.deadline = Some(Deadline::after(patience));
    }
    let topic = cx.topic(SPEC)?;
    let answer = cx
        .mesh
        .ask::<_, EmbeddingsResponse>(topic, &request, options);
    let mut answer = answer.last().await?;
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
