//! `tg stop-flow`: stops a flow and prints the receipt: what became of each message.

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::FlowId;
use crate::args::{Common, Options};
use crate::client::Result;
use crate::fields::{embedded, list, text, texts};
use crate::layout::{Width, table};
use crate::registry::Command;
use crate::session::Session;

/// What happens to work in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Drain {
    /// Finish what is queued, park the rest
    Wait,
    /// Park what is queued; it can be replayed
    Park,
    /// Throw away what is queued
    Discard,
}

impl Drain {
    fn wire(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Park => "park",
            Self::Discard => "discard",
        }
    }
}

/// Arguments of `tg stop-flow`.
#[derive(Debug, Args)]
pub struct StopFlow {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    flow: FlowId,
    /// What happens to work in progress [default: what the flow service does by itself]
    #[arg(long, value_enum)]
    drain: Option<Drain>,
    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,
    /// Say how many queues and exchanges were removed, too
    #[arg(short = 'v', long)]
    verbose: bool,
}

impl Command for StopFlow {
    const NAME: &'static str = "stop-flow";
    const ABOUT: &'static str = "Stop a flow and say what became of its messages";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let mut request = json!({"operation": "stop-flow", "flow-id": self.flow.id()});
        if let Some(drain) = self.drain {
            request["drain"] = json!(drain.wire());
        }
        if self.dry_run {
            request["dry-run"] = json!(true);
        }
        let progress = session
            .out
            .progress(&format!("stopping {}", self.flow.id()), None);
        let outcome = session.http()?.service("flow", request).await;
        progress.finish_and_clear();
        let receipt = embedded(&outcome?, "receipt");
        session
            .out
            .lay(&receipt, |width| self.render(&receipt, width))
    }
}

impl StopFlow {
    /// Empty when the reply has no receipt, as from a foreign flow service.
    fn render(&self, receipt: &Value, width: Width) -> String {
        if !receipt.is_object() {
            return String::new();
        }
        let (flow, queues) = (self.flow.id(), list(receipt, "queues"));
        let mut lines: Vec<String> = messages(queues, width).into_iter().collect();
        lines.push(match (self.dry_run, queues.is_empty()) {
            (false, true) => format!("Flow {flow} is stopped; no messages were waiting."),
            (false, false) => format!("Flow {flow} is stopped."),
            (true, true) => format!("Flow {flow} would be stopped; no messages are waiting."),
            (true, false) => format!("Flow {flow} would be stopped."),
        });
        if self.verbose || self.dry_run {
            let what = if self.dry_run { "to remove" } else { "removed" };
            lines.push(format!(
                "Queues {what}: {}  Exchanges {what}: {}",
                number(receipt, "queues-removed"),
                number(receipt, "exchanges-removed"),
            ));
        }
        let left = number(receipt, "exchanges-left");
        if left > 0 {
            lines.push(format!("Exchanges left to others: {left}"));
        }
        let attached = texts(receipt, "still-attached");
        if !attached.is_empty() {
            lines.push(format!("Still attached: {}", attached.join(", ")));
        }
        lines.join("\n")
    }
}

/// What became of the messages, if there were any.
fn messages(queues: &[Value], width: Width) -> Option<String> {
    if queues.is_empty() {
        return None;
    }
    let columns = ["finished", "parked", "discarded"];
    let mut rows: Vec<[String; 4]> = queues
        .iter()
        .map(|queue| {
            let [finished, parked, discarded] =
                columns.map(|column| number(queue, column).to_string());
            [text(queue, "subscription"), finished, parked, discarded]
        })
        .collect();
    let [finished, parked, discarded] = columns.map(|column| {
        let total: u64 = queues.iter().map(|queue| number(queue, column)).sum();
        total.to_string()
    });
    rows.push(["total".to_owned(), finished, parked, discarded]);
    let heads = ["subscription", "finished", "parked", "discarded"];
    Some(table(heads, rows, width))
}

/// A count, or the length of a list of what is counted.
fn number(value: &Value, key: &str) -> u64 {
    match value.get(key) {
        Some(Value::Array(items)) => items.len() as u64,
        Some(other) => other.as_u64().unwrap_or(0),
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;

    use super::*;

    #[test]
    fn a_receipt_adds_up() {
        let receipt = json!({
            "queues": [
                {"subscription": "agent", "finished": 3, "parked": 1, "discarded": 0},
                {"subscription": "triples", "finished": 4, "parked": 0, "discarded": 2},
            ],
            "queues-removed": 9, "exchanges-removed": ["a", "b"],
        });
        let stop = |line: &[&str]| {
            let command = StopFlow::augment_args(clap::Command::new("stop-flow"));
            let line = std::iter::once("stop-flow").chain(line.iter().copied());
            let matches = command.try_get_matches_from(line).expect("arguments");
            StopFlow::from_arg_matches(&matches).expect("read")
        };
        let shown = stop(&["f"]).render(&receipt, None);
        assert!(
            shown.contains("| total        | 7        | 1      | 2         |"),
            "{shown}"
        );
        assert!(shown.ends_with("\nFlow f is stopped."), "{shown}");
        let shown = stop(&["f", "-v"]).render(&receipt, None);
        assert!(shown.contains("Queues removed: 9  Exchanges removed: 2"));
        let shown = stop(&["f", "--dry-run"]).render(&receipt, None);
        assert!(shown.contains("Flow f would be stopped.\nQueues to remove: 9"));
        let idle = json!({"queues": [], "queues-removed": 9});
        assert_eq!(
            stop(&["f"]).render(&idle, None),
            "Flow f is stopped; no messages were waiting."
        );
        assert_eq!(stop(&["f"]).render(&Value::Null, None), "");
    }
}
