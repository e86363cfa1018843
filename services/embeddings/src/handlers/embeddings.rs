//! `embeddings`: answers requests for vectors.

use std::sync::Arc;

use async_trait::async_trait;
use tg_mesh::{Cx, RequestHandler, Responder};
use tg_provider_http::Origin;
use tg_schemas::Error;
use tg_schemas::msg::{EmbeddingsRequest, EmbeddingsResponse};

use crate::embedder::Embedder;
use crate::error::EmbedError;

pub(crate) struct Embeddings {
    pub(crate) embedder: Arc<Embedder>,
    /// The server that makes vectors, if one does.
    pub(crate) origin: Option<Origin>,
}

impl Embeddings {
    /// A failure as whoever asked reads it; where the server is at fault the log has its address, too.
    fn failed(&self, model: Option<&str>, error: EmbedError) -> Error {
        let told = Error::from(error.clone());
        let Some(origin) = self.origin.as_ref().filter(|_| error.is_the_providers()) else {
            return told;
        };
        let origin = origin.asked_for(model.filter(|model| !model.is_empty()));
        let text = origin.for_operators(error.outage(), &error.to_string());
        tracing::warn!("{text}");
        Error {
            message: origin.for_clients(&told.message),
            ..told
        }
    }
}

#[async_trait]
impl RequestHandler<EmbeddingsRequest, EmbeddingsResponse> for Embeddings {
    async fn serve(
        &self,
        cx: Cx,
        ask: EmbeddingsRequest,
        mut out: Responder<EmbeddingsResponse>,
    ) -> Result<(), Error> {
        let work = self
            .embedder
            .embed(cx.parameter("model"), &ask.texts, cx.deadline.left());
        let embedded = tokio::select! {
            embedded = work => embedded,
            () = cx.cancel.cancelled() => return Err(EmbedError::Timeout.into()),
        };
        let embedded = embedded.map_err(|error| self.failed(cx.parameter("model"), error))?;
        let answer = EmbeddingsResponse::new(&embedded.vectors, embedded.model, ask.packed);
        out.send(answer).await
    }
}
