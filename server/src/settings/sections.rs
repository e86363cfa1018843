//! Sections of the settings that are of the process itself.

use serde::{Deserialize, Serialize};

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
        filter: String = "info,lapin=off".to_owned();
        /// `text` or `json`.
        format: LogFormat = LogFormat::Text;
    }
}
