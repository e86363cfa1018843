//! `tg list-tasks`: work that runs of the agent gave to other agents and do not wait for.

use clap::Args;
use serde_json::{Value, json};

use crate::args::{Gateway, Options};
use crate::client::Result;
use crate::fields::{list, text};
use crate::layout::{Width, table};
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg list-tasks`.
#[derive(Debug, Args)]
pub struct ListTasks {
    #[command(flatten)]
    gateway: Gateway,
    /// Those of everybody in the workspace, for its administrators
    #[arg(long)]
    all: bool,
}

impl Command for ListTasks {
    const NAME: &'static str = "list-tasks";
    const ABOUT: &'static str =
        "List tasks: what your runs gave to other agents and do not wait for";

    fn options(&self) -> Options {
        Options::from(&self.gateway)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let request = json!({"operation": "list-tasks", "all": self.all});
        let reply = session.http()?.all("requests", request).await?;
        session.out.lay(&reply, |width| render(&reply, width))
    }
}

fn render(reply: &Value, width: Width) -> String {
    let columns = [
        "id",
        "status",
        "agent",
        "workspace",
        "user",
        "message",
        "outcome",
    ];
    let cell = |row: &Value, column: &str| match column {
        "outcome" => match text(row, "error") {
            error if error.is_empty() => text(row, "result"),
            error => error,
        },
        column => text(row, column),
    };
    let rows: Vec<_> = list(reply, "tasks")
        .iter()
        .map(|row| columns.map(|column| cell(row, column)))
        .collect();
    match rows.is_empty() {
        true => "There are no tasks.".to_owned(),
        false => table(columns, rows, width),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_a_table() {
        let reply = json!({"tasks": [
            {"id": "t1", "status": "success", "agent": "bee", "workspace": "acme", "user": "ann", "message": "b?",
             "result": "B"},
            {"id": "t2", "status": "failed", "agent": "bee", "workspace": "acme", "message": "c?",
             "error": "interrupted by restart"}]});
        let shown = render(&reply, None);
        for part in ["t1", "success", "bee", "B", "t2", "interrupted by restart"] {
            assert!(shown.contains(part), "{shown}");
        }
        assert_eq!(render(&json!({"tasks": []}), None), "There are no tasks.");
    }
}
