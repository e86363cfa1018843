//! How it stands with the provider: whether it answers and has the model, and how its failures are told. Whoever asks
//! reads what failed, with its status and cause, and which setting is behind it; the address is for those who run the
//! system.

use std::time::Duration;

use tg_mesh::{Cx, warn_of};
use tg_provider_http::{Listed, Look, Origin};
use tg_schemas::Error;
use tokio_util::sync::CancellationToken;

use crate::completer::Completer;
use crate::error::LlmError;

/// How long the look at start may take.
const AT_START: Duration = Duration::from_secs(10);
/// What is kept of a look's time for its answer to travel.
const MARGIN: Duration = Duration::from_millis(200);

/// Most that is kept of a question's time for its failure to travel: whoever asks reads it instead of silence.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// How long the provider may take where an answer is waited for as long as this.
pub(crate) fn within(left: Duration) -> Duration {
    left - (left / 5).min(LAST_WORDS)
}

/// A model with what is known of its provider.
#[derive(Clone)]
pub(crate) struct Standing {
    pub(crate) completer: Completer,
    /// The provider's server; the builtin reader has none.
    pub(crate) origin: Option<Origin>,
    /// Whether looks and errors say the address.
    pub(crate) tells_address: bool,
}

impl Standing {
    /// A failed call as whoever asked reads it; the log always has the address.
    pub(crate) fn failed(&self, cx: &Cx, model: Option<&str>, error: LlmError) -> Error {
        if error.is_outage() {
            note(false);
        }
        let told = Error::from(error.clone());
        let Some(origin) = self.origin.as_ref().filter(|_| error.is_the_providers()) else {
            return told;
        };
        let origin = origin.asked_for(model);
        let outage = error.outage();
        let text = origin.for_operators(outage, &error.to_string());
        warn_of!(cx, "{text}");
        Error {
            message: origin.for_clients(outage, &told.message, self.tells_address),
            ..told
        }
    }

    /// Whether the provider answers and has the model, in a sentence.
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
            return Ok("the builtin extractive reader answers".to_owned());
        };
        let look = self.ask(&origin.asked_for(model), within, cancel).await;
        look.told(self.tells_address)
    }

    /// Looks once, and logs what is wrong.
    pub(crate) async fn look_at_start(&self, cancel: &CancellationToken) {
        let Some(origin) = &self.origin else {
            note(true);
            return;
        };
        let looked = self.ask(origin, AT_START, cancel).await.operators;
        if let (Err(text), false) = (looked, cancel.is_cancelled()) {
            tracing::warn!("{text}");
        }
    }

    async fn ask(&self, origin: &Origin, within: Duration, cancel: &CancellationToken) -> Look {
        let within = within.saturating_sub(MARGIN);
        let asked = self.completer.list_models(within, cancel).await;
        match &asked {
            Ok(_) | Err(LlmError::UnknownModel(_) | LlmError::Unsupported) => note(true),
            Err(error) if error.is_outage() => note(false),
            Err(_) => {}
        }
        let listed = match asked {
            Ok(models) => Listed::Names(models.into_iter().map(|model| model.id).collect()),
            Err(error @ (LlmError::UnknownModel(_) | LlmError::Unsupported)) => {
                Listed::Unlisted(error.outage())
            }
            Err(error) => Listed::Failed(error.outage(), error.to_string()),
        };
        Look::at(origin, "the model provider", listed)
    }
}

/// Notes for the metrics whether the model answered.
pub(crate) fn note(answered: bool) {
    metrics::gauge!("tg_model_up").set(f64::from(u8::from(answered)));
}
