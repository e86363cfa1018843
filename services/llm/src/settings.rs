//! Which provider serves: read from settings, all mistakes told at once, each with its key.

use std::sync::Arc;

use crate::builtin::Builtin;
use crate::model::ChatModel;
use crate::providers::{Anthropic, Ollama, OpenAi};
use crate::secret::Secret;

const OPENAI_URL: &str = "https://api.openai.com/v1";
const OPENAI_MODEL: &str = "gpt-4.1-mini";
const ANTHROPIC_URL: &str = "https://api.anthropic.com";
const ANTHROPIC_MODEL: &str = "claude-sonnet-4-5";
const OLLAMA_MODEL: &str = "granite4:350m";
const OLLAMA_PORT: u16 = 11434;

/// A mistake in one setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct SettingFault {
    /// The setting.
    pub key: &'static str,
    /// What is wrong with it; never repeats its value.
    pub message: String,
}

/// The chosen provider.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum ProviderSettings {
    /// The extractive reader.
    #[default]
    Builtin,
    /// Anything that speaks OpenAI chat completions.
    OpenAi {
        /// Base address, up to and including the version.
        base_url: String,
        /// Key; local servers often need none.
        key: Option<Secret>,
        /// Model when a flow names none.
        model: String,
    },
    /// Anthropic messages.
    Anthropic {
        /// Base address without version.
        base_url: String,
        /// Key.
        key: Secret,
        /// Model when a flow names none.
        model: String,
    },
    /// A local Ollama.
    Ollama {
        /// Base address.
        host: String,
        /// Model when a flow names none.
        model: String,
        /// Context length to ask for.
        context: Option<u32>,
    },
}

impl ProviderSettings {
    /// Reads the settings through `lookup`. The first of OpenAI, Anthropic and Ollama that is
    /// configured is taken; none means the builtin reader.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, Vec<SettingFault>> {
        let get = |name: &str| {
            let text = lookup(name)?.trim().to_owned();
            (!text.is_empty()).then_some(text)
        };
        let mut faults = Vec::new();
        let chosen = if get("OPENAI_BASE_URL").is_some() || get("OPENAI_API_KEY").is_some() {
            Self::OpenAi {
                base_url: address(
                    "OPENAI_BASE_URL",
                    get("OPENAI_BASE_URL"),
                    OPENAI_URL,
                    &mut faults,
                ),
                key: key("OPENAI_API_KEY", get("OPENAI_API_KEY"), &mut faults),
                model: get("OPENAI_MODEL").unwrap_or_else(|| OPENAI_MODEL.to_owned()),
            }
        } else if let Some(secret) = key("ANTHROPIC_API_KEY", get("ANTHROPIC_API_KEY"), &mut faults)
        {
            Self::Anthropic {
                base_url: address(
                    "ANTHROPIC_BASE_URL",
                    get("ANTHROPIC_BASE_URL"),
                    ANTHROPIC_URL,
                    &mut faults,
                ),
                key: secret,
                model: get("ANTHROPIC_MODEL").unwrap_or_else(|| ANTHROPIC_MODEL.to_owned()),
            }
        } else if let Some(host) = get("OLLAMA_HOST") {
            let context = get("OLLAMA_CONTEXT_LENGTH").and_then(|text| {
                let number = text.parse().ok().filter(|number| *number > 0);
                if number.is_none() {
                    faults.push(SettingFault {
                        key: "OLLAMA_CONTEXT_LENGTH",
                        message: "must be a whole number above 0".to_owned(),
                    });
                }
                number
            });
            let host = ollama_address(&host);
            Self::Ollama {
                host: address("OLLAMA_HOST", Some(host), "", &mut faults),
                model: get("OLLAMA_MODEL").unwrap_or_else(|| OLLAMA_MODEL.to_owned()),
                context,
            }
        } else {
            Self::Builtin
        };
        if faults.is_empty() {
            Ok(chosen)
        } else {
            Err(faults)
        }
    }

    /// Whether no provider is configured.
    pub fn is_builtin(&self) -> bool {
        matches!(self, Self::Builtin)
    }

    /// The choice in words, without address or key.
    pub fn describe(&self) -> String {
        match self {
            Self::Builtin => crate::builtin::NAME.to_owned(),
            Self::OpenAi { model, .. } => format!("{model} (OpenAI-compatible)"),
            Self::Anthropic { model, .. } => format!("{model} (Anthropic)"),
            Self::Ollama { model, .. } => format!("{model} (Ollama)"),
        }
    }

    /// The model, ready to be asked. Opens no connection.
    pub fn build(&self) -> Result<Arc<dyn ChatModel>, SettingFault> {
        let fault = |key| {
            move |()| SettingFault {
                key,
                message: "no HTTP client can be made for it".to_owned(),
            }
        };
        Ok(match self {
            Self::Builtin => Arc::new(Builtin),
            Self::OpenAi {
                base_url,
                key,
                model,
            } => Arc::new(
                OpenAi::new(base_url, key.clone(), model).map_err(fault("OPENAI_BASE_URL"))?,
            ),
            Self::Anthropic {
                base_url,
                key,
                model,
            } => Arc::new(
                Anthropic::new(base_url, key.clone(), model)
                    .map_err(fault("ANTHROPIC_BASE_URL"))?,
            ),
            Self::Ollama {
                host,
                model,
                context,
            } => Arc::new(Ollama::new(host, model, *context).map_err(fault("OLLAMA_HOST"))?),
        })
    }
}

fn address(
    key: &'static str,
    text: Option<String>,
    fallback: &str,
    faults: &mut Vec<SettingFault>,
) -> String {
    let text = text.unwrap_or_else(|| fallback.to_owned());
    let fault = match reqwest::Url::parse(&text) {
        Ok(url) if !matches!(url.scheme(), "http" | "https") => {
            Some("must start with http:// or https://")
        }
        Ok(url) if url.host_str().is_none() => Some("names no host"),
        Ok(_) => None,
        Err(_) => Some("is not a valid address"),
    };
    if let Some(message) = fault {
        faults.push(SettingFault {
            key,
            message: message.to_owned(),
        });
    }
    text.trim_end_matches('/').to_owned()
}

fn key(key: &'static str, text: Option<String>, faults: &mut Vec<SettingFault>) -> Option<Secret> {
    let text = text?;
    if text.chars().any(|c| c.is_control() || !c.is_ascii()) {
        faults.push(SettingFault {
            key,
            message: "holds characters that no key has".to_owned(),
        });
    }
    Some(Secret::new(text))
}

/// `OLLAMA_HOST` may lack the scheme and the port, and may be the address a server listens on.
fn ollama_address(text: &str) -> String {
    if text.contains("://") {
        return text.to_owned();
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.to_owned()),
        _ => (text, OLLAMA_PORT.to_string()),
    };
    let host = match host {
        "" | "0.0.0.0" | "[::]" => "127.0.0.1",
        other => other,
    };
    format!("http://{host}:{port}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(pairs: &[(&str, &str)]) -> Result<ProviderSettings, Vec<SettingFault>> {
        ProviderSettings::from_lookup(|name| {
            pairs
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn nothing_set_means_builtin() {
        let settings = from(&[("OPENAI_API_KEY", " ")]).unwrap();
        assert!(settings.is_builtin());
        let model = settings.build().unwrap();
        assert_eq!(
            model.default_model(),
            "builtin (extractive, not a language model)"
        );
    }

    #[test]
    fn each_provider_is_chosen_by_its_settings() {
        let openai = from(&[("OPENAI_BASE_URL", "http://127.0.0.1:1/v1/")]).unwrap();
        assert_eq!(
            openai,
            ProviderSettings::OpenAi {
                base_url: "http://127.0.0.1:1/v1".into(),
                key: None,
                model: OPENAI_MODEL.into(),
            }
        );
        assert!(openai.build().is_ok());
        let anthropic = from(&[("ANTHROPIC_API_KEY", "k"), ("OLLAMA_HOST", "x")]).unwrap();
        assert!(matches!(anthropic, ProviderSettings::Anthropic { .. }));
        assert!(anthropic.build().is_ok(), "https is constructible");
        for (host, expected) in [
            ("0.0.0.0", "http://127.0.0.1:11434"),
            ("gpu:1234", "http://gpu:1234"),
            ("https://o.example/", "https://o.example"),
        ] {
            let ProviderSettings::Ollama { host, .. } = from(&[("OLLAMA_HOST", host)]).unwrap()
            else {
                panic!("ollama expected");
            };
            assert_eq!(host, expected);
        }
    }

    #[test]
    fn all_mistakes_are_told_and_no_value_is_shown() {
        let faults = from(&[
            ("OPENAI_BASE_URL", "ftp://hidden-host/x"),
            ("OPENAI_API_KEY", "sk-hidden\u{7f}"),
        ])
        .unwrap_err();
        let text: Vec<String> = faults.iter().map(ToString::to_string).collect();
        assert_eq!(text.len(), 2);
        assert!(text[0].starts_with("OPENAI_BASE_URL: "));
        assert!(text[1].starts_with("OPENAI_API_KEY: "));
        assert!(!text.join(" ").contains("hidden"));
    }

    #[test]
    fn settings_never_print_the_key() {
        let settings = from(&[("OPENAI_API_KEY", "sk-hidden")]).unwrap();
        assert!(!format!("{settings:?} {}", settings.describe()).contains("sk-hidden"));
    }
}
