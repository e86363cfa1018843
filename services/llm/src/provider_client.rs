//! How it stands with the provider of the model: what of its failures is reported and noted.

use std::time::Duration;

use tg_mesh::{Cx, warn_of};
use tg_provider_http::{Failure, Listed, Lists, Outage};
use tg_schemas::Error;
use tokio_util::sync::CancellationToken;

use crate::completer::Completer;
use crate::error::LlmError;

/// A model with what is known of its provider; the builtin reader has none.
pub(crate) type ProviderClient = tg_provider_http::ProviderClient<Completer>;

impl Failure for LlmError {
    fn outage(&self) -> Option<Outage> {
        Self::outage(self)
    }

    fn is_the_providers(&self) -> bool {
        Self::is_the_providers(self)
    }
}

impl Lists for Completer {
    const SERVER: &'static str = "the model provider";
    const NONE: &'static str = "the builtin extractive reader answers";

    async fn listed(&self, within: Duration, cancel: &CancellationToken) -> Listed {
        let asked = self.list_models(within, cancel).await;
        match &asked {
            Ok(_) | Err(LlmError::UnknownModel(_) | LlmError::Unsupported) => note(true),
            Err(error) if error.is_outage() => note(false),
            Err(_) => {}
        }
        match asked {
            Ok(models) => Listed::Names(models.into_iter().map(|model| model.id).collect()),
            Err(error @ (LlmError::UnknownModel(_) | LlmError::Unsupported)) => {
                Listed::Unlisted(error.outage())
            }
            Err(error) => Listed::Failed(error.outage(), error.to_string()),
        }
    }
}

/// A failed call as whoever asked reads it; the log always has the address.
pub(crate) fn failed(
    provider_client: &ProviderClient,
    cx: &Cx,
    model: Option<&str>,
    error: LlmError,
) -> Error {
    if error.is_outage() {
        note(false);
    }
    let told = Error::from(error.clone());
    if !provider_client.client.router().is_alone() {
        // Which backend it was stands in the log: the settings name several.
        return told;
    }
    match provider_client.failed(model, &error, &error.to_string()) {
        None => told,
        Some((operators, message)) => {
            warn_of!(cx, "{operators}");
            let told = Error { message, ..told };
            // A pause is read at the end only.
            match error.pause() {
                Some(pause) => told.after(pause.as_secs()),
                None => told,
            }
        }
    }
}

/// Notes for the metrics whether the model answered.
pub(crate) fn note(answered: bool) {
    metrics::gauge!("tg_model_up").set(f64::from(u8::from(answered)));
}
