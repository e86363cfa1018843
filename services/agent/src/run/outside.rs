//! Calls of models that no run makes: the services that make them have the ledger reserve them in the budgets of key and
//! workspace, beside the calls of runs, and count them.

use tg_clients::model_calls::{DIRECT, DOCUMENTS};
use tg_mesh::{Cx, clock};
use tg_schemas::Error;
use tg_schemas::limits::USAGE_CALLS;
use tg_schemas::msg::{UsageCall, UsageResponse};

use super::agent::Agent;
use super::budget::{GRACE_MS, LONGEST_MS, bounds_of, budgets_of};
use super::day::today;
use super::execution::is_over;
use crate::engine::decision::Usage;
use crate::engine::guards::Exhausted;
use crate::engine::guards::budget::{Per, outside_call};
use crate::engine::usage::{Amount, Scope};
use crate::error::AgentError;
use crate::prices;
use crate::store::{Account, Bound, Call, CallKind, Counted, Reservation, RunKey, Used};

/// Seconds after which a call may fit that only what is reserved for others stands in the way of.
const SOON: u64 = 5;

/// Reserves a call, unless it does not fit.
///
/// # Errors
/// The request has other than one call, a budget cannot be read, or the ledger failed.
pub(crate) async fn reserve(
    agent: &Agent,
    cx: &Cx,
    calls: &[UsageCall],
) -> Result<UsageResponse, Error> {
    let [call] = checked(calls)? else {
        return Err(AgentError::OneCall.into());
    };
    let day = today();
    let mut bounds = bounds(agent, cx, &day)?;
    let mut answer = UsageResponse {
        bound: !bounds.is_empty(),
        ..UsageResponse::default()
    };
    // Who is not known has no budget of a key.
    bounds.retain(|bound| bound.scope != Scope::Key || !call.key.is_empty());
    if bounds.is_empty() {
        return Ok(answer);
    }
    let known = match call.model.as_str() {
        "" => prices::all(cx),
        model => prices::price(cx, model).into_iter().collect(),
    };
    let now = clock::millis();
    let tokens = (count(call.in_token), count(call.out_token));
    let next = Reservation {
        account: account(cx, call),
        amount: outside_call(tokens, known.into_iter()),
        like: (Scope::Model, call.model.clone()),
        expires_ms: call
            .expires_ms
            .min(now + LONGEST_MS)
            .saturating_add(GRACE_MS),
        bounds,
        day,
        waits: false,
        ahead: false,
    };
    let ledger = agent.ledger().await?;
    let over = ledger.reserve(&named(cx, call), &next, now).await?;
    if let Some(over) = over {
        metrics::counter!("tg_agent_budget_total", "limit" => over.limit.as_str()).increment(1);
        let (workspace, why) = (cx.workspace(), over.why.as_str());
        tracing::info!(workspace, why, "a call of a model is out of its budget");
        answer.retry_after = i64::try_from(pause(&over, &next.bounds)).unwrap_or(i64::MAX);
        answer.refused = over.why;
    }
    Ok(answer)
}

/// Counts calls. Those that are counted already stay as they are.
///
/// # Errors
/// The request has too many calls or none, or the ledger failed.
pub(crate) async fn settle(
    agent: &Agent,
    cx: &Cx,
    calls: &[UsageCall],
) -> Result<UsageResponse, Error> {
    let calls = checked(calls)?;
    let day = today();
    let counted = calls.iter().map(|call| Counted {
        call: named(cx, call),
        used: Used {
            account: account(cx, call),
            by: (Scope::Model, call.model.clone()),
            amount: amount(cx, call),
            day: day.clone(),
            // Whoever asked the model has guessed them already.
            unreported: None,
        },
    });
    let counted: Vec<Counted> = counted.collect();
    let key = RunKey {
        run: String::new(),
        is_over: is_over(cx),
    };
    let ledger = agent.ledger().await?;
    ledger.settle_all(&key, &counted, clock::millis()).await?;
    Ok(UsageResponse {
        // Where the row cannot be read, each call is asked for, and told so.
        bound: bounds(agent, cx, &day).map_or(true, |bounds| !bounds.is_empty()),
        ..UsageResponse::default()
    })
}

fn checked(calls: &[UsageCall]) -> Result<&[UsageCall], AgentError> {
    let named = calls.iter().all(|call| !call.id.is_empty());
    match calls.len() {
        1..=USAGE_CALLS if named => Ok(calls),
        _ => Err(AgentError::Calls),
    }
}

/// What binds calls that belong to no run.
fn bounds(agent: &Agent, cx: &Cx, day: &str) -> Result<Vec<Bound>, AgentError> {
    let mut bounds = bounds_of(budgets_of(agent, cx)?, day, 0);
    bounds.retain(|bound| matches!(bound.scope, Scope::Key | Scope::Workspace));
    Ok(bounds)
}

/// Seconds after which a call that was refused may fit.
pub(super) fn pause(over: &Exhausted, bounds: &[Bound]) -> u64 {
    if over.reserved {
        return SOON;
    }
    let bound = bounds.iter().find(|bound| over.why.contains(&bound.whose));
    let monthly = bound.is_some_and(|bound| bound.whose.ends_with(Per::Month.as_str()));
    let per = match monthly {
        true => Per::Month,
        false => Per::Day,
    };
    per.left(clock::now())
}

/// Its row in the ledger.
fn named(cx: &Cx, call: &UsageCall) -> Call {
    Call {
        run: format!("call/{}/{}", cx.workspace_key(), call.id),
        step: 0,
        kind: CallKind::Model,
        nth: 0,
    }
}

/// Whom it counts for: in place of a run, what it is made for.
fn account(cx: &Cx, call: &UsageCall) -> Account {
    let of = match call.of == DOCUMENTS {
        true => DOCUMENTS,
        false => DIRECT,
    };
    Account {
        workspace: cx.workspace_key().to_string(),
        run: of.to_owned(),
        key: call.key.clone(),
        ..Account::default()
    }
}

fn count(tokens: i64) -> u64 {
    u64::try_from(tokens).unwrap_or(0)
}

fn amount(cx: &Cx, call: &UsageCall) -> Amount {
    let usage = Usage {
        in_token: call.in_token.max(0),
        out_token: call.out_token.max(0),
        cache_read: call.cache_read.max(0),
        cache_write: call.cache_write.max(0),
        model: call.model.clone(),
        duration_ms: count(call.duration_ms),
        ..Usage::default()
    };
    let told = call.nanodollars.and_then(|nano| u64::try_from(nano).ok());
    let cost = prices::cost(cx, &call.model, &usage, told);
    Amount {
        model_calls: 1,
        ..Amount::of(&Usage { cost, ..usage })
    }
}
