//! `tg list-requests` and `cancel-request`: one's own requests that go on without their caller.

use clap::Args;
use serde_json::{Value, json};

use crate::args::{Gateway, Options, subject};
use crate::client::Result;
use crate::fields::{list, text};
use crate::layout::{Width, table};
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg list-requests`.
#[derive(Debug, Args)]
pub struct ListRequests {
    #[command(flatten)]
    gateway: Gateway,
}

impl Command for ListRequests {
    const NAME: &'static str = "list-requests";
    const ABOUT: &'static str = "List your detached requests";

    fn options(&self) -> Options {
        Options::from(&self.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let request = json!({"operation": "list-requests"});
        let reply = session.http()?.all("requests", request).await?;
        session.out.lay(&reply, |width| render(&reply, width))
    }
}

fn render(reply: &Value, width: Width) -> String {
    let rows: Vec<_> = list(reply, "requests")
        .iter()
        .map(|row| {
            let seconds = row.get("seconds").and_then(Value::as_u64).unwrap_or(0);
            [
                text(row, "id"),
                text(row, "service"),
                text(row, "flow"),
                text(row, "workspace"),
                seconds.to_string(),
            ]
        })
        .collect();
    if rows.is_empty() {
        return "There are no detached requests.".to_owned();
    }
    table(
        ["id", "service", "flow", "workspace", "seconds"],
        rows,
        width,
    )
}

subject!(
    /// The request that is cancelled.
    RequestId,
    "Id of the request, from `tg list-requests`",
    long = "id"
);

/// Arguments of `tg cancel-request`.
#[derive(Debug, Args)]
pub struct CancelRequest {
    #[command(flatten)]
    gateway: Gateway,
    #[command(flatten)]
    request: RequestId,
}

impl Command for CancelRequest {
    const NAME: &'static str = "cancel-request";
    const ABOUT: &'static str = "Cancel one of your detached requests";

    fn options(&self) -> Options {
        Options::from(&self.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let request = json!({"operation": "cancel-request", "id": self.request.id()});
        let reply = session.http()?.service("requests", request).await?;
        session.out.show(&reply, || {
            format!("Cancelled: {}", text(&reply, "cancelled"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_a_table() {
        let reply = json!({"requests": [{"id": "r1", "service": "agent", "flow": "default",
            "workspace": "acme", "seconds": 7}]});
        let shown = render(&reply, None);
        assert!(shown.contains("r1") && shown.contains("agent") && shown.contains("7"));
        assert!(
            render(&json!({"requests": []}), None).starts_with("There are no detached requests")
        );
    }
}
