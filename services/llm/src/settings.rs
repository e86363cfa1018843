//! Which provider serves: read from settings, all mistakes told at once, each with its key.

use std::sync::Arc;

use tg_provider_http::{NoClient, Secret, SettingFault, SettingReader, ollama_address};

use crate::builtin::Builtin;
use crate::model::ChatModel;
use crate::providers::{Anthropic, Ollama, OpenAi};

const OPENAI_URL: &str = "https://api.openai.com/v1";
const OPENAI_MODEL: &str = "gpt-4.1-mini";
const ANTHROPIC_URL: &str = "https://api.anthropic.com";
const ANTHROPIC_MODEL: &str = "claude-sonnet-4-5";
const OLLAMA_MODEL: &str = "granite4:350m";

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
        let mut reader = SettingReader::new(lookup);
        let chosen = if let Some(base_url) = reader.text("OPENAI_BASE_URL") {
            Self::openai(&mut reader, &base_url)
        } else if reader.text("OPENAI_API_KEY").is_some() {
            Self::openai(&mut reader, OPENAI_URL)
        } else if let Some(key) = reader.secret("ANTHROPIC_API_KEY") {
            let base_url = reader.text("ANTHROPIC_BASE_URL");
            let base_url = base_url.unwrap_or_else(|| ANTHROPIC_URL.to_owned());
            let model = reader.text("ANTHROPIC_MODEL");
            Self::Anthropic {
                base_url: reader.address("ANTHROPIC_BASE_URL", &base_url),
                key,
                model: model.unwrap_or_else(|| ANTHROPIC_MODEL.to_owned()),
            }
        } else if let Some(host) = reader.text("OLLAMA_HOST") {
            let model = reader.text("OLLAMA_MODEL");
            Self::Ollama {
                context: reader.count("OLLAMA_CONTEXT_LENGTH"),
                host: reader.address("OLLAMA_HOST", &ollama_address(&host)),
                model: model.unwrap_or_else(|| OLLAMA_MODEL.to_owned()),
            }
        } else {
            Self::Builtin
        };
        reader.finish(chosen)
    }

    fn openai<F: Fn(&str) -> Option<String>>(
        reader: &mut SettingReader<F>,
        base_url: &str,
    ) -> Self {
        let model = reader.text("OPENAI_MODEL");
        Self::OpenAi {
            base_url: reader.address("OPENAI_BASE_URL", base_url),
            key: reader.secret("OPENAI_API_KEY"),
            model: model.unwrap_or_else(|| OPENAI_MODEL.to_owned()),
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
            move |fault: NoClient| SettingFault {
                key,
                message: fault.to_string(),
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
