//! Sections of the settings that are of the process itself.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::choices;

/// Form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// For machines.
    Json,
}

tg_settings::options! {
    /// How the process logs.
    pub struct Log {
        /// Which log lines are written, in the syntax of `tracing` filters, e.g. `info,tg_mesh=debug`.
        #[serde(deserialize_with = "choices::log_filter")]
        filter: String = "info,lapin=off".to_owned();
        /// `text` or `json`.
        format: LogFormat = LogFormat::Text;
    }
}

tg_settings::options! {
    /// The metrics of the process.
    pub struct Metrics {
        /// Loopback address at which this process tells its own metrics (`GET /metrics`), for one without a gateway.
        /// Empty: nowhere but at the gateway.
        #[serde(deserialize_with = "choices::listen_or_not")]
        listen: Option<SocketAddr> = None;
    }
}
