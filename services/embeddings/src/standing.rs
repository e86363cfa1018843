//! How it stands with the server that makes vectors: whether it answers and has the model, and how its failures are told.
//! Whoever asks reads what failed, with its status and cause, and which setting is behind it; the address is for those who
//! run the system.

use std::sync::Arc;
use std::time::Duration;

use tg_mesh::{Cx, warn_of};
use tg_provider_http::{Listed, Look, Origin};
use tg_schemas::Error;
use tokio_util::sync::CancellationToken;

use crate::embedder::Embedder;
use crate::error::EmbedError;

/// How long the look at start may take.
const AT_START: Duration = Duration::from_secs(10);
/// What is kept of a look's time for its answer to travel.
const MARGIN: Duration = Duration::from_millis(200);

/// Most that is kept of a question's time for its failure to travel: whoever asks reads it instead of silence.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// How long the server may take where an answer is waited for as long as this.
pub(crate) fn within(left: Duration) -> Duration {
    left - (left / 5).min(LAST_WORDS)
}

/// An embedder with what is known of its server.
#[derive(Clone)]
pub(crate) struct Standing {
    pub(crate) embedder: Arc<Embedder>,
    /// The server that makes vectors; without one this process makes them.
    pub(crate) origin: Option<Origin>,
    /// Whether looks and errors say the address.
    pub(crate) tells_address: bool,
}

impl Standing {
    /// A failure as whoever asked reads it; where the server is at fault the log always has its address.
    pub(crate) fn failed(&self, cx: &Cx, model: Option<&str>, error: EmbedError) -> Error {
        let told = Error::from(error.clone());
        let Some(origin) = self.origin.as_ref().filter(|_| error.is_the_providers()) else {
            return told;
        };
        let origin = origin.asked_for(model.filter(|model| !model.is_empty()));
        let outage = error.outage();
        let text = origin.for_operators(outage, &error.to_string());
        warn_of!(cx, "{text}");
        Error {
            message: origin.for_clients(outage, &told.message, self.tells_address),
            ..told
        }
    }

    /// Whether the server answers and has the model, in a sentence; empty where this process makes the vectors.
    ///
    /// # Errors
    /// The sentence, where it does not.
    pub(crate) async fn look(
        &self,
        model: Option<&str>,
        within: Duration,
        cancel: &CancellationToken,
    ) -> Result<String, String> {
        let Some(origin) = &self.origin else {
            return Ok(String::new());
        };
        let origin = origin.asked_for(model.filter(|model| !model.is_empty()));
        self.ask(&origin, within, cancel)
            .await
            .told(self.tells_address)
    }

    /// Looks once, and logs what is wrong.
    pub(crate) async fn look_at_start(&self, cancel: &CancellationToken) {
        let Some(origin) = &self.origin else {
            return;
        };
        let looked = self.ask(origin, AT_START, cancel).await.operators;
        if let (Err(text), false) = (looked, cancel.is_cancelled()) {
            tracing::warn!("{text}");
        }
    }

    async fn ask(&self, origin: &Origin, within: Duration, cancel: &CancellationToken) -> Look {
        let within = within.saturating_sub(MARGIN);
        let asked = tokio::select! {
            asked = tokio::time::timeout(within, self.embedder.models()) => asked,
            () = cancel.cancelled() => return Look::at(origin, SERVER, failed(EmbedError::Timeout)),
        };
        let listed = match asked.unwrap_or(Err(EmbedError::Timeout)) {
            Ok(Some(names)) => Listed::Names(names),
            Ok(None) => Listed::Unlisted(None),
            Err(error @ EmbedError::UnknownModel(_)) => Listed::Unlisted(error.outage()),
            Err(error) => failed(error),
        };
        Look::at(origin, SERVER, listed)
    }
}

/// What the server is called.
const SERVER: &str = "the embeddings provider";

fn failed(error: EmbedError) -> Listed {
    Listed::Failed(error.outage(), error.to_string())
}
