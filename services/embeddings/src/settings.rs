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

use tg_provider_http::{Secret, SettingFault, SettingReader, ollama_address};

use crate::embedder::{Bounds, Embedder};
use crate::provider::Provider;
use crate::provider::endpoint::{Dialect, Endpoint};
use crate::provider::statics::StaticModel;

const OPENAI_URL: &str = "https://api.openai.com/v1";
const OPENAI_MODEL: &str = "text-embedding-3-small";
const OLLAMA_MODEL: &str = "mxbai-embed-large";
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
        let mut reader = SettingReader::new(lookup);
        let defaults = Bounds::default();
        let dimensions = reader.whole("embeddings.dimensions", 1..=16_384);
        let provider = provider(&mut reader, data_dir);
        let cache = reader.whole("embeddings.cache_mb", 0..=65_536);
        let settings = Self {
            provider,
            dimensions,
            bounds: Bounds {
                batch: reader
                    .whole("embeddings.batch", 1..=2_048)
                    .unwrap_or(defaults.batch),
                calls: reader
                    .whole("embeddings.concurrency", 1..=256)
                    .unwrap_or(defaults.calls),
                cache: cache.map_or(defaults.cache, |megabytes| megabytes << 20),
            },
        };
        if settings.provider == ProviderSettings::Lexical && dimensions.is_some() {
            reader.wrong(
                "embeddings.dimensions",
                "lexical vectors have one dimension only; leave it out",
            );
        }
        reader.finish(settings)
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
                let server = server.map_err(|fault| SettingFault {
                    key: "embeddings.url",
                    message: fault.to_string(),
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

fn provider<F: Fn(&str) -> Option<String>>(
    reader: &mut SettingReader<F>,
    data_dir: &Path,
) -> ProviderSettings {
    let named = reader.text("embeddings.provider");
    match named.as_deref().unwrap_or("lexical") {
        "lexical" => {
            for key in ["embeddings.model", "embeddings.path", "embeddings.url"] {
                if reader.text(key).is_some() {
                    reader.wrong(
                        key,
                        "means nothing to the provider lexical: set embeddings.provider too",
                    );
                }
            }
            ProviderSettings::Lexical
        }
        "static" => statics(reader, data_dir),
        "openai" => endpoint(reader, Dialect::OpenAi),
        "ollama" => endpoint(reader, Dialect::Ollama),
        _ => {
            reader.wrong(
                "embeddings.provider",
                "must be one of lexical, static, openai, ollama",
            );
            ProviderSettings::Lexical
        }
    }
}

fn statics<F: Fn(&str) -> Option<String>>(
    reader: &mut SettingReader<F>,
    data_dir: &Path,
) -> ProviderSettings {
    let path = reader.text("embeddings.path").map(PathBuf::from);
    let model = reader.text("embeddings.model");
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
            reader.wrong(
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
        reader.wrong(
            "embeddings.model",
            "must be a plain name of letters, digits, '.', '_' and '-'",
        );
    }
    ProviderSettings::Static { name, directory }
}

fn endpoint<F: Fn(&str) -> Option<String>>(
    reader: &mut SettingReader<F>,
    dialect: Dialect,
) -> ProviderSettings {
    let own = reader.text("embeddings.url");
    let (url, model) = match dialect {
        Dialect::OpenAi => {
            let url = own.or_else(|| reader.text("OPENAI_BASE_URL"));
            (url.unwrap_or_else(|| OPENAI_URL.to_owned()), OPENAI_MODEL)
        }
        Dialect::Ollama => {
            let host = own.or_else(|| reader.text("OLLAMA_HOST"));
            (ollama_address(&host.unwrap_or_default()), OLLAMA_MODEL)
        }
    };
    let url = reader.address("embeddings.url", &url);
    let mut key = reader.secret("embeddings.key");
    if key.is_none() && dialect == Dialect::OpenAi {
        key = reader.secret("OPENAI_API_KEY");
    }
    let chosen = reader.text("embeddings.model");
    ProviderSettings::Endpoint {
        dialect,
        url,
        key,
        model: chosen.unwrap_or_else(|| model.to_owned()),
    }
}

#[cfg(test)]
mod tests;
