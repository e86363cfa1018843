//! What the settings of a process may be, where that is neither a number nor a text.

use std::net::SocketAddr;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use tg_provider_http::Secret;

/// Where messages travel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum BusChoice {
    /// In this process, records on disk.
    Embedded,
    /// Over a broker.
    Amqp(AmqpUrl),
}

impl TryFrom<String> for BusChoice {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let text = tg_settings::resolved(text)?;
        match text.as_str() {
            "embedded" => Ok(Self::Embedded),
            url if url.starts_with("amqp://") || url.starts_with("amqps://") => {
                Ok(Self::Amqp(AmqpUrl(Secret::new(text))))
            }
            _ => Err("must be embedded or amqp://user:password@host:port/vhost"),
        }
    }
}

impl From<BusChoice> for String {
    fn from(bus: BusChoice) -> Self {
        match bus {
            BusChoice::Embedded => "embedded".to_owned(),
            BusChoice::Amqp(url) => format!("{url:?}"),
        }
    }
}

/// A broker URL, with its password: shown as stars.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AmqpUrl(Secret);

impl AmqpUrl {
    /// The URL with its credentials, for the adapter only.
    pub fn expose(&self) -> &str {
        self.0.expose()
    }

    /// Whether it asks for TLS.
    pub fn is_secure(&self) -> bool {
        self.expose().starts_with("amqps://")
    }
}

/// Who may do what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Auth {
    /// Everybody everything, on a loopback listener only.
    None,
    /// API keys and roles.
    Iam,
}

/// How the mesh speaks on a broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MeshMode {
    /// Our own names; shares nothing with foreign processors.
    Native,
    /// The reference's names and JSON.
    Interop,
}

/// An address to listen on.
pub(super) fn listen<'de, D: Deserializer<'de>>(from: D) -> Result<SocketAddr, D::Error> {
    let fault = |_| D::Error::custom("must be an address and port, e.g. 127.0.0.1:8888");
    String::deserialize(from)?.parse().map_err(fault)
}

/// A loopback address to listen on, or none.
pub(super) fn listen_or_not<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<SocketAddr>, D::Error> {
    let text = String::deserialize(from)?;
    if text.is_empty() {
        return Ok(None);
    }
    let address = text.parse().ok();
    let address = address.filter(|at: &SocketAddr| at.ip().is_loopback());
    let fault = || D::Error::custom("must be a loopback address and port, e.g. 127.0.0.1:9100");
    address.map(Some).ok_or_else(fault)
}

/// Any address to listen on, or none.
pub(super) fn anywhere_or_not<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<SocketAddr>, D::Error> {
    let text = String::deserialize(from)?;
    if text.is_empty() {
        return Ok(None);
    }
    let fault = |_| D::Error::custom("must be an address and port, e.g. 0.0.0.0:9090");
    text.parse().map(Some).map_err(fault)
}

/// A filter of log lines.
pub(super) fn log_filter<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    match tracing_subscriber::EnvFilter::try_new(&text) {
        Ok(_) => Ok(text),
        Err(_) => Err(D::Error::custom(
            "must be levels (error, warn, info, debug, trace, off), also by module, e.g. info,tg_mesh=debug",
        )),
    }
}
