//! `embeddings`: answers requests for vectors.

use std::sync::Arc;

use async_trait::async_trait;
use tg_clients::model_calls::{ModelCall, ModelCalls, Took};
use tg_mesh::{Cx, RequestHandler, Responder};
use tg_provider_http::within;
use tg_schemas::msg::{EmbeddingsRequest, EmbeddingsResponse};
use tg_schemas::{Error, ErrorCode};

use crate::embedder::Asked;
use crate::error::EmbedError;
use crate::provider_client::{ProviderClient, failed};

/// The operation that asks how it stands with the provider.
const STATUS: &str = "status";
/// Characters of a token, where nobody counts them.
const TOKEN: usize = 4;

pub(crate) struct Embeddings {
    pub(crate) provider_client: Arc<ProviderClient>,
    /// Has what a server is asked reserved and counted; `None`: this process makes the vectors.
    pub(crate) calls: Option<ModelCalls>,
}

/// What texts of so many characters take of a model.
fn taking(model: &str, characters: usize) -> Took {
    Took {
        model: model.to_owned(),
        in_token: i64::try_from(characters / TOKEN).unwrap_or(i64::MAX),
        ..Took::default()
    }
}

/// The name that a provider has for a model which answers call `DIALECT/NAME/1536`.
fn own_name(model: &str) -> &str {
    let named = model.rsplit_once('/').map_or(model, |(named, _)| named);
    named.split_once('/').map_or(named, |(_, own)| own)
}

impl Embeddings {
    /// A server is about to be asked for vectors, if one makes them.
    ///
    /// # Errors
    /// A budget refuses the call.
    async fn begin(&self, cx: &Cx, ask: &EmbeddingsRequest) -> Result<Option<ModelCall>, Error> {
        let calls = self.calls.as_ref().filter(|_| !ask.texts.is_empty());
        let Some(calls) = calls else {
            return Ok(None);
        };
        let named = match ask.model.as_str() {
            "" => cx.parameter("model").unwrap_or_default(),
            exactly => own_name(exactly),
        };
        let characters = ask.texts.iter().map(|text| text.chars().count()).sum();
        calls.begin(cx, taking(named, characters)).await
    }

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
        // One that is left before its end counts as much as it was likely to take.
        let mut call = self.begin(&cx, &ask).await?;
        let work = embedder.embed(asked, &ask.texts, left);
        let embedded = tokio::select! {
            embedded = work => embedded,
            () = cx.cancel.cancelled() => return Err(EmbedError::Timeout.into()),
        };
        if let Some(call) = &mut call {
            match &embedded {
                Ok(made) => call.settle(taking(own_name(&made.model), made.asked)).await,
                Err(EmbedError::Timeout) => call.settle_as_likely().await,
                Err(_) => call.settle(Took::default()).await,
            }
        }
        let embedded = embedded.map_err(|error| failed(&self.provider_client, &cx, error))?;
        let answer = EmbeddingsResponse::new(&embedded.vectors, embedded.model, ask.packed);
        out.send(answer).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_counts_by_the_name_that_its_provider_has_for_it() {
        for (told, own) in [
            ("far/text-embedding-3-small/1536", "text-embedding-3-small"),
            ("far/BAAI/bge-m3/1024", "BAAI/bge-m3"),
            ("near/nomic-embed-text/768", "nomic-embed-text"),
        ] {
            assert_eq!(own_name(told), own);
        }
        assert_eq!(taking("m", 401).in_token, 100);
    }
}
