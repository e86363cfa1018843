//! Logs to stderr.

use tracing::dispatcher::Dispatch;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::settings::{Log, LogFormat, Settings};

/// Libraries that log nothing. Lines of that of MCP hold addresses of servers, with the credentials in them, and what servers send; that of
/// AMQP logs messages that the broker returns as a whole.
const SILENT: [&str; 2] = ["rmcp", "lapin"];

/// Starts logging. The filter was read with the settings; one that cannot be read falls back to `info`.
pub fn init(settings: &Settings) {
    // A second subscriber (tests start several processes in one) is not an error.
    let _ = dispatch(&settings.log, std::io::stderr).try_init();
}

/// Logs what the filter lets pass, but for [`SILENT`]. No filter of an operator allows that.
fn dispatch<W>(log: &Log, writer: W) -> Dispatch
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let filter = EnvFilter::try_new(&log.filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()));
    let allowed = filter_fn(|line| !SILENT.iter().any(|one| line.target().starts_with(one)));
    match log.format {
        LogFormat::Text => Dispatch::new(builder.finish().with(allowed)),
        LogFormat::Json => Dispatch::new(builder.json().finish().with(allowed)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HIDDEN: &str = "sk-hidden";
    const SHOWN: &str = "of the system";

    fn logged(filter: &str, format: LogFormat) -> String {
        let file = tempfile::NamedTempFile::new().unwrap();
        let log = Log {
            filter: filter.to_owned(),
            format,
        };
        let dispatch = dispatch(&log, file.reopen().unwrap());
        tracing::dispatcher::with_default(&dispatch, || {
            tracing::error!(target: "rmcp", "{HIDDEN}");
            tracing::error!(target: "rmcp::transport::worker", "{HIDDEN}");
            tracing::info!(target: "rmcp::service", info = HIDDEN, "initialized");
            tracing::debug!(target: "rmcp::service", "{HIDDEN}");
            tracing::warn!(target: "lapin::returned_messages", "{HIDDEN}");
            tracing::error!(target: "tg_tool::mcp", "{SHOWN}");
        });
        std::fs::read_to_string(file.path()).unwrap()
    }

    #[test]
    fn libraries_that_log_what_others_send_log_nothing_whatever_the_filter_says() {
        for filter in [
            "info,lapin=off",
            "debug",
            "trace",
            "rmcp=trace,lapin=trace,tg_tool=error",
            "error,rmcp::service=trace",
        ] {
            for format in [LogFormat::Text, LogFormat::Json] {
                let lines = logged(filter, format);
                assert!(!lines.contains(HIDDEN), "{filter}: {lines}");
                assert!(lines.contains(SHOWN), "{filter}: {lines}");
            }
        }
    }
}
