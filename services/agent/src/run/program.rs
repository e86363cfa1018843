//! Has a program do what a run gives to an agent that is one: within the budgets of the run, and until nobody waits any more. It is
//! never asked twice for the same work.

use std::sync::Arc;

use tg_mesh::Cx;
use tg_schemas::msg::AgentRun;

use super::agent::Agent;
use super::execution::StepExecution;
use crate::engine::decision::Usage;
use crate::error::{AgentError, Stop};
use crate::programs::{Asked, Key, Reply};

/// What a program is to do, and for whom.
pub(super) struct Given<'a> {
    /// The run on whose account it is done.
    pub(super) run: AgentRun,
    /// Id of the agent.
    pub(super) agent: &'a str,
    /// Session in which it is done.
    pub(super) session: &'a str,
    /// Somebody may come back to that.
    pub(super) lasts: bool,
    /// Its message.
    pub(super) message: &'a str,
}

/// The answer of the program; the inner error is its failure, for the caller.
pub(super) async fn ask(
    agent: &Arc<Agent>,
    cx: &Cx,
    given: &Given<'_>,
) -> Result<Result<Reply, String>, Stop> {
    let listed = agent.options.cli_agents.as_ref();
    let Some(program) = listed.and_then(|all| all.of(given.agent, cx.workspace())) else {
        return Ok(Err(format!("there is no agent '{}'", given.agent)));
    };
    let run = Arc::new(given.run.clone());
    let mut by = StepExecution::new(agent.clone(), cx.clone(), run, 0, None, false);
    if !by.router_may_ask().await? {
        return Ok(Err("the budget is used up".to_owned()));
    }
    let asked = Asked {
        agent: program,
        key: Key {
            workspace: cx.workspace_key().to_string(),
            user: cx.headers.user_id.clone().unwrap_or_default(),
            agent: given.agent.to_owned(),
            session: given.session.to_owned(),
        },
        message: given.message,
        lasts: given.lasts,
    };
    let mut answer = tokio::select! {
        answer = agent.programs.ask(&cx.mesh, &asked) => answer,
        () = cx.cancel.cancelled() => Err(AgentError::Cancelled.to_string()),
        () = cx.deadline.reached() => Err(AgentError::Timeout.to_string()),
    };
    if let Ok(reply) = &mut answer
        && given.run.caller_depth > 0
    {
        reply.usage.list(given.agent, false);
    }
    let used = match &answer {
        Ok(reply) => Usage {
            model: given.agent.to_owned(),
            ..reply.usage.clone()
        },
        // It says nothing of what it took.
        Err(_) => Usage::default(),
    };
    by.settle_asked(&used).await?;
    Ok(answer)
}
