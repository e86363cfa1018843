//! Settles, before its first step, how a run is gone about. What was settled is in the ledger before it is acted on: a
//! question that comes again goes the same way.

use std::sync::Arc;
use std::time::Duration;

use tg_clients::prompt::Prompts;
use tg_mesh::Cx;
use tg_schemas::Error;
use tg_schemas::msg::{AgentRequest, AgentRun};
use tokio::time::Instant;

use super::agent::Agent;
use super::execution::{StepExecution, is_over};
use super::hearing::used;
use crate::engine::bounds::shorten;
use crate::engine::decision::Usage;
use crate::engine::prompt::Terms;
use crate::engine::router::{CLASSIFY, Route, Router, SELECT};
use crate::error::{AgentError, Stop};
use crate::store::{Began, RunKey};

/// Most of a question that a model sees to choose, in bytes.
const MAX_QUESTION: usize = 8 << 10;
/// Longest wait for a model to choose, in all; then the run goes the way of what cannot be told.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The way of a run for which nothing is to be chosen: it is written down as the run begins, so that a question that comes
/// again after something was configured goes the same way.
pub(crate) fn without_choice(agent: &Agent, cx: &Cx, question: &AgentRequest) -> Option<Route> {
    let named = question.pattern.trim();
    let chosen = !named.is_empty() || agent.routers.of(cx).is_empty();
    chosen.then(|| Route::by_name(named))
}

/// How the run that a question began is gone about.
///
/// # Errors
/// When the ledger fails.
pub(crate) async fn settle(
    agent: &Arc<Agent>,
    cx: &Cx,
    question: &AgentRequest,
    (key, began): (&str, &Began),
) -> Result<Route, Error> {
    if let Some(route) = &began.route {
        return Ok(route.clone());
    }
    // One that an earlier release began.
    if let Some(route) = without_choice(agent, cx, question) {
        return Ok(route);
    }
    let router = agent.routers.of(cx);
    let run = AgentRun {
        run: began.run.clone(),
        started_at: began.started_at.clone(),
        conversation: question.conversation_id.clone(),
        settings: question.settings(),
        account: question.agent.clone(),
        ..AgentRun::default()
    };
    // Its model is asked on the run's account, before its steps.
    let mut by = StepExecution::new(Arc::clone(agent), cx.clone(), Arc::new(run), 0, None, false);
    let route = match choose(&mut by, &router, question).await {
        Ok(route) => route,
        Err(Stop::Error(error)) => return Err(error),
        Err(Stop::End(_) | Stop::Spent(_)) => return Err(AgentError::EndNotHandled.into()),
    };
    let run = RunKey {
        run: began.run.clone(),
        is_over: is_over(cx),
    };
    let ledger = agent.ledger().await?;
    let stands = ledger.route(key, &run, &route).await?;
    stands.ok_or_else(|| AgentError::NoWorkspace.into())
}

async fn choose(
    by: &mut StepExecution,
    router: &Router,
    question: &AgentRequest,
) -> Result<Route, Stop> {
    let mut spent = Usage::default();
    let end = Instant::now() + TIMEOUT;
    let text = shorten(&question.question, MAX_QUESTION);
    let named = question.task_type.trim();
    let terms = router.classify(&text, named);
    let said = ask(by, CLASSIFY, terms, end, &mut spent).await?;
    let task_type = router.task_type(named, said.as_deref());
    let terms = router.select(&text, &task_type);
    let said = ask(by, SELECT, terms, end, &mut spent).await?;
    Ok(Route {
        pattern: router.pattern(&task_type, said.as_deref()),
        framing: router.framing(&task_type).to_owned(),
        task_type,
        in_token: spent.in_token,
        out_token: spent.out_token,
        cache_read: spent.cache_read,
        cache_write: spent.cache_write,
        cost: spent.cost,
        model: spent.model,
        named: false,
    })
}

/// What the model says, if it is to be asked and that fits the budgets. A model that fails does not end the run: there is always a choice without it.
async fn ask(
    by: &mut StepExecution,
    prompt: &str,
    terms: Option<Terms>,
    end: Instant,
    spent: &mut Usage,
) -> Result<Option<String>, Stop> {
    let Some(terms) = terms else {
        return Ok(None);
    };
    if !by.router_may_ask().await? {
        return Ok(None);
    }
    let prompts = Prompts::of_flow(&by.cx).rendered_here(&by.cx, &by.agent.prompts);
    let started = Instant::now();
    let asked = tokio::time::timeout_at(end, prompts.whole(prompt, terms)).await;
    let (said, took) = match asked {
        Ok(Ok(piece)) => {
            let took = used(&by.cx, piece.spent, started);
            spent.add(&took);
            (Some(piece.text), took)
        }
        Ok(Err(error)) => {
            tracing::debug!(%error, prompt, "the router's model failed");
            (None, Usage::default())
        }
        Err(_) => {
            // What it says is not heard: what was reserved for it is counted as the run ends.
            tracing::debug!(prompt, "the router's model took too long");
            return Ok(None);
        }
    };
    by.settle_asked(&took).await?;
    Ok(said)
}
