//! `tg why`: why a flow does not move.

use clap::Args;
use serde_json::{Value, json};

use crate::args::{InFlow, Options};
use crate::client::Result;
use crate::fields::{embedded, text};
use crate::layout::table;
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg why`.
#[derive(Debug, Args)]
pub struct Why {
    #[command(flatten)]
    flow: InFlow,
}

impl Command for Why {
    const NAME: &'static str = "why";
    const ABOUT: &'static str = "Say why a flow does not move";

    fn options(&self) -> Options {
        Options::from(&self.flow)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let request = json!({"operation": "why", "flow-id": self.flow.flow_id});
        let reply = session.http()?.service("flow", request).await?;
        let reasons = embedded(&reply, "why");
        session.out.show(&reasons, || render(&reasons))
    }
}

fn render(reasons: &Value) -> String {
    let reasons = reasons.as_array().map(Vec::as_slice).unwrap_or_default();
    if reasons.is_empty() {
        return "Nothing to report.".to_owned();
    }
    let rows = reasons.iter().map(|reason| {
        [
            text(reason, "subject"),
            text(reason, "state"),
            text(reason, "detail"),
        ]
    });
    table(["subject", "state", "detail"], rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_rows() {
        let shown = render(&json!([{"subject": "agent-manager", "state": "detached",
            "detail": "no process hosts it"}]));
        assert!(shown.contains("| agent-manager | detached | no process hosts it |"));
        assert_eq!(render(&Value::Null), "Nothing to report.");
    }
}
