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
        let mut lines = vec![match self.dry_run {
            true => format!("Receipt of flow {flow}, if it were stopped"),
            false => format!("Receipt of flow {flow}"),
        }];
        // What was answered is told when processors leave: of a stop that is not made nobody knows it.
        lines.extend(match self.dry_run {
            true => messages(queues, WAITING, width),
            false => messages(queues, COUNTED, width),
        });
        if receipt[AT_LEAST] == true {
            lines.push(format!(
                "{MORE} at least: a process that served the flow was killed, or left before its counts could be kept."
            ));
        }
        let waiting = WAITING.iter().any(|column| total(queues, column) > 0);
        let what = if self.dry_run { "to remove" } else { "removed" };
        lines.push(format!(
            "Queues {what}: {}  Exchanges {what}: {}",
            number(receipt, "queues-removed"),
            number(receipt, "exchanges-removed"),
        ));
        let left = number(receipt, "exchanges-left");
        if left > 0 {
            lines.push(format!("Exchanges left to others: {left}"));
        }
        let attached = texts(receipt, "still-attached");
        if !attached.is_empty() {
            lines.push(format!("Still attached: {}", attached.join(", ")));
        }
        lines.push(match (self.dry_run, waiting) {
            (false, false) => format!("Flow {flow} is stopped; no messages were waiting."),
            (false, true) => format!("Flow {flow} is stopped."),
            (true, false) => format!("Flow {flow} would be stopped; no messages are waiting."),
            (true, true) => format!("Flow {flow} would be stopped."),
        });
        lines.join("\n")
    }
}

/// The column that says which queue it is.
const QUEUE: &str = "subscription";
/// What is told of each: what was sent to it, and what became of that.
const COUNTED: [&str; 6] = [QUEUE, "sent", "answered", "finished", "parked", "discarded"];
/// Not all who answered told how much, and how that is shown.
const AT_LEAST: &str = "at-least";
const MORE: &str = "+";
/// Counts that are more then.
const PARTLY: [&str; 2] = ["sent", "answered"];
/// What may be told of what waits.
const WAITING: [&str; 4] = [QUEUE, "finished", "parked", "discarded"];

/// What became of the messages, if there were any.
fn messages<const N: usize>(queues: &[Value], columns: [&str; N], width: Width) -> Option<String> {
    if queues.is_empty() {
        return None;
    }
    let mut rows: Vec<_> = queues
        .iter()
        .map(|queue| {
            columns.map(|column| match column {
                QUEUE => text(queue, QUEUE),
                column => counted(queue, column),
            })
        })
        .collect();
    rows.push(columns.map(|column| match column {
        QUEUE => "total".to_owned(),
        column => {
            let partly = queues.iter().any(|queue| is_partly(queue, column));
            format!(
                "{}{}",
                total(queues, column),
                if partly { MORE } else { "" }
            )
        }
    }));
    Some(table(columns, rows, width))
}

fn counted(queue: &Value, column: &str) -> String {
    let partly = if is_partly(queue, column) { MORE } else { "" };
    format!("{}{partly}", number(queue, column))
}

fn is_partly(queue: &Value, column: &str) -> bool {
    PARTLY.contains(&column) && queue[AT_LEAST] == true
}

fn total(queues: &[Value], column: &str) -> u64 {
    queues.iter().map(|queue| number(queue, column)).sum()
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
                {"subscription": "agent", "sent": 9, "answered": 5, "finished": 3, "parked": 1, "discarded": 0},
                {"subscription": "triples", "sent": 6, "answered": 0, "finished": 4, "parked": 0, "discarded": 2},
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
        assert!(shown.starts_with("Receipt of flow f\n"), "{shown}");
        assert!(
            shown.contains("| total        | 15   | 5        | 7        | 1      | 2         |"),
            "{shown}"
        );
        let end = "\nQueues removed: 9  Exchanges removed: 2\nFlow f is stopped.";
        assert!(shown.ends_with(end), "{shown}");
        let shown = stop(&["f", "--dry-run"]).render(&receipt, None);
        assert!(shown.starts_with("Receipt of flow f, if it were stopped\n"));
        assert!(shown.contains("Queues to remove: 9  Exchanges to remove: 2\nFlow f would be"));
        assert!(shown.contains("| total        | 7        | 1      | 2         |"));
        let quiet = json!({"queues": [{"subscription": "agent", "sent": 5, "answered": 5}]});
        let shown = stop(&["f"]).render(&quiet, None);
        assert!(
            shown.contains("| total        | 5    | 5        | 0        | 0      | 0         |")
        );
        assert!(
            shown.ends_with("is stopped; no messages were waiting."),
            "{shown}"
        );
        let killed = json!({
            "queues": [
                {"subscription": "agent", "sent": 5, "answered": 5},
                {"subscription": "triples", "sent": 6, "answered": 5, "finished": 1, "at-least": true},
            ],
            "at-least": true,
        });
        let shown = stop(&["f"]).render(&killed, None);
        for line in [
            "| agent        | 5    | 5        | 0 ",
            "| triples      | 6+   | 5+       | 1 ",
            "| total        | 11+  | 10+      | 1 ",
            "\n+ at least: ",
        ] {
            assert!(shown.contains(line), "{shown}");
        }
        let idle = json!({"queues": [], "queues-removed": 9});
        assert_eq!(
            stop(&["f"]).render(&idle, None),
            "Receipt of flow f\nQueues removed: 9  Exchanges removed: 0\n\
             Flow f is stopped; no messages were waiting."
        );
        assert_eq!(stop(&["f"]).render(&Value::Null, None), "");
    }
}
