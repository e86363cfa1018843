//! `tg why`: why a request, a run of the agent, a flow, a queue, a document or a thread does not move.

use clap::Args;
use serde_json::{Value, json};

use crate::args::{InFlow, Options};
use crate::client::{Error, Result};
use crate::commands::{agent, library};
use crate::fields::{embedded, text, texts};
use crate::layout::{Width, table};
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg why`.
#[derive(Debug, Args)]
pub struct Why {
    #[command(flatten)]
    flow: InFlow,
    /// The flow [default: that of --flow-id]
    #[arg(value_name = "FLOW", conflicts_with_all = ["queue", "document_id", "request_id", "run", "thread"])]
    named: Option<String>,
    /// Say it of one queue, by its name at the broker; of the flow that has it
    #[arg(long, value_name = "NAME", conflicts_with_all = ["document_id", "request_id", "run", "thread"])]
    queue: Option<String>,
    /// Say it of a document: how its processings stand, and what of their flows does not move
    #[arg(long, visible_alias = "id", value_name = "IRI", conflicts_with_all = ["request_id", "run", "thread"])]
    document_id: Option<String>,
    /// Say it of a request of yours, by its X-Request-Id or as `tg list-requests` names it
    #[arg(long, value_name = "ID", conflicts_with_all = ["run", "thread"])]
    request_id: Option<String>,
    /// Say it of a run of the agent, as `tg list-runs` names it
    #[arg(long, value_name = "ID", conflicts_with = "thread")]
    run: Option<String>,
    /// Say it of a thread of listeners of the flow --flow-id, by its whole id: the second line of `/status` in `tg console`
    #[arg(long, value_name = "ID")]
    thread: Option<String>,
    /// Show what serves and what is not part of this release, too; of --run: one of somebody else, for administrators
    #[arg(long)]
    all: bool,
}

impl Command for Why {
    const NAME: &'static str = "why";
    const ABOUT: &'static str = "Say why a request, a run, a flow, a queue, a document or a thread does not move (for an answer: tg show-explain-trace)";

    fn options(&self) -> Options {
        Options::from(&self.flow)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let flow = self.named.as_ref().unwrap_or(&self.flow.flow_id);
        if let Some(id) = &self.document_id {
            let reasons = library::why::document(session, id).await?;
            let shown = |width| render(id, &reasons, self.all, width);
            return session.out.lay(&Value::from(reasons.clone()), shown);
        }
        let asked = match (&self.request_id, &self.run, &self.thread) {
            (Some(id), _, _) => Some(agent::why::request(session, id).await?),
            (_, Some(id), _) => Some(agent::why::run(session, id, self.all).await?),
            (_, _, Some(id)) => Some(agent::why::thread(session, flow, id).await?),
            (None, None, None) => None,
        };
        if let Some(reasons) = asked {
            let shown = |width| rows(&reasons, width);
            return session.out.lay(&Value::from(reasons.clone()), shown);
        }
        if let Some(queue) = &self.queue {
            let reasons = of_queue(session, queue).await?;
            return session
                .out
                .lay(&reasons, |width| rows(listed(&reasons), width));
        }
        let reasons = of_flow(session, flow).await?;
        session.out.lay(&reasons, |width| {
            render(&format!("Flow {flow}"), listed(&reasons), self.all, width)
        })
    }
}

async fn of_flow(session: &Session, flow: &str) -> Result<Value> {
    let request = json!({"operation": "why", "flow-id": flow});
    let reply = session.http()?.service("flow", request).await?;
    Ok(embedded(&reply, "why"))
}

/// Of the flow that has the queue, whichever it is.
async fn of_queue(session: &Session, queue: &str) -> Result<Value> {
    let http = session.http()?;
    let flows = http.all("flow", json!({"operation": "list-flows"})).await?;
    for flow in texts(&flows, "flow-ids") {
        let request = json!({"operation": "why", "flow-id": flow, "parameters": {"queue": queue}});
        match http.service("flow", request).await {
            Ok(reply) => return Ok(embedded(&reply, "why")),
            // Not of this one.
            Err(Error::Service { message, .. }) if message.starts_with("queue: ") => {}
            Err(error) => return Err(error),
        }
    }
    Err(Error::Usage(format!(
        "--queue: no flow of this workspace has a queue '{queue}'"
    )))
}

fn listed(reasons: &Value) -> &[Value] {
    reasons.as_array().map_or(&[], Vec::as_slice)
}

fn render(of: &str, reasons: &[Value], all: bool, width: Width) -> String {
    let told = |reason: &&Value| all || !agent::why::is_calm(reason);
    let reasons: Vec<&Value> = reasons.iter().filter(told).collect();
    if reasons.is_empty() {
        return format!("{of}: nothing is waiting and all processors are running.");
    }
    rows(reasons, width)
}

fn rows<'a>(reasons: impl IntoIterator<Item = &'a Value>, width: Width) -> String {
    let rows = reasons
        .into_iter()
        .map(|reason| ["subject", "state", "detail", "command"].map(|name| text(reason, name)));
    table(["subject", "state", "detail", "what helps"], rows, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_rows() {
        let reasons = json!([{"subject": "default", "state": "running"},
            {"subject": "prompt", "state": "attached"},
            {"subject": "agent-manager", "state": "detached", "detail": "no process hosts it"}]);
        let reasons = listed(&reasons);
        let shown = render("Flow default", reasons, false, None);
        assert!(shown.contains("| agent-manager | detached | no process hosts it |"));
        assert!(!shown.contains("prompt"));
        assert!(render("Flow default", reasons, true, None).contains("| prompt "));
        assert_eq!(
            render("Flow default", listed(&Value::Null), false, None),
            "Flow default: nothing is waiting and all processors are running."
        );
    }
}
