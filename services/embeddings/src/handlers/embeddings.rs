//! `embeddings`: answers requests for vectors.

use std::sync::Arc;

use async_trait::async_trait;
use tg_mesh::{Cx, RequestHandler, Responder};
use tg_schemas::Error;
use tg_schemas::msg::{EmbeddingsRequest, EmbeddingsResponse};

use crate::embedder::Embedder;
use crate::error::EmbedError;

pub(crate) struct Embeddings(pub(crate) Arc<Embedder>);

#[async_trait]
impl RequestHandler<EmbeddingsRequest, EmbeddingsResponse> for Embeddings {
    async fn serve(
        &self,
        cx: Cx,
        ask: EmbeddingsRequest,
        mut out: Responder<EmbeddingsResponse>,
    ) -> Result<(), Error> {
        let work = self
            .0
            .embed(cx.parameter("model"), &ask.texts, cx.deadline.left());
        let embedded = tokio::select! {
            embedded = work => embedded,
            () = cx.cancel.cancelled() => Err(EmbedError::Timeout),
        };
        let embedded = embedded?;
        let answer = EmbeddingsResponse::new(&embedded.vectors, embedded.model, ask.packed);
        out.send(answer).await
    }
}
