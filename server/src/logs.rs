//! Logs to stderr.

use tracing_subscriber::EnvFilter;

use crate::settings::{LogFormat, Settings};

/// Starts logging. The filter was read with the settings; one that cannot be read falls back to `info`.
pub fn init(settings: &Settings) {
    let filter =
        EnvFilter::try_new(&settings.log.filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()));
    // A second subscriber (tests start several processes in one) is not an error.
    let _ = match settings.log.format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
}
