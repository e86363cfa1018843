//! Several backends of a model, as the settings list them.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tg_provider_http::{NoClient, Secret, address, is_listened_on, not_of_gateway, sendable};
use tg_settings::SettingError;

use crate::engine::router::serving::{Backend, Serves};
use crate::model::ChatModel;
use crate::providers::{At, Key, PROVIDERS, Provider, is_public, named};

/// The setting that lists them.
pub(super) const KEY: &str = "llm.backends";
/// What is wrong with a server of models that is our own gateway.
pub(super) const OF_GATEWAY: &str =
    "is the address of this gateway, which would ask itself: name the server of the model";
/// Most that are listed.
const MOST: usize = 64;
/// Longest time that one may take until it begins to answer, in seconds.
const LONGEST: u64 = 3600;

/// A backend, ready to be asked.
type Client = (Backend, Arc<dyn ChatModel>);

/// One of them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    #[serde(default)]
    name: Option<String>,
    provider: String,
    #[serde(default, alias = "base_url")]
    url: Option<String>,
    #[serde(default, deserialize_with = "tg_provider_http::by_reference")]
    key: Option<Secret>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    supported_models: Vec<String>,
    #[serde(default = "one")]
    priority: u32,
    #[serde(default = "tokens")]
    rate_limit_tpm: u64,
    #[serde(default = "places")]
    max_concurrent: usize,
    #[serde(default = "patience")]
    timeout: u64,
}

const fn one() -> u32 {
    1
}

const fn tokens() -> u64 {
    100_000
}

const fn places() -> usize {
    20
}

const fn patience() -> u64 {
    120
}

/// All of them, in their order. Written as a JSON array, in the setting itself or in a file that it names.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Backends(Vec<Entry>);

/// By their names: what is shown of settings holds no keys.
impl Serialize for Backends {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let names: Vec<&str> = self.0.iter().map(Entry::name).collect();
        serializer.serialize_str(&names.join(", "))
    }
}

impl<'de> Deserialize<'de> for Backends {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let text = tg_settings::resolved(String::deserialize(from)?).map_err(D::Error::custom)?;
        let entries: Vec<Entry> = serde_json::from_slice(text.as_bytes()).map_err(|fault| {
            // Of what is written, which may be a key, only the place is told.
            let (line, column) = (fault.line(), fault.column());
            D::Error::custom(format!(
                "must be a JSON array of backends, or file:PATH of one; wrong at line {line}, column {column}"
            ))
        })?;
        match entries.len() {
            1..=MOST => Ok(Self(entries)),
            _ => Err(D::Error::custom("must list from 1 to 64 backends")),
        }
    }
}

impl Entry {
    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.provider)
    }

    /// Its provider; `None`: it is not known.
    fn known(&self) -> Option<&'static Provider> {
        named(&self.provider)
    }

    /// Its address; `None`: the provider is not known.
    fn address(&self) -> Option<String> {
        let url = self.known()?.address(self.url.as_deref());
        Some(url.trim_end_matches('/').to_owned())
    }

    fn serves(&self) -> Serves {
        if !self.supported_models.is_empty() {
            return Serves::Listed(self.supported_models.clone());
        }
        let known = self.known();
        known.map_or(Serves::Everything, |one| one.serves(self.url.is_some()))
    }

    fn about(&self) -> Backend {
        Backend {
            name: self.name().to_owned(),
            provider: self.provider.clone(),
            serves: self.serves(),
            model: self.model.clone(),
            priority: self.priority,
            tokens_per_minute: self.rate_limit_tpm,
            most: self.max_concurrent,
            timeout: Duration::from_secs(self.timeout),
        }
    }

    fn faults(&self) -> Vec<SettingError> {
        let name = self.name();
        let fault = |text: String| SettingError::new(KEY, format!("{name}: {text}"));
        let mut faults = Vec::new();
        match self.address() {
            None => {
                let known: Vec<&str> = PROVIDERS.iter().map(|one| one.name).collect();
                let known = known.join(", ");
                faults.push(fault(format!("provider must be one of {known}")));
            }
            Some(url) if url.is_empty() => {
                faults.push(fault("url is required by this provider".to_owned()));
            }
            Some(url) => faults.extend(
                address("url", &url)
                    .err()
                    .map(|told| fault(told.to_string())),
            ),
        }
        let key = sendable("key", self.key.as_ref());
        let key = key.and_then(
            |()| match self.address().is_some_and(|url| is_public(&url)) {
                true => not_of_gateway("key", self.key.as_ref()),
                false => Ok(()),
            },
        );
        faults.extend(key.err().map(|told| fault(told.to_string())));
        match (self.known().map(|one| one.key), &self.key) {
            (Some(Key::Required), None) => {
                faults.push(fault("key is required by this provider".to_owned()));
            }
            (Some(Key::Refused), Some(_)) => {
                faults.push(fault(
                    "key is not sent to this provider: leave it out".to_owned(),
                ));
            }
            _ => {}
        }
        let within = |what: &str, ok: bool, range: &str| {
            (!ok).then(|| fault(format!("{what} must be from {range}")))
        };
        faults.extend(within(
            "rate_limit_tpm",
            (1..=1 << 40).contains(&self.rate_limit_tpm),
            "1",
        ));
        faults.extend(within(
            "max_concurrent",
            (1..=10_000).contains(&self.max_concurrent),
            "1 to 10000",
        ));
        faults.extend(within(
            "timeout",
            (1..=LONGEST).contains(&self.timeout),
            "1 to 3600 seconds",
        ));
        // It is a label of metrics, and a part of names of models.
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if !(1..=64).contains(&name.len()) || !name.chars().all(plain) {
            let text = "name must be of up to 64 letters, digits, dots, dashes and underscores";
            faults.push(SettingError::new(KEY, text));
        }
        faults
    }

    /// What is asked where a question names no model.
    fn usual(&self) -> Option<&str> {
        let listed = self.supported_models.first().map(String::as_str);
        listed.or(self.model.as_deref())
    }

    fn client(&self, url: &str, usual: &str) -> Result<Arc<dyn ChatModel>, NoClient> {
        let known = self.known().ok_or(NoClient)?;
        (known.connect)(At {
            url,
            key: self.key.clone(),
            model: usual,
            context: None,
        })
    }
}

impl Backends {
    /// All mistakes in them.
    pub(super) fn faults(&self, usual: Option<&str>) -> Vec<SettingError> {
        let mut faults: Vec<SettingError> = self.0.iter().flat_map(Entry::faults).collect();
        let mut names = BTreeSet::new();
        if !self.0.iter().all(|entry| names.insert(entry.name())) {
            let text = "must name each backend differently: give those of one provider a name";
            faults.push(SettingError::new(KEY, text));
        }
        if self.usual(usual).is_none() {
            let text = "must say which model is asked where a flow names none, or a backend of llm.backends must have \
                        supported_models or a model";
            faults.push(SettingError::new("llm.model", text));
        }
        faults
    }

    /// Those that are the gateway which listens there.
    pub(super) fn at_gateway(&self, listen: SocketAddr) -> Vec<SettingError> {
        let is_own = |entry: &&Entry| {
            let url = entry.address();
            url.is_some_and(|url| is_listened_on(&url, listen))
        };
        let own = self.0.iter().filter(is_own);
        own.map(|entry| SettingError::new(KEY, format!("{}: url {OF_GATEWAY}", entry.name())))
            .collect()
    }

    /// The model that is asked for where a flow names none.
    pub(super) fn usual<'a>(&'a self, own: Option<&'a str>) -> Option<&'a str> {
        own.or_else(|| self.0.iter().find_map(Entry::usual))
    }

    /// The address of the first.
    pub(super) fn address(&self) -> Option<String> {
        self.0.first().and_then(Entry::address)
    }

    /// How many there are, in words.
    pub(super) fn describe(&self) -> String {
        match self.0.len() {
            1 => "1 backend".to_owned(),
            many => format!("{many} backends"),
        }
    }

    /// All of them, ready to be asked.
    pub(super) fn clients(&self, usual: &str) -> Result<Vec<Client>, SettingError> {
        let client = |entry: &Entry| {
            let url = entry.address().unwrap_or_default();
            let client = entry.client(&url, entry.usual().unwrap_or(usual));
            let client = client.map_err(|fault| SettingError::new(KEY, fault.to_string()))?;
            Ok((entry.about(), client))
        };
        self.0.iter().map(client).collect()
    }
}
