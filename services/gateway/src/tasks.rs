//! Tasks that runs of the agent gave, as they are listed. A task repeats what was said, so a caller sees those of their own where
//! they may ask the agent now; whoever administers a workspace sees all of it.

use std::collections::BTreeMap;

use futures::{StreamExt, stream};
use serde_json::Value;
use tg_clients::agent_runs::AgentRuns;
use tg_schemas::WorkspaceId;
use tg_schemas::msg::AgentTask;
use tg_schemas::paging::Asked;

use crate::ask::{Part, Parts};
use crate::auth::{Identity, Resource};
use crate::engine::translate::fields::Reply;
use crate::engine::translate::{Body, Fields};
use crate::error::RequestError;
use crate::registry::Gate;
use crate::state::App;

impl App {
    /// A page of tasks of a user, or of a workspace; the page is the agent's. `needs` is what it takes to read those of a user.
    pub(crate) async fn tasks(
        &self,
        identity: &Identity,
        needs: Gate,
        (user, workspace): (&str, &str),
        body: &Body,
    ) -> Result<Parts, RequestError> {
        let fields = Fields::new(body);
        let (limit, after) = (fields.integer_or("limit", 0)?, fields.text("after")?);
        Asked::read("list-tasks", limit, &after)?;
        let runs = AgentRuns::of(&self.mesh, user).of_workspace(workspace);
        let (mut tasks, next) = runs.tasks(limit, &after).await?;
        if workspace.is_empty() {
            tasks = self.readable(identity, needs, tasks).await?;
        }
        let rows = tasks.into_iter().map(shown).map(Value::Object);
        let reply = Reply::new()
            .put("tasks", rows.collect::<Vec<_>>())
            .put_truthy("next", next);
        let part = Part::Body {
            body: reply.done().into(),
            last: true,
            failed: false,
        };
        Ok(stream::iter([part]).boxed())
    }

    /// Those of workspaces in which a caller may do now what is needed.
    async fn readable(
        &self,
        identity: &Identity,
        needs: Gate,
        tasks: Vec<AgentTask>,
    ) -> Result<Vec<AgentTask>, RequestError> {
        let mut known: BTreeMap<String, bool> = BTreeMap::new();
        let mut readable = Vec::new();
        for task in tasks {
            let may = match known.get(&task.workspace) {
                Some(may) => *may,
                None => {
                    let may = self.reads_in(identity, needs, &task.workspace).await?;
                    known.insert(task.workspace.clone(), may);
                    may
                }
            };
            if may {
                readable.push(task);
            }
        }
        Ok(readable)
    }

    async fn reads_in(
        &self,
        identity: &Identity,
        needs: Gate,
        workspace: &str,
    ) -> Result<bool, RequestError> {
        let Ok(id) = WorkspaceId::new(workspace) else {
            return Ok(false);
        };
        let resource = Resource::workspace(workspace);
        match self.allowed(identity, needs, &resource, &id).await {
            Ok(_) => Ok(true),
            Err(RequestError::AccessDenied | RequestError::WorkspaceNotFound) => Ok(false),
            Err(fault) => Err(fault),
        }
    }
}

/// A task in a list.
fn shown(task: AgentTask) -> Body {
    Reply::new()
        .put("id", task.id)
        .put("kind", task.kind)
        .put("agent", task.agent)
        .put("session", task.session)
        .put_truthy("run", task.run)
        .put("workspace", task.workspace)
        .put_truthy("user", task.user)
        .put("message", task.message)
        .put("status", task.status)
        .put_truthy("result", task.result)
        .put_truthy("error", task.error)
        .put("created-ms", task.created_ms)
        .put_truthy("started-ms", task.started_ms)
        .put_truthy("completed-ms", task.completed_ms)
        .done()
}
