//! Which provider serves, and its bounds.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tg_provider_http::{
    Origin, Secret, address, is_same_server, not_of_gateway, ollama_address, sendable,
};
use tg_settings::{Filled, SettingError};

use crate::embedder::{Bounds, Embedder};
use crate::provider::Provider;
use crate::provider::endpoint::{Dialect, Endpoint};
use crate::provider::statics::StaticModel;

const OPENAI_URL: &str = "https://api.openai.com/v1";
const OPENAI_MODEL: &str = "text-embedding-3-small";
const OLLAMA_MODEL: &str = "mxbai-embed-large";
/// The variable of the key, where the setting is left open.
const OPENAI_KEY: &str = "OPENAI_API_KEY";
/// What chose a server whose address nobody said.
const CHOSEN_BY: &str = "embeddings.provider";
/// Where models are below the data directory.
const MODELS: &str = "models";

/// Who makes vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    /// Hashed words.
    Lexical,
    /// A table of token vectors.
    Static,
    /// Any server of the OpenAI dialect.
    OpenAi,
    /// An Ollama.
    Ollama,
}

tg_settings::options! {
    /// Who makes vectors of texts, and within which bounds.
    pub struct Options {
        /// `lexical` (shared words, no meaning), `static` (a table of token vectors), `openai` (any server of that
        /// dialect) or `ollama`.
        provider: ProviderKind = ProviderKind::Lexical;
        /// The provider's name of a model; empty: its usual one. `static`: a directory below `models` in the data
        /// directory.
        model: Option<String> = None;
        /// Directory of a static model, instead of `embeddings.model`.
        path: Option<PathBuf> = None;
        /// Base address of the server; empty: `OPENAI_BASE_URL` or `OLLAMA_HOST`, else its usual one.
        url: Option<String> = None;
        /// Key of the server; empty: `OPENAI_API_KEY`. It may be named: `env:NAME` or `file:PATH`.
        #[serde(deserialize_with = "tg_provider_http::by_reference")]
        key: Option<Secret> = None;
        /// Numbers of a vector, where the model can make shorter ones; empty: the model's own.
        dimensions: Option<usize> = None, Whole(1..=tg_schemas::limits::DIMENSIONS as u64);
        /// Texts that the provider is given at once.
        batch: usize = 64, Whole(1..=2_048);
        /// Questions to a server at the same time.
        concurrency: usize = 4, Whole(1..=256);
        /// Memory of remembered vectors, in MiB.
        cache_mb: usize = 64, Whole(0..=65_536);
    }
    given {
        /// Where the stores are; models are below it.
        data_dir: PathBuf,
        /// What the environment says of servers.
        variables: Variables,
        /// Whether errors, and who asks how it stands with the server, are told its address.
        tells_address: bool,
    }
}

tg_settings::options! {
    /// Servers as the environment names them, for what the settings leave open.
    pub struct Variables {
        /// Base address of an OpenAI-compatible server.
        openai_base_url: Option<String> = None;
        /// Its key.
        openai_api_key: Option<Secret> = None;
        /// Address of an Ollama.
        ollama_host: Option<String> = None;
    }
}

/// The provider, checked.
#[derive(Debug, PartialEq)]
enum Chosen {
    Lexical,
    Static { name: String, directory: PathBuf },
    Endpoint(Dialect, Server),
}

#[derive(Debug, PartialEq)]
struct Server {
    url: String,
    key: Option<Secret>,
    model: String,
    /// The setting or variable that chose it.
    set_by: &'static str,
}

impl Options {
    /// All mistakes that one setting alone does not show.
    pub fn faults(&self) -> Vec<SettingError> {
        self.chosen().err().unwrap_or_default()
    }

    /// Whether vectors come from letters alone.
    pub fn is_lexical(&self) -> bool {
        self.provider == ProviderKind::Lexical
    }

    /// The choice in words, without address or key.
    pub fn describe(&self) -> String {
        match self.chosen() {
            Ok(Chosen::Static { name, .. }) => format!("{name} (static vectors)"),
            Ok(Chosen::Endpoint(Dialect::OpenAi, to)) => {
                format!("{} (OpenAI-compatible)", to.model)
            }
            Ok(Chosen::Endpoint(Dialect::Ollama, to)) => format!("{} (Ollama)", to.model),
            Ok(Chosen::Lexical) | Err(_) => "lexical (shared words, no meaning)".to_owned(),
        }
    }

    /// The server that makes vectors, for those who run the system; `None`: this process makes them.
    pub fn origin(&self) -> Option<Origin> {
        match self.chosen() {
            Ok(Chosen::Endpoint(_, to)) => Some(Origin::new(&to.url, to.set_by, &to.model)),
            _ => None,
        }
    }

    /// What the settings that were left open are filled in with, where a server makes vectors.
    pub fn filled(&self) -> Vec<Filled> {
        let Ok(Chosen::Endpoint(_, to)) = self.chosen() else {
            return Vec::new();
        };
        let variable = to.set_by.starts_with(char::is_uppercase);
        let key = (self.key.is_none() && to.key.is_some()).then_some(OPENAI_KEY);
        let all = [
            (
                self.url.is_none(),
                "url",
                to.url,
                variable.then_some(to.set_by),
            ),
            (self.model.is_none(), "model", to.model, None),
            (key.is_some(), "key", Secret::SHOWN.to_owned(), key),
        ];
        let left = all.into_iter().filter(|(open, ..)| *open);
        left.map(|(_, name, value, by)| Filled { name, value, by })
            .collect()
    }

    /// The embedder, ready to be asked. Reads a static model's files (blocks); opens no connection.
    ///
    /// # Errors
    /// The first of [`Self::faults`], a model that cannot be read, or that no HTTP client can be made.
    pub fn embedder(&self) -> Result<Embedder, SettingError> {
        let first = |faults: Vec<SettingError>| faults.into_iter().next();
        let chosen = self.chosen().map_err(|faults| {
            first(faults).unwrap_or_else(|| SettingError::new("provider", "cannot be used"))
        })?;
        let provider = match chosen {
            Chosen::Lexical => Provider::Lexical,
            Chosen::Static { name, directory } => {
                let model = StaticModel::load(&directory, self.dimensions);
                let model = Arc::new(model.map_err(|message| SettingError::new("model", message))?);
                Provider::Static { name, model }
            }
            Chosen::Endpoint(
                dialect,
                Server {
                    url, key, model, ..
                },
            ) => {
                let server = Endpoint::new(dialect, &url, key, self.dimensions);
                let server = server.map_err(|fault| SettingError::new("url", fault.to_string()))?;
                let server = Arc::new(server);
                Provider::Endpoint { server, model }
            }
        };
        let bounds = Bounds {
            batch: self.batch,
            calls: self.concurrency,
            cache: self.cache_mb << 20,
        };
        Ok(Embedder::new(provider, bounds))
    }

    fn chosen(&self) -> Result<Chosen, Vec<SettingError>> {
        match self.provider {
            ProviderKind::Lexical => self.lexical(),
            ProviderKind::Static => self.statics().map_err(|fault| vec![fault]),
            ProviderKind::OpenAi => {
                let url = self.address(self.variables.openai_base_url.as_ref(), "OPENAI_BASE_URL");
                let (url, set_by) = url.unwrap_or((OPENAI_URL, CHOSEN_BY));
                let key = self.key.as_ref().or(self.variables.openai_api_key.as_ref());
                self.endpoint(Dialect::OpenAi, (url, set_by), key, OPENAI_MODEL)
            }
            ProviderKind::Ollama => {
                let host = self.address(self.variables.ollama_host.as_ref(), "OLLAMA_HOST");
                let (host, set_by) = host.unwrap_or(("", CHOSEN_BY));
                let url = ollama_address(host);
                self.endpoint(
                    Dialect::Ollama,
                    (&url, set_by),
                    self.key.as_ref(),
                    OLLAMA_MODEL,
                )
            }
        }
    }

    fn lexical(&self) -> Result<Chosen, Vec<SettingError>> {
        let other = "has no effect on the provider lexical: set embeddings.provider too";
        let one = "lexical vectors have one dimension only; leave it out";
        let faults: Vec<SettingError> = [
            ("model", self.model.is_some(), other),
            ("path", self.path.is_some(), other),
            ("url", self.url.is_some(), other),
            ("dimensions", self.dimensions.is_some(), one),
        ]
        .into_iter()
        .filter(|(_, given, _)| *given)
        .map(|(key, _, text)| SettingError::new(key, text))
        .collect();
        match faults.is_empty() {
            true => Ok(Chosen::Lexical),
            false => Err(faults),
        }
    }

    fn statics(&self) -> Result<Chosen, SettingError> {
        let last = |path: &Path| Some(path.file_name()?.to_string_lossy().into_owned());
        let (name, directory) = match (&self.path, &self.model) {
            (Some(path), name) => {
                let name = name.clone().or_else(|| last(path));
                (name.unwrap_or_default(), path.clone())
            }
            (None, Some(name)) => (name.clone(), self.data_dir.join(MODELS).join(name)),
            (None, None) => {
                let text = "is required: a directory below models in the data directory; `tg models pull` makes one \
                            (or set embeddings.path)";
                return Err(SettingError::new("model", text));
            }
        };
        let plain = |c: char| c.is_alphanumeric() || "._-".contains(c);
        if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
            let text = "must be a plain name of letters, digits, '.', '_' and '-'";
            return Err(SettingError::new("model", text));
        }
        Ok(Chosen::Static { name, directory })
    }

    /// The address that was given, and by which setting or variable.
    fn address<'a>(
        &'a self,
        variable: Option<&'a String>,
        name: &'static str,
    ) -> Option<(&'a str, &'static str)> {
        match (&self.url, variable) {
            (Some(url), _) => Some((url, "embeddings.url")),
            (None, Some(url)) => Some((url, name)),
            (None, None) => None,
        }
    }

    fn endpoint(
        &self,
        dialect: Dialect,
        (url, set_by): (&str, &'static str),
        key: Option<&Secret>,
        usual: &str,
    ) -> Result<Chosen, Vec<SettingError>> {
        let sent = sendable("key", key).and_then(|()| match is_same_server(url, OPENAI_URL) {
            true => not_of_gateway("key", key),
            false => Ok(()),
        });
        match (address("url", url), sent) {
            (Ok(url), Ok(())) => {
                let model = self.model.clone().unwrap_or_else(|| usual.to_owned());
                let key = key.cloned();
                let server = Server {
                    url,
                    key,
                    model,
                    set_by,
                };
                Ok(Chosen::Endpoint(dialect, server))
            }
            (url, key) => Err(url.err().into_iter().chain(key.err()).collect()),
        }
    }
}

#[cfg(test)]
mod tests;
