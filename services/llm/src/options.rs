//! Which provider serves: by the settings, and where they leave it open by the variables of the providers' own tools.
//! This is the one place that decides.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tg_provider_http::{
    Credentials, NoClient, Origin, Secret, address, is_listened_on, not_of_gateway, ollama_address,
    sendable,
};
use tg_settings::{Filled, SettingError};

use crate::completer::Completer;
use crate::engine::router::choice::Strategy;
use crate::engine::router::pauses::Policy;
use crate::model::ChatModel;
use crate::providers::{At, Builtin, Key, Provider, is_public, named};
use crate::routing::{Router, Rules};
use crate::services::Services;

mod backends;

pub use backends::Backends;

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    /// The extractive reader.
    Builtin,
    /// Any server of the OpenAI dialect.
    OpenAi,
    /// Anthropic.
    Anthropic,
    /// An Ollama.
    Ollama,
}

tg_settings::options! {
    /// The language model that answers.
    pub struct Options {
        /// `openai` (any server of that dialect), `anthropic`, `ollama`, or `builtin` (the extractive reader). Empty:
        /// `openai` if `llm.url` is set, else what the providers' variables say, else `builtin`.
        provider: Option<ProviderKind> = None;
        /// Base address of the server, for `openai` up to and including the version. Empty: `OPENAI_BASE_URL`,
        /// `ANTHROPIC_BASE_URL` or `OLLAMA_HOST`, else the provider's usual one.
        url: Option<String> = None;
        /// The provider's name of the model, where a flow names none. Empty: `OPENAI_MODEL`, `ANTHROPIC_MODEL` or
        /// `OLLAMA_MODEL`, else `gpt-4.1-mini`, `claude-sonnet-4-5` or `granite4:350m`.
        model: Option<String> = None;
        /// Key of the server; local ones often need none. Empty: `OPENAI_API_KEY` or `ANTHROPIC_API_KEY`. It
        /// may be named: `env:NAME` or `file:PATH`.
        #[serde(deserialize_with = "tg_provider_http::by_reference")]
        key: Option<Secret> = None;
        /// Where an Ollama is looked for at the start of a process in which the builtin reader serves: one that answers is
        /// offered in what is printed then, and never used by itself. Empty: `127.0.0.1:11434`.
        local_url: Option<String> = None;
        /// Tokens that the model reads at once, where a workspace says nothing of it (configuration of type `llm-model`, by
        /// the model's name: `{"context_window": 128000}`). A model of fewer than 16000 is not asked. 0: 128000.
        context_window: u64 = 0, Whole(0..=1 << 40);
        /// Several backends, one of which answers: a JSON array of objects with `provider`, `name`, `url`, `key`,
        /// `supported_models`, `model`, `priority`, `rate_limit_tpm`, `max_concurrent` and `timeout`, or `file:PATH` of one
        /// (see [models.md](models.md)). Empty: one provider, as `llm.provider`, `llm.url` and `llm.key` say.
        backends: Option<Backends> = None;
        /// Credentials that LLM services and reranking services of workspaces may name, each for one workspace or for all (`*`):
        /// `WORKSPACE=env:NAME` or `WORKSPACE=file:PATH`, separated by commas. Whoever changes these services of a workspace
        /// decides where such a credential is sent. Only the processes of `llm` and `reranker` read what is named; those of `sessions` need the
        /// list. Empty: none.
        credentials: Option<Credentials> = None;
        /// Whether LLM services and reranking services of workspaces may be at private addresses: of this machine, of local networks. Without users
        /// (`auth = none`) they may unless this says otherwise. Where they may not, names count by what they resolve to, and no
        /// proxy is asked. Link-local addresses and those of a cloud's metadata are never asked.
        private_addresses: bool = false;
        /// Which backend is asked: `failover` (the lowest priority number, then the next), `round-robin` or `least-loaded`.
        strategy: Option<String> = None;
        /// Attempts after the first, of a question with a model.
        retries: u32 = 3, Whole(0..=10);
        /// Seconds between the first attempt and the second; twice as long each time, give or take a quarter. A provider
        /// that asks for a pause is given that one.
        retry_base_delay: f64 = 1.0, Number(0.0..=60.0);
        /// Longest of these pauses in seconds.
        retry_max_delay: f64 = 60.0, Number(0.0..=3600.0);
    }
    given {
        /// What the environment says of providers.
        variables: Variables,
        /// Whether errors and the doctor say the provider's address: where everybody who asks runs the system.
        tells_address: bool,
    }
}

tg_settings::options! {
    /// Providers as the environment names them, for what the settings leave open: the first of OpenAI, Anthropic and
    /// Ollama that is configured serves.
    pub struct Variables {
        /// Base address of a server that speaks OpenAI chat completions, up to and including the version. Empty, with
        /// a key: OpenAI's own.
        openai_base_url: Option<String> = None;
        /// Key of that server; local ones often need none.
        openai_api_key: Option<Secret> = None;
        /// Its model when a flow names none. Empty: `gpt-4.1-mini`.
        openai_model: Option<String> = None;
        /// Key of Anthropic.
        anthropic_api_key: Option<Secret> = None;
        /// Base address of Anthropic, without version. Empty: its own.
        anthropic_base_url: Option<String> = None;
        /// Its model when a flow names none. Empty: `claude-sonnet-4-5`.
        anthropic_model: Option<String> = None;
        /// Address of an Ollama; scheme and port may be left out.
        ollama_host: Option<String> = None;
        /// Its model when a flow names none. Empty: `granite4:350m`.
        ollama_model: Option<String> = None;
        /// Context length asked of it, in tokens; empty: its own.
        ollama_context_length: Option<String> = None;
    }
}

/// A provider that the variables of its own tools configure, or settings alone: their names, and the usual model.
struct Vendor {
    /// Its name among all providers, and as people read it.
    name: (&'static str, &'static str),
    /// The variable of its address.
    url: &'static str,
    /// Where its key stands besides `llm.key`.
    key: &'static str,
    /// The variable of its model, and the usual one.
    model: (&'static str, &'static str),
}

const OPENAI: Vendor = Vendor {
    name: ("openai", "OpenAI-compatible"),
    url: "OPENAI_BASE_URL",
    key: "OPENAI_API_KEY",
    model: ("OPENAI_MODEL", "gpt-4.1-mini"),
};
const ANTHROPIC: Vendor = Vendor {
    name: ("anthropic", "Anthropic"),
    url: "ANTHROPIC_BASE_URL",
    key: "ANTHROPIC_API_KEY",
    model: ("ANTHROPIC_MODEL", "claude-sonnet-4-5"),
};
const OLLAMA: Vendor = Vendor {
    name: ("ollama", "Ollama"),
    url: "OLLAMA_HOST",
    key: "llm.key",
    model: ("OLLAMA_MODEL", "granite4:350m"),
};

/// A server that is to answer, with the setting or variable that each part of it comes from.
struct Server {
    kind: ProviderKind,
    vendor: &'static Vendor,
    provider: &'static Provider,
    url: String,
    url_by: &'static str,
    key: Option<Secret>,
    key_by: &'static str,
    model: String,
    /// The variable that the model comes from.
    model_by: Option<&'static str>,
    /// Who chose the server: its address if anybody said it, else what made it the provider.
    set_by: &'static str,
}

impl Options {
    /// Who answers, and who says so.
    fn kind(&self) -> (ProviderKind, &'static str) {
        let of = &self.variables;
        if let Some(kind) = self.provider {
            return (kind, "llm.provider");
        }
        let first = [
            (self.url.is_some(), ProviderKind::OpenAi, "llm.url"),
            (
                of.openai_base_url.is_some(),
                ProviderKind::OpenAi,
                OPENAI.url,
            ),
            (
                of.openai_api_key.is_some(),
                ProviderKind::OpenAi,
                OPENAI.key,
            ),
            (
                of.anthropic_api_key.is_some(),
                ProviderKind::Anthropic,
                ANTHROPIC.key,
            ),
            (of.ollama_host.is_some(), ProviderKind::Ollama, OLLAMA.url),
        ];
        let first = first.into_iter().find(|(given, ..)| *given);
        first.map_or((ProviderKind::Builtin, ""), |(_, kind, by)| (kind, by))
    }

    /// The server that is to answer; `None`: the builtin reader does.
    fn server(&self) -> Option<Server> {
        let of = &self.variables;
        let (kind, chosen_by) = self.kind();
        let (vendor, url, key, model) = match kind {
            ProviderKind::Builtin => return None,
            ProviderKind::OpenAi => (
                &OPENAI,
                &of.openai_base_url,
                &of.openai_api_key,
                &of.openai_model,
            ),
            ProviderKind::Anthropic => (
                &ANTHROPIC,
                &of.anthropic_base_url,
                &of.anthropic_api_key,
                &of.anthropic_model,
            ),
            ProviderKind::Ollama => (&OLLAMA, &of.ollama_host, &None, &of.ollama_model),
        };
        let url_by = match (&self.url, url) {
            (Some(_), _) => Some("llm.url"),
            (None, Some(_)) => Some(vendor.url),
            (None, None) => None,
        };
        let provider = named(vendor.name.0)?;
        let url = provider.address(self.url.as_deref().or(url.as_deref()));
        let model_by = (self.model.is_none() && model.is_some()).then_some(vendor.model.0);
        let model = self.model.as_deref().or(model.as_deref());
        Some(Server {
            kind,
            vendor,
            provider,
            url,
            url_by: url_by.unwrap_or("llm.url"),
            key: self.key.as_ref().or(key.as_ref()).cloned(),
            key_by: match self.key {
                Some(_) => "llm.key",
                None => vendor.key,
            },
            model: model.unwrap_or(vendor.model.1).to_owned(),
            model_by,
            set_by: url_by.unwrap_or(chosen_by),
        })
    }

    fn context(&self, kind: ProviderKind) -> Result<Option<u32>, SettingError> {
        let text = self.variables.ollama_context_length.as_ref();
        let Some(text) = text.filter(|_| kind == ProviderKind::Ollama) else {
            return Ok(None);
        };
        let length = text.parse().ok().filter(|length| *length > 0);
        let fault = || SettingError::new("OLLAMA_CONTEXT_LENGTH", "must be a whole number above 0");
        length.map(Some).ok_or_else(fault)
    }

    /// Where an Ollama is looked for that nobody chose.
    pub fn local(&self) -> String {
        ollama_address(self.local_url.as_deref().unwrap_or_default())
    }

    /// All mistakes in what was chosen, each with its setting or variable.
    pub fn faults(&self) -> Vec<SettingError> {
        let mut faults = match (&self.backends, self.server()) {
            (Some(backends), _) => self.beside(backends),
            (None, Some(server)) => self.wrong(&server),
            (None, None) => self.idle(),
        };
        faults.extend(address("llm.local_url", &self.local()).err());
        faults
    }

    /// The mistakes in backends, and what means nothing beside them.
    fn beside(&self, backends: &Backends) -> Vec<SettingError> {
        let text = "has no effect beside llm.backends: leave it out";
        let mut faults = backends.faults(self.model.as_deref());
        let given = [
            ("llm.provider", self.provider.is_some()),
            ("llm.url", self.url.is_some()),
            ("llm.key", self.key.is_some()),
        ];
        let given = given.into_iter().filter(|(_, given)| *given);
        faults.extend(given.map(|(key, _)| SettingError::new(key, text)));
        faults
    }

    /// The mistakes in a server that was chosen.
    fn wrong(&self, server: &Server) -> Vec<SettingError> {
        let url = address(server.url_by, &server.url).err();
        let key = sendable(server.key_by, server.key.as_ref());
        let key = key.and_then(|()| match is_public(&server.url) {
            true => not_of_gateway(server.key_by, server.key.as_ref()),
            false => Ok(()),
        });
        let other = match (server.provider.key, &server.key) {
            (Key::Required, None) => Some(SettingError::new(
                "llm.key",
                format!("is required by this provider, or {} is", server.vendor.key),
            )),
            (Key::Refused, Some(_)) => Some(SettingError::new(
                "llm.key",
                "is not sent to this provider: leave it out",
            )),
            _ => self.context(server.kind).err(),
        };
        [url, key.err(), other].into_iter().flatten().collect()
    }

    /// The providers that are the gateway of this system, which listens there: it would ask itself.
    pub fn asks_gateway(&self, listen: SocketAddr) -> Vec<SettingError> {
        if let Some(backends) = &self.backends {
            return backends.at_gateway(listen);
        }
        let server = self.server();
        let own = server.filter(|server| is_listened_on(&server.url, listen));
        let fault = own.map(|server| SettingError::new(server.url_by, backends::OF_GATEWAY));
        fault.into_iter().collect()
    }

    /// What is set and means nothing to the builtin reader.
    fn idle(&self) -> Vec<SettingError> {
        let text = "has no effect on the builtin reader: set llm.provider too";
        [
            ("llm.url", self.url.is_some()),
            ("llm.model", self.model.is_some()),
            ("llm.key", self.key.is_some()),
        ]
        .into_iter()
        .filter(|(_, given)| *given)
        .map(|(key, _)| SettingError::new(key, text))
        .collect()
    }

    /// A variable that names a model while nothing chooses a server, and the variables that would choose one.
    fn model_without_server(&self) -> Option<(&'static str, &'static str)> {
        let of = &self.variables;
        if self.kind() != (ProviderKind::Builtin, "") {
            return None;
        }
        let models = [
            (
                &of.openai_model,
                &OPENAI,
                "OPENAI_BASE_URL or OPENAI_API_KEY",
            ),
            (&of.anthropic_model, &ANTHROPIC, "ANTHROPIC_API_KEY"),
            (&of.ollama_model, &OLLAMA, "OLLAMA_HOST"),
        ];
        let given = models.into_iter().find(|(model, ..)| model.is_some());
        given.map(|(_, vendor, others)| (vendor.model.0, others))
    }

    /// The server that is to answer, for those who run the system; `None`: the builtin reader does.
    pub fn origin(&self) -> Option<Origin> {
        if let Some(backends) = &self.backends {
            let model = backends.usual(self.model.as_deref()).unwrap_or_default();
            let address = backends.address().unwrap_or_default();
            return Some(Origin::new(&address, backends::KEY, model));
        }
        let server = self.server()?;
        Some(Origin::new(&server.url, server.set_by, &server.model))
    }

    /// What the settings that were left open are filled in with.
    pub fn filled(&self) -> Vec<Filled> {
        let variable = |by: &'static str| by.starts_with(char::is_uppercase).then_some(by);
        let filled = |name, value: &str, by| Filled {
            name,
            value: value.to_owned(),
            by,
        };
        if let Some(backends) = self.backends.as_ref().filter(|_| self.model.is_none()) {
            let usual = backends.usual(None).unwrap_or_default();
            return vec![filled("model", usual, Some(backends::KEY))];
        }
        if self.backends.is_some() {
            return Vec::new();
        }
        let Some(server) = self.server() else {
            return match self.provider {
                None => vec![filled("provider", "builtin", None)],
                Some(_) => Vec::new(),
            };
        };
        let kind = serde_json::to_value(server.kind).unwrap_or_default();
        let kind = kind.as_str().unwrap_or_default();
        let key = (self.key.is_none() && server.key.is_some()).then_some(server.key_by);
        let all = [
            (
                self.provider.is_none(),
                filled("provider", kind, Some(self.kind().1)),
            ),
            (
                self.url.is_none(),
                filled("url", &server.url, variable(server.url_by)),
            ),
            (
                self.model.is_none(),
                filled("model", &server.model, server.model_by),
            ),
            (key.is_some(), filled("key", Secret::SHOWN, key)),
        ];
        let left = all.into_iter().filter(|(open, _)| *open);
        left.map(|(_, filled)| filled).collect()
    }

    /// The choice in words, without address or key.
    pub fn describe(&self) -> String {
        if let Some(backends) = &self.backends {
            let model = backends.usual(self.model.as_deref()).unwrap_or_default();
            return format!("{model} ({})", backends.describe());
        }
        match self.server() {
            None => tg_reader::NAME.to_owned(),
            Some(server) => format!("{} ({})", server.model, server.vendor.name.1),
        }
    }

    /// Who asks the model: a router over one provider or over several backends.
    ///
    /// # Errors
    /// As for [`Self::model`]; or a credential that workspaces may name is not there.
    pub(crate) fn completer(&self) -> Result<Completer, SettingError> {
        let listed = self.credentials.clone().unwrap_or_default();
        let credentials = listed.keys("llm.credentials")?;
        let policy = Policy {
            retries: self.retries,
            base: Duration::from_secs_f64(self.retry_base_delay),
            most: Duration::from_secs_f64(self.retry_max_delay),
            asked: None,
        };
        let services = Services::with(credentials, self.private_addresses, policy);
        let Some(backends) = &self.backends else {
            if let Some((model, others)) = self.model_without_server() {
                tracing::warn!(
                    "{model} alone has no effect, and builtin answers: set {others} too"
                );
            }
            let completer = Completer::single(self.model()?, policy);
            return Ok(completer.with_services(services));
        };
        if let Some(fault) = self.faults().into_iter().next() {
            return Err(fault);
        }
        let usual = backends.usual(self.model.as_deref()).unwrap_or_default();
        let strategy = self.strategy.as_deref().unwrap_or_default();
        let rules = Rules {
            strategy: Strategy::read(strategy).unwrap_or_else(|| {
                tracing::warn!(strategy, "llm.strategy is not known: failover is taken");
                Strategy::Failover
            }),
            policy,
        };
        let router = Router::new(backends.clients(usual)?, usual, rules);
        Ok(Completer::routed(Arc::new(router)).with_services(services))
    }

    /// The model of a single provider, ready to be asked. Opens no connection.
    ///
    /// # Errors
    /// The first of [`Self::faults`], or that no HTTP client can be made.
    pub fn model(&self) -> Result<Arc<dyn ChatModel>, SettingError> {
        if let Some(fault) = self.faults().into_iter().next() {
            return Err(fault);
        }
        let Some(server) = self.server() else {
            return Ok(Arc::new(Builtin));
        };
        let fault = |fault: NoClient| SettingError::new(server.url_by, fault.to_string());
        let connected = (server.provider.connect)(At {
            url: server.url.trim_end_matches('/'),
            key: server.key.clone(),
            model: &server.model,
            context: self.context(server.kind)?,
        });
        connected.map_err(fault)
    }
}

#[cfg(test)]
mod tests;
