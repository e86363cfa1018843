//! `embeddings`: answers requests for vectors.

use std::sync::Arc;

use async_trait::async_trait;
use tg_mesh::{Cx, RequestHandler, Responder};
use tg_provider_http::within;
use tg_schemas::msg::{EmbeddingsRequest, EmbeddingsResponse};
use tg_schemas::{Error, ErrorCode};

use crate::embedder::Asked;
use crate::error::EmbedError;
use crate::provider_client::{ProviderClient, failed};

/// The operation that asks how it stands with the provider.
const STATUS: &str = "status";

pub(crate) struct Embeddings {
    pub(crate) provider_client: Arc<ProviderClient>,
}

impl Embeddings {
    /// Whether the provider answers and has the model, in a sentence for the doctor.
    async fn status(&self, cx: &Cx) -> Result<EmbeddingsResponse, Error> {
        let model = cx.parameter("model");
        let looked = self
            .provider_client
            .look(model, cx.deadline.left(), &cx.cancel);
        let told = looked.await;
        let status = told.map_err(|told| Error::new(ErrorCode::Provider, told))?;
        Ok(EmbeddingsResponse {
            status,
            ..EmbeddingsResponse::default()
        })
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
        if ask.operation == STATUS {
            return out.send(self.status(&cx).await?).await;
        }
        let left = within(cx.deadline.left());
        let embedder = &self.provider_client.client;
        let asked = match ask.model.as_str() {
            "" => Asked::Flows(cx.parameter("model")),
            exactly => Asked::Exactly(exactly),
        };
        let work = embedder.embed(asked, &ask.texts, left);
        let embedded = tokio::select! {
            embedded = work => embedded,
            () = cx.cancel.cancelled() => return Err(EmbedError::Timeout.into()),
        };
        let embedded = embedded.map_err(|error| failed(&self.provider_client, &cx, error))?;
        let answer = EmbeddingsResponse::new(&embedded.vectors, embedded.model, ask.packed);
        out.send(answer).await
    }
}
