//! Which provider serves, and its bounds: read from settings, all mistakes told at once, each with its key.
//!
//! | key | meaning |
//! | --- | --- |
//! | `embeddings.provider` | `lexical` (default), `static`, `openai` (any endpoint of that dialect), `ollama` |
//! | `embeddings.model` | `static`: a directory below `<data_dir>/models`; else the provider's name of a model |
//! | `embeddings.path` | `static`: a directory anywhere, instead of `embeddings.model` |
//! | `embeddings.url` | base address; default `OPENAI_BASE_URL` or `OLLAMA_HOST` |
//! | `embeddings.key` | key of the endpoint; default `OPENAI_API_KEY` |
//! | `embeddings.dimensions` | shorter vectors, where the model is made for it |
//! | `embeddings.batch` | texts that a provider is given at once |
//! | `embeddings.concurrency` | calls of an endpoint at the same time |
//! | `embeddings.cache_mb` | vectors that are kept in memory |

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::embedder::{Bounds, Embedder};
use crate::provider::Provider;
use crate::provider::endpoint::{Dialect, Endpoint};
use crate::provider::statics::StaticModel;
use crate::secret::Secret;

const OPENAI_URL: &str = "https://api.openai.com/v1";
const OPENAI_MODEL: &str = "text-embedding-3-small";
const OLLAMA_MODEL: &str = "mxbai-embed-large";
const OLLAMA_PORT: u16 = 11434;
/// Where models are below the data directory.
const MODELS: &str = "models";

/// Every key with its default.
pub const KEYS: [(&str, &str); 9] = [
    ("embeddings.provider", "lexical"),
    ("embeddings.model", ""),
    ("embeddings.path", ""),
    ("embeddings.url", ""),
    ("embeddings.key", ""),
    ("embeddings.dimensions", ""),
    ("embeddings.batch", "64"),
    ("embeddings.concurrency", "4"),
    ("embeddings.cache_mb", "64"),
];

/// A mistake in one setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct SettingFault {
    /// The setting.
    pub key: &'static str,
    /// What is wrong with it; never repeats a key or an address.
    pub message: String,
}

/// The chosen provider.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ProviderSettings {
    /// Hashed words.
    #[default]
    Lexical,
    /// A table of token vectors.
    Static {
        /// Its name in answers.
        name: String,
        /// Its directory.
        directory: PathBuf,
    },
    /// A server.
    Endpoint {
        /// How it is spoken to.
        dialect: Dialect,
        /// Base address.
        url: String,
        /// Key; local servers often need none.
        key: Option<Secret>,
        /// Model when a flow names none.
        model: String,
    },
}

/// All settings of the service.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EmbeddingSettings {
    /// The provider.
    pub provider: ProviderSettings,
    /// Shorter vectors.
    pub dimensions: Option<usize>,
    /// Bounds.
    pub bounds: Bounds,
}

impl EmbeddingSettings {
    /// Reads the settings through `lookup`, which knows the keys above and the environment's names.
    pub fn from_lookup(
        lookup: impl Fn(&str) -> Option<String>,
        data_dir: &Path,
    ) -> Result<Self, Vec<SettingFault>> {
        let mut reader = Reader {
            lookup: |key: &str| {
                let text = lookup(key)?.trim().to_owned();
                (!text.is_empty()).then_some(text)
            },
            faults: Vec::new(),
        };
        let defaults = Bounds::default();
        let dimensions = reader.optional("embeddings.dimensions", 1, 16_384);
        let settings = Self {
            provider: reader.provider(data_dir),
            dimensions,
            bounds: Bounds {
                batch: reader.number("embeddings.batch", 1, 2_048, defaults.batch),
                calls: reader.number("embeddings.concurrency", 1, 256, defaults.calls),
                cache: reader.number("embeddings.cache_mb", 0, 65_536, defaults.cache >> 20) << 20,
            },
        };
        if settings.provider == ProviderSettings::Lexical && dimensions.is_some() {
            reader.wrong(
                "embeddings.dimensions",
                "lexical vectors have one dimension only; leave it out",
            );
        }
        match reader.faults.is_empty() {
            true => Ok(settings),
            false => Err(reader.faults),
        }
    }

    /// Whether vectors come from letters alone.
    pub fn is_lexical(&self) -> bool {
        self.provider == ProviderSettings::Lexical
    }

    /// The choice in words, without address or key.
    pub fn describe(&self) -> String {
        match &self.provider {
            ProviderSettings::Lexical => "lexical (shared words, no meaning)".to_owned(),
            ProviderSettings::Static { name, .. } => format!("{name} (static vectors)"),
            ProviderSettings::Endpoint { dialect, model, .. } => match dialect {
                Dialect::OpenAi => format!("{model} (OpenAI-compatible)"),
                Dialect::Ollama => format!("{model} (Ollama)"),
            },
        }
    }

    /// The embedder, ready to be asked. Reads a static model's files (blocks); opens no connection.
    pub fn build(&self) -> Result<Embedder, SettingFault> {
        let provider = match &self.provider {
            ProviderSettings::Lexical => Provider::Lexical,
            ProviderSettings::Static { name, directory } => {
                let model = StaticModel::load(directory, self.dimensions);
                let model = model.map_err(|message| SettingFault {
                    key: "embeddings.model",
                    message,
                })?;
                Provider::Static {
                    name: name.clone(),
                    model: Arc::new(model),
                }
            }
            ProviderSettings::Endpoint {
                dialect,
                url,
                key,
                model,
            } => {
                let server = Endpoint::new(*dialect, url, key.clone(), self.dimensions);
                let server = server.map_err(|()| SettingFault {
                    key: "embeddings.url",
                    message: "no HTTP client can be made for it".to_owned(),
                })?;
                Provider::Endpoint {
                    server: Arc::new(server),
                    model: model.clone(),
                }
            }
        };
        Ok(Embedder::new(provider, self.bounds))
    }
}

struct Reader<F> {
    lookup: F,
    faults: Vec<SettingFault>,
}

impl<F: Fn(&str) -> Option<String>> Reader<F> {
    fn wrong(&mut self, key: &'static str, message: impl Into<String>) {
        let message = message.into();
        self.faults.push(SettingFault { key, message });
    }

    fn provider(&mut self, data_dir: &Path) -> ProviderSettings {
        let named = (self.lookup)("embeddings.provider");
        match named.as_deref().unwrap_or("lexical") {
            "lexical" => {
                for key in ["embeddings.model", "embeddings.path", "embeddings.url"] {
                    if (self.lookup)(key).is_some() {
                        self.wrong(
                            key,
                            "means nothing to the provider lexical: set embeddings.provider too",
                        );
                    }
                }
                ProviderSettings::Lexical
            }
            "static" => self.statics(data_dir),
            "openai" => self.endpoint(Dialect::OpenAi),
            "ollama" => self.endpoint(Dialect::Ollama),
            _ => {
                self.wrong(
                    "embeddings.provider",
                    "must be one of lexical, static, openai, ollama",
                );
                ProviderSettings::Lexical
            }
        }
    }

    fn statics(&mut self, data_dir: &Path) -> ProviderSettings {
        let path = (self.lookup)("embeddings.path").map(PathBuf::from);
        let model = (self.lookup)("embeddings.model");
        let (name, directory) = match (path, model) {
            (Some(path), name) => {
                let last = path
                    .file_name()
                    .map(|name| name.to_string_lossy().into_owned());
                (name.or(last).unwrap_or_default(), path)
            }
            (None, Some(name)) => {
                let directory = data_dir.join(MODELS).join(&name);
                (name, directory)
            }
            (None, None) => {
                self.wrong(
                    "embeddings.model",
                    "names no directory below models in the data directory; `tg models pull` makes one \
                     (or set embeddings.path)",
                );
                return ProviderSettings::Lexical;
            }
        };
        let fine = !name.is_empty()
            && !name.starts_with('.')
            && name
                .chars()
                .all(|c| c.is_alphanumeric() || "._-".contains(c));
        if !fine {
            self.wrong(
                "embeddings.model",
                "must be a plain name of letters, digits, '.', '_' and '-'",
            );
        }
        ProviderSettings::Static { name, directory }
    }

    fn endpoint(&mut self, dialect: Dialect) -> ProviderSettings {
        let url = (self.lookup)("embeddings.url");
        let (url, model, key) = match dialect {
            Dialect::OpenAi => (
                url.or_else(|| (self.lookup)("OPENAI_BASE_URL"))
                    .unwrap_or_else(|| OPENAI_URL.to_owned()),
                OPENAI_MODEL,
                (self.lookup)("embeddings.key").or_else(|| (self.lookup)("OPENAI_API_KEY")),
            ),
            Dialect::Ollama => (
                ollama_address(
                    &url.or_else(|| (self.lookup)("OLLAMA_HOST"))
                        .unwrap_or_default(),
                ),
                OLLAMA_MODEL,
                (self.lookup)("embeddings.key"),
            ),
        };
        let fault = match reqwest::Url::parse(&url) {
            Ok(url) if !matches!(url.scheme(), "http" | "https") => {
                Some("must start with http:// or https://")
            }
            Ok(url) if url.host_str().is_none() => Some("names no host"),
            Ok(_) => None,
            Err(_) => Some("is not a valid address"),
        };
        if let Some(message) = fault {
            self.wrong("embeddings.url", message);
        }
        let odd = |key: &String| key.chars().any(|c| c.is_control() || !c.is_ascii());
        if key.as_ref().is_some_and(odd) {
            self.wrong("embeddings.key", "holds characters that no key has");
        }
        ProviderSettings::Endpoint {
            dialect,
            url: url.trim_end_matches('/').to_owned(),
            key: key.map(Secret::new),
            model: (self.lookup)("embeddings.model").unwrap_or_else(|| model.to_owned()),
        }
    }

    fn optional(&mut self, key: &'static str, least: usize, most: usize) -> Option<usize> {
        let text = (self.lookup)(key)?;
        let number = text.parse().ok();
        let number = number.filter(|number| (least..=most).contains(number));
        if number.is_none() {
            self.wrong(
                key,
                format!("must be a whole number from {least} to {most}"),
            );
        }
        number
    }

    fn number(&mut self, key: &'static str, least: usize, most: usize, usual: usize) -> usize {
        self.optional(key, least, most).unwrap_or(usual)
    }
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
mod tests;
