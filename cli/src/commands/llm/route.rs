//! `tg route` and `tg show-model-health`: which backend a question to a model would go to now, why, and who is left out until when.

use chrono::DateTime;
use clap::Args;
use serde_json::{Value, json};

use crate::args::{InFlow, Options};
use crate::client::{Call, Result};
use crate::fields::{list, text};
use crate::layout::{Width, table};
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg route`.
#[derive(Debug, Args)]
pub struct ShowRoute {
    #[command(flatten)]
    flow: InFlow,
    /// The model [default: the flow's]
    #[arg(short, long)]
    model: Option<String>,
    /// Say why, and who is left out until when
    #[arg(short, long)]
    explain: bool,
    /// How it stands with this model, or with all that the settings name
    #[arg(long, conflicts_with = "explain")]
    health: bool,
}

impl Command for ShowRoute {
    const NAME: &'static str = "route";
    const ABOUT: &'static str = "Show which backend of a model would be asked now, and why";

    fn options(&self) -> Options {
        Options::from(&self.flow)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        if self.health {
            return shown_health(session, &self.flow.flow_id, self.model.as_deref()).await;
        }
        let mut request = json!({"operation": "route"});
        if let Some(model) = &self.model {
            request["model"] = json!(model);
        }
        let reply = asked(session, &self.flow.flow_id, request).await?;
        let route = reply.get("route").cloned().unwrap_or_default();
        let explain = self.explain;
        session
            .out
            .lay(&route, |width| render(&route, explain, width))
    }
}

/// Arguments of `tg show-model-health`.
#[derive(Debug, Args)]
pub struct ShowModelHealth {
    #[command(flatten)]
    flow: InFlow,
    /// The model [default: all that the settings name]
    #[arg(short, long)]
    model: Option<String>,
}

impl Command for ShowModelHealth {
    const NAME: &'static str = "show-model-health";
    const ABOUT: &'static str = "Show which models can be asked now, and which rest";

    fn options(&self) -> Options {
        Options::from(&self.flow)
    }

    fn fails_with_one(&self) -> bool {
        true
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        shown_health(session, &self.flow.flow_id, self.model.as_deref()).await
    }
}

/// What the model service of a flow answers.
async fn asked(session: &Session, flow: &str, request: Value) -> Result<Value> {
    let call = Call::in_flow(flow, "chat-completion", request);
    let mut socket = session.socket().await?;
    let reply = socket.ask(&call).await?;
    socket.close().await;
    Ok(reply)
}

/// Shows how it stands with a model, or with all.
async fn shown_health(session: &mut Session, flow: &str, model: Option<&str>) -> Result<()> {
    let mut request = json!({"operation": "health"});
    if let Some(model) = model {
        request["models"] = json!([model]);
    }
    let reply = asked(session, flow, request).await?;
    let health = list(&reply, "health").to_vec();
    let shown = Value::from(health.clone());
    session
        .out
        .lay(&shown, |width| render_health(&health, width))
}

fn render(route: &Value, explain: bool, width: Width) -> String {
    let chosen = text(route, "chosen");
    let line = match chosen.as_str() {
        "" => format!("{}: no backend can be asked now", text(route, "model")),
        chosen => format!("{}: {chosen}", text(route, "model")),
    };
    if !explain {
        return line;
    }
    let rows = list(route, "backends").iter().map(|backend| {
        [
            text(backend, "backend"),
            text(backend, "model"),
            text(backend, "state"),
            text(backend, "reason"),
            moment(backend.get("until")),
            text(backend, "priority"),
            format!(
                "{}/{}",
                text(backend, "active"),
                text(backend, "max_concurrent")
            ),
            text(backend, "tokens_left"),
        ]
    });
    let head = [
        "backend", "model", "state", "why", "until", "priority", "active", "tokens",
    ];
    let strategy = text(route, "strategy");
    format!("{line} (by {strategy})\n{}", table(head, rows, width))
}

/// A time of the clock, in UTC.
fn moment(seconds: Option<&Value>) -> String {
    let seconds = seconds.and_then(Value::as_i64);
    let time = seconds.and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    time.map_or_else(String::new, |time| time.format("%H:%M:%S UTC").to_string())
}

fn render_health(health: &[Value], width: Width) -> String {
    let rows = health.iter().map(|one| {
        let state = match one["available"] == json!(true) {
            true => "available".to_owned(),
            false => text(one, "reason"),
        };
        [text(one, "model"), text(one, "provider"), state]
    });
    table(["model", "provider", "state"], rows, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_names_the_backend_and_explains_the_others() {
        let route = json!({"model": "m", "strategy": "failover", "chosen": "far", "backends": [
            {"backend": "near", "state": "skipped", "reason": "cooling, 40 s left", "until": 60,
             "priority": 1, "active": 0, "max_concurrent": 20, "tokens_left": 9},
            {"backend": "far", "state": "chosen", "reason": "has the lowest priority number, 2"},
        ]});
        assert_eq!(render(&route, false, None), "m: far");
        let told = render(&route, true, None);
        assert!(told.starts_with("m: far (by failover)\n"), "{told}");
        for part in ["cooling, 40 s left", "00:01:00 UTC", "0/20", "chosen"] {
            assert!(told.contains(part), "{told}");
        }
        let none = json!({"model": "m", "backends": []});
        assert_eq!(render(&none, false, None), "m: no backend can be asked now");
    }
}
