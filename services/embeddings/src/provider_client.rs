//! How it stands with the server that makes vectors: what of its failures is reported.

use std::time::Duration;

use tg_mesh::{Cx, warn_of};
use tg_provider_http::{Failure, Listed, Lists, Outage};
use tg_schemas::Error;
use tokio_util::sync::CancellationToken;

use crate::embedder::Embedder;
use crate::error::EmbedError;

/// An embedder with what is known of its server; without one this process makes the vectors.
pub(crate) type ProviderClient = tg_provider_http::ProviderClient<Embedder>;

impl Failure for EmbedError {
    fn outage(&self) -> Option<Outage> {
        Self::outage(self)
    }

    fn is_the_providers(&self) -> bool {
        Self::is_the_providers(self)
    }
}

impl Lists for Embedder {
    const SERVER: &'static str = "the embeddings provider";
    const NONE: &'static str = "";

    async fn listed(&self, within: Duration, cancel: &CancellationToken) -> Listed {
        let asked = tokio::select! {
            asked = tokio::time::timeout(within, self.models()) => asked.unwrap_or(Err(EmbedError::Timeout)),
            () = cancel.cancelled() => Err(EmbedError::Timeout),
        };
        match asked {
            Ok(Some(names)) => Listed::Names(names),
            Ok(None) => Listed::Unlisted(None),
            Err(error @ EmbedError::UnknownModel(_)) => Listed::Unlisted(error.outage()),
            Err(error) => Listed::Failed(error.outage(), error.to_string()),
        }
    }
}

/// A failure as whoever asked reads it; where the server is at fault the log always has its address.
pub(crate) fn failed(provider_client: &ProviderClient, cx: &Cx, error: EmbedError) -> Error {
    let told = Error::from(error.clone());
    match provider_client.failed(cx.parameter("model"), &error, &told.message) {
        None => told,
        Some((operators, message)) => {
            warn_of!(cx, "{operators}");
            Error { message, ..told }
        }
    }
}
