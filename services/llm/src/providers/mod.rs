//! Providers of models: one file per wire dialect over one small HTTP layer, and the table of the providers that settings may
//! name. Another provider is a row of `PROVIDERS`; if it has a dialect of its own, it brings a file.

mod anthropic;
mod builtin;
mod calls;
mod chats;
mod dialogs;
mod events;
mod failure;
mod fields;
#[cfg(test)]
mod fuzz;
mod listed;
mod ollama;
mod openai;
mod plain;
mod reading;

use std::sync::Arc;

use tg_provider_http::{NoClient, Secret, is_loopback, is_same_server, ollama_address};

use crate::engine::router::serving::Serves;
use crate::model::ChatModel;

pub use anthropic::Anthropic;
pub use builtin::Builtin;
pub use ollama::{Ollama, models_at};
pub use openai::OpenAi;

/// Whether a provider is told a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    /// Where there is one.
    Optional,
    /// Always.
    Required,
    /// Never.
    Refused,
}

/// A server that settings describe.
pub(crate) struct At<'a> {
    pub(crate) url: &'a str,
    pub(crate) key: Option<Secret>,
    /// The model where a question names none.
    pub(crate) model: &'a str,
    /// Tokens that it is to read at once, where it can be told.
    pub(crate) context: Option<u32>,
}

/// Makes the client of a server. Opens no connection.
type Connect = fn(At<'_>) -> Result<Arc<dyn ChatModel>, NoClient>;

/// A provider that settings may name.
pub(crate) struct Provider {
    pub(crate) name: &'static str,
    /// Its usual address. Empty: settings have to tell it, as it depends on region and project.
    url: &'static str,
    pub(crate) key: Key,
    /// The models that it has where settings list none.
    serves: Serves,
    /// So it is at its usual address only: elsewhere it has any model.
    only_there: bool,
    /// What an address means.
    address: fn(&str) -> String,
    pub(crate) connect: Connect,
}

/// All of them.
pub(crate) const PROVIDERS: &[Provider] = &[
    of_openai(
        "openai",
        "https://api.openai.com/v1",
        Serves::Containing(&["gpt", "o1", "o3"]),
    ),
    of_openai("xai", "https://api.x.ai/v1", Serves::Starting("grok")),
    of_openai(
        "openrouter",
        "https://openrouter.ai/api/v1",
        Serves::Everything,
    ),
    of_openai("groq", "https://api.groq.com/openai/v1", Serves::Everything),
    of_openai("mistral", "https://api.mistral.ai/v1", Serves::Everything),
    of_openai(
        "together",
        "https://api.together.xyz/v1",
        Serves::Everything,
    ),
    of_openai(
        "fireworks",
        "https://api.fireworks.ai/inference/v1",
        Serves::Everything,
    ),
    of_openai(
        "perplexity",
        "https://api.perplexity.ai",
        Serves::Everything,
    ),
    of_openai(
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        Serves::Everything,
    ),
    of_openai("lmstudio", "http://127.0.0.1:1234/v1", Serves::Everything),
    of_openai("bedrock", "", Serves::Everything),
    of_openai("vertex", "", Serves::Everything),
    Provider {
        name: "anthropic",
        url: "https://api.anthropic.com",
        key: Key::Required,
        serves: Serves::Containing(&["claude", "anthropic"]),
        only_there: false,
        address: str::to_owned,
        connect: anthropic_at,
    },
    Provider {
        name: "ollama",
        url: "",
        key: Key::Refused,
        serves: Serves::Everything,
        only_there: false,
        address: ollama_address,
        connect: ollama_at,
    },
];

/// A provider of the OpenAI dialect.
const fn of_openai(name: &'static str, url: &'static str, serves: Serves) -> Provider {
    Provider {
        name,
        url,
        key: Key::Optional,
        serves,
        only_there: true,
        address: str::to_owned,
        connect: openai_at,
    }
}

fn openai_at(at: At<'_>) -> Result<Arc<dyn ChatModel>, NoClient> {
    Ok(Arc::new(OpenAi::new(at.url, at.key, at.model)?))
}

fn anthropic_at(at: At<'_>) -> Result<Arc<dyn ChatModel>, NoClient> {
    // Settings without a key were refused.
    let key = at.key.unwrap_or_else(|| Secret::new(""));
    Ok(Arc::new(Anthropic::new(at.url, key, at.model)?))
}

fn ollama_at(at: At<'_>) -> Result<Arc<dyn ChatModel>, NoClient> {
    Ok(Arc::new(Ollama::new(at.url, at.model, at.context)?))
}

/// The provider of a name.
pub(crate) fn named(name: &str) -> Option<&'static Provider> {
    PROVIDERS.iter().find(|one| one.name == name)
}

/// Whether an address is the usual one of a provider that everybody reaches.
pub(crate) fn is_public(url: &str) -> bool {
    let mut usual = PROVIDERS.iter().map(|one| one.url);
    usual.any(|usual| is_same_server(usual, url) && !is_loopback(usual))
}

impl Provider {
    /// Its address: what settings say, else the usual one.
    pub(crate) fn address(&self, told: Option<&str>) -> String {
        (self.address)(told.unwrap_or(self.url))
    }

    /// Which models it has, where settings list none, at its usual address or elsewhere.
    pub(crate) fn serves(&self, elsewhere: bool) -> Serves {
        match elsewhere && self.only_there {
            true => Serves::Everything,
            false => self.serves.clone(),
        }
    }
}

#[cfg(test)]
mod odd_servers;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod thinking_tests;
