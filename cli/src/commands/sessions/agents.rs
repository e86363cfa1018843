//! `tg list-agents` and `tg show-agent`: agents as the operator's files describe them, and the list of those of the workspace.

use clap::Args;
use serde_json::{Value, json};
use tg_schemas::operations::{Empty, GetNamedAgent, ListNamedAgents, NamedAgent};

use super::made;
use crate::args::{Common, Options, subject};
use crate::client::Result;
use crate::fields::{list, text, texts};
use crate::layout::{Width, table};
use crate::registry::Command;
use crate::session::Session;

subject!(
    /// An agent.
    Agent,
    "Name of the agent" as "NAME",
    short = 'n',
    long = "name"
);

/// Arguments of `tg list-agents`.
#[derive(Debug, Args)]
pub struct ListAgents {
    #[command(flatten)]
    common: Common,
    /// List those that were made in the workspace, with their ids
    #[arg(long)]
    of_workspace: bool,
}

impl Command for ListAgents {
    const NAME: &'static str = "list-agents";
    const ABOUT: &'static str = "List the agents that the operator's files describe";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    fn fails_with_one(&self) -> bool {
        true
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        if self.of_workspace {
            let shown = json!({"agents": made::listed(session).await?});
            return session.out.lay(&shown, |width| made::render(&shown, width));
        }
        let found = session.http()?.call::<ListNamedAgents>(&Empty {}).await?;
        let shown = json!({"agents": found.agents});
        session.out.lay(&shown, |width| render(&shown, width))
    }
}

fn render(shown: &Value, width: Width) -> String {
    let rows: Vec<_> = list(shown, "agents")
        .iter()
        .map(|one| {
            [
                text(one, "name"),
                text(one, "model"),
                texts(one, "tools").join(", "),
                text(one, "description"),
            ]
        })
        .collect();
    match rows.is_empty() {
        true => "There are no agents.".to_owned(),
        false => table(["name", "model", "tools", "description"], rows, width),
    }
}

/// Arguments of `tg show-agent`.
#[derive(Debug, Args)]
pub struct ShowAgent {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    agent: Agent,
}

impl Command for ShowAgent {
    const NAME: &'static str = "show-agent";
    const ABOUT: &'static str = "Show an agent with its instructions";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    fn fails_with_one(&self) -> bool {
        true
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let asked = NamedAgent {
            name: self.agent.id().to_owned(),
        };
        let found = session.http()?.call::<GetNamedAgent>(&asked).await?;
        session.out.json(&json!(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_a_table() {
        let shown = json!({"agents": [
            {"name": "a", "model": "m", "description": "d", "tools": ["x", "y"], "rag_index": null}]});
        let told = render(&shown, None);
        for part in ["a", "m", "x, y", "d"] {
            assert!(told.contains(part), "{told}");
        }
        assert_eq!(render(&json!({}), None), "There are no agents.");
    }
}
