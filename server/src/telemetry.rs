//! Logs to stderr, metrics to a Prometheus recorder whose text the gateway serves.

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::EnvFilter;

use crate::settings::{LogFormat, Settings};

/// Buckets in seconds: bus and store work in milliseconds, model calls up to minutes.
const BUCKETS: &[f64] = &[
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    60.0, 120.0,
];

/// Starts logging. A filter that cannot be read falls back to `info`.
pub fn init_logs(settings: &Settings) {
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

/// Starts metrics. `None` when a recorder is installed already.
pub fn init_metrics() -> Option<PrometheusHandle> {
    PrometheusBuilder::new()
        .set_buckets(BUCKETS)
        .ok()?
        .install_recorder()
        .ok()
}
