//! `tg why`: why a flow does not move.

use clap::Args;
use serde_json::{Value, json};

use crate::args::{InFlow, Options};
use crate::client::Result;
use crate::fields::{embedded, text};
use crate::layout::{Width, table};
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg why`.
#[derive(Debug, Args)]
pub struct Why {
    #[command(flatten)]
    flow: InFlow,
    /// The flow [default: that of --flow-id]
    #[arg(value_name = "FLOW")]
    named: Option<String>,
    /// Show what serves and what is not part of this release, too
    #[arg(long)]
    all: bool,
}

impl Command for Why {
    const NAME: &'static str = "why";
    const ABOUT: &'static str =
        "Say why a flow does not move (for an answer: tg show-explain-trace)";

    fn options(&self) -> Options {
        Options::from(&self.flow)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let flow = self.named.as_ref().unwrap_or(&self.flow.flow_id);
        let request = json!({"operation": "why", "flow-id": flow});
        let reply = session.http()?.service("flow", request).await?;
        let reasons = embedded(&reply, "why");
        session
            .out
            .lay(&reasons, |width| render(flow, &reasons, self.all, width))
    }
}

/// What is as it should be, or is nobody's fault.
const CALM: [&str; 3] = ["attached", "absent", "running"];

fn render(flow: &str, reasons: &Value, all: bool, width: Width) -> String {
    let reasons = reasons.as_array().map(Vec::as_slice).unwrap_or_default();
    let told = |reason: &&Value| all || !CALM.contains(&text(reason, "state").as_str());
    let reasons: Vec<&Value> = reasons.iter().filter(told).collect();
    if reasons.is_empty() {
        return format!("Flow {flow}: nothing is waiting and all processors are running.");
    }
    let rows = reasons.into_iter().map(|reason| {
        [
            text(reason, "subject"),
            text(reason, "state"),
            text(reason, "detail"),
        ]
    });
    table(["subject", "state", "detail"], rows, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_rows() {
        let reasons = json!([{"subject": "default", "state": "running"},
            {"subject": "prompt", "state": "attached"},
            {"subject": "agent-manager", "state": "detached", "detail": "no process hosts it"}]);
        let shown = render("default", &reasons, false, None);
        assert!(shown.contains("| agent-manager | detached | no process hosts it |"));
        assert!(!shown.contains("prompt"));
        assert!(render("default", &reasons, true, None).contains("| prompt "));
        assert_eq!(
            render("default", &Value::Null, false, None),
            "Flow default: nothing is waiting and all processors are running."
        );
    }
}
