//! `tg put-agent`, `tg delete-agent` and `tg list-agent-templates`: agents that are made in a workspace.

use clap::Args;
use serde_json::{Value, json};
use tg_schemas::operations::{
    AgentChange, CreateAgent, CreateFromTemplate, DeleteAgent as Delete, Empty, FromTemplate,
    ListAgents, ListTemplates, NewAgent, OneAgent, UpdateAgent, WhichAgents, WorkspaceAgent,
};

use crate::args::{Common, Options, subject};
use crate::client::{Error, Result};
use crate::fields::{list, text};
use crate::layout::{Width, table};
use crate::registry::Command;
use crate::session::Session;

subject!(
    /// An agent that was made.
    Made,
    "Id of the agent",
    long = "agent-id"
);

/// Entries of a page.
const PAGE: i64 = 200;

/// The agents of the workspace, oldest first.
pub(super) async fn listed(session: &Session) -> Result<Vec<WorkspaceAgent>> {
    let mut asked = WhichAgents {
        limit: Some(PAGE),
        cursor: None,
    };
    let mut all = Vec::new();
    loop {
        let page = session.http()?.call::<ListAgents>(&asked).await?;
        all.extend(page.items);
        if page.next_cursor.is_none() || page.next_cursor == asked.cursor {
            return Ok(all);
        }
        asked.cursor = page.next_cursor;
    }
}

/// They as a table.
pub(super) fn render(shown: &Value, width: Width) -> String {
    let columns = ["agentId", "name", "llmServiceId", "description"];
    let rows: Vec<_> = list(shown, "agents")
        .iter()
        .map(|one| columns.map(|column| text(one, column)))
        .collect();
    match rows.is_empty() {
        true => "There are no agents.".to_owned(),
        false => table(["id", "name", "LLM service", "description"], rows, width),
    }
}

/// Arguments of `tg put-agent`.
#[derive(Debug, Args)]
pub struct PutAgent {
    #[command(flatten)]
    common: Common,
    /// Name of the agent
    #[arg(value_name = "NAME", required_unless_present_any = ["agent_id", "template"])]
    name: Option<String>,
    /// Change the agent that has this id; what is not given stays
    #[arg(long, value_name = "ID")]
    agent_id: Option<String>,
    /// Make it like a template, with the template's name
    #[arg(long, value_name = "ID", conflicts_with_all = [
        "name", "agent_id", "description", "system_prompt", "user_prompt", "llm_service_id", "collection"
    ])]
    template: Option<String>,
    /// What it is for
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// What the model is told first
    #[arg(long, value_name = "TEXT")]
    system_prompt: Option<String>,
    /// What is put before the first message of a conversation
    #[arg(long, value_name = "TEXT")]
    user_prompt: Option<String>,
    /// The LLM service that answers
    #[arg(long, value_name = "ID")]
    llm_service_id: Option<String>,
    /// A collection that it reads before each answer; may be given several times
    #[arg(short = 'C', long, value_name = "ID")]
    collection: Vec<String>,
}

impl Command for PutAgent {
    const NAME: &'static str = "put-agent";
    const ABOUT: &'static str = "Make an agent in the workspace, or change one";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    fn fails_with_one(&self) -> bool {
        true
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let http = session.http()?;
        let made = match (&self.template, &self.agent_id) {
            (Some(template), _) => {
                let asked = FromTemplate {
                    template_id: template.clone(),
                };
                http.call::<CreateFromTemplate>(&asked).await?
            }
            (None, Some(id)) => http.call::<UpdateAgent>(&self.change(id)).await?,
            (None, None) => http.call::<CreateAgent>(&self.new_one()).await?,
        };
        session.out.json(&json!(made))
    }
}

impl PutAgent {
    fn new_one(&self) -> NewAgent {
        NewAgent {
            name: self.name.clone().unwrap_or_default(),
            description: self.description.clone(),
            system_prompt: self.system_prompt.clone(),
            user_prompt: self.user_prompt.clone(),
            llm_service_id: self.llm_service_id.clone(),
            knowledge_base_ids: self.collection.clone(),
            rag_enabled: !self.collection.is_empty(),
            ..NewAgent::default()
        }
    }

    /// What was given, and nothing else.
    fn change(&self, id: &str) -> AgentChange {
        let reads = Some(self.collection.clone()).filter(|all| !all.is_empty());
        AgentChange {
            agent_id: id.to_owned(),
            name: self.name.clone(),
            description: self.description.clone().map(Some),
            system_prompt: self.system_prompt.clone().map(Some),
            user_prompt: self.user_prompt.clone().map(Some),
            llm_service_id: self.llm_service_id.clone().map(Some),
            rag_enabled: reads.as_ref().map(|_| true),
            knowledge_base_ids: reads,
            ..AgentChange::default()
        }
    }
}

/// Arguments of `tg delete-agent`.
#[derive(Debug, Args)]
pub struct DeleteAgent {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    agent: Made,
    /// Delete its conversations with it
    #[arg(long, short = 'y')]
    yes: bool,
}

impl Command for DeleteAgent {
    const NAME: &'static str = "delete-agent";
    const ABOUT: &'static str = "Delete an agent of the workspace with its conversations";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    fn fails_with_one(&self) -> bool {
        true
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        if !self.yes {
            let text = "this deletes the agent's conversations, too; add --yes to do it";
            return Err(Error::Usage(text.to_owned()));
        }
        let id = self.agent.id();
        let asked = OneAgent {
            agent_id: id.to_owned(),
        };
        session.http()?.call::<Delete>(&asked).await?;
        let shown = json!({"deleted": id});
        session.out.lay(&shown, |_| format!("deleted: {id}"))
    }
}

/// Arguments of `tg list-agent-templates`.
#[derive(Debug, Args)]
pub struct ListAgentTemplates {
    #[command(flatten)]
    common: Common,
}

impl Command for ListAgentTemplates {
    const NAME: &'static str = "list-agent-templates";
    const ABOUT: &'static str = "List the templates of agents";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    fn fails_with_one(&self) -> bool {
        true
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let found = session.http()?.call::<ListTemplates>(&Empty {}).await?;
        let shown = json!({"templates": found.items});
        session.out.lay(&shown, |width| templates(&shown, width))
    }
}

fn templates(shown: &Value, width: Width) -> String {
    let columns = ["templateId", "name", "description"];
    let rows = list(shown, "templates")
        .iter()
        .map(|one| columns.map(|column| text(one, column)));
    table(["id", "name", "description"], rows, width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_and_templates_are_tables() {
        let shown = json!({"agents": [{"agentId": "1", "name": "Maven", "llmServiceId": null}],
                           "templates": [{"templateId": "maven", "name": "Maven"}]});
        assert!(render(&shown, None).contains("Maven"));
        assert!(templates(&shown, None).contains("maven"));
        assert_eq!(render(&json!({}), None), "There are no agents.");
    }
}
