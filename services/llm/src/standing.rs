//! How it stands with the provider: whether it answers and has the model, and how its failures are told. Whoever asks
//! reads what failed and which setting is behind it; the address is for those who run the system.

use std::time::Duration;

use tg_provider_http::Origin;
use tg_schemas::Error;
use tg_schemas::msg::ModelInfo;
use tokio_util::sync::CancellationToken;

use crate::completer::Completer;
use crate::error::LlmError;

/// How long the look at start may take.
const AT_START: Duration = Duration::from_secs(10);
/// What is kept of a look's time for its answer to travel.
const MARGIN: Duration = Duration::from_millis(200);
/// Models of a provider that are named at most.
const NAMED: usize = 8;

/// A model with what is known of its provider.
#[derive(Clone)]
pub(crate) struct Standing {
    pub(crate) completer: Completer,
    /// The provider's server; the builtin reader has none.
    pub(crate) origin: Option<Origin>,
    /// Whether looks say the address.
    pub(crate) tells_address: bool,
}

impl Standing {
    /// A failed call as whoever asked reads it; the log has the address, too.
    pub(crate) fn failed(&self, model: Option<&str>, error: LlmError) -> Error {
        let told = Error::from(error.clone());
        let Some(origin) = self.origin.as_ref().filter(|_| error.is_the_providers()) else {
            return told;
        };
        let origin = origin.asked_for(model);
        let text = origin.for_operators(error.outage(), &error.to_string());
        tracing::warn!("{text}");
        Error {
            message: origin.for_clients(&told.message),
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
        let told = self.ask(&origin.asked_for(model), within, cancel).await;
        match self.tells_address {
            true => told.operators,
            false => told.clients,
        }
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

    async fn ask(&self, origin: &Origin, within: Duration, cancel: &CancellationToken) -> Told {
        let within = within.saturating_sub(MARGIN);
        let about = format!("; {}", origin.told());
        let at = format!(" ({})", origin.address());
        let both = |good: bool, text: &str| {
            let told = |text: String| if good { Ok(text) } else { Err(text) };
            Told {
                operators: told(format!("{text}{at}{about}")),
                clients: told(format!("{text}{about}")),
            }
        };
        match self.completer.list_models(within, cancel).await {
            Ok(models) if has(&models, origin.model()) => {
                both(true, "the model provider answers and has the model")
            }
            Ok(models) => both(
                false,
                &format!(
                    "the model provider does not list the model; it has {}",
                    some(&models)
                ),
            ),
            // A server that has no list is no worse for that.
            Err(LlmError::UnknownModel | LlmError::Unsupported) => both(
                true,
                "the model provider answers, but does not list its models",
            ),
            Err(error) => Told {
                operators: Err(origin.for_operators(error.outage(), &error.to_string())),
                clients: Err(origin.for_clients(&error.to_string())),
            },
        }
    }
}

/// A sentence with the address, and one without.
struct Told {
    operators: Result<String, String>,
    clients: Result<String, String>,
}

/// Whether a list has a model: under its name, as the latest of its tags, or as a dated release of it.
fn has(models: &[ModelInfo], name: &str) -> bool {
    models.iter().any(|model| {
        let rest = model.id.strip_prefix(name);
        rest.is_some_and(|rest| {
            let dated = rest.strip_prefix('-').is_some_and(|date| {
                date.len() >= 8 && date.chars().all(|c| c.is_ascii_digit() || c == '-')
            });
            rest.is_empty() || rest == ":latest" || dated
        })
    })
}

/// The first of the models by name.
fn some(models: &[ModelInfo]) -> String {
    let mut names: Vec<&str> = models
        .iter()
        .take(NAMED)
        .map(|model| model.id.as_str())
        .collect();
    match models.len() {
        0 => "none".to_owned(),
        all => {
            if all > NAMED {
                names.push("…");
            }
            names.join(", ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(ids: &[&str]) -> Vec<ModelInfo> {
        let info = |id: &&str| ModelInfo {
            id: (*id).to_owned(),
            ..ModelInfo::default()
        };
        ids.iter().map(info).collect()
    }

    #[test]
    fn a_model_is_listed_by_its_name_tag_or_date() {
        let models = list(&[
            "gpt-4.1-mini",
            "llama3.2:latest",
            "claude-sonnet-4-5-20250929",
        ]);
        for name in [
            "gpt-4.1-mini",
            "llama3.2",
            "llama3.2:latest",
            "claude-sonnet-4-5",
        ] {
            assert!(has(&models, name), "{name}");
        }
        for name in ["gpt-4.1", "gpt-4", "llama3", "claude", ""] {
            assert!(!has(&models, name), "{name}");
        }
    }

    #[test]
    fn few_models_are_named() {
        assert_eq!(some(&[]), "none");
        assert_eq!(some(&list(&["a", "b"])), "a, b");
        let many = some(&list(&["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]));
        assert_eq!(many, "a, b, c, d, e, f, g, h, …");
    }
}
