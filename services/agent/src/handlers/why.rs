//! What a run waits for, and each of its subagents: as the ledger knows it, and what this process works on.

use tg_mesh::clock;
use tg_schemas::Error;
use tg_schemas::msg::{AgentRunsRequest, AgentRunsResponse, RunStanding};

use super::known::{shown, unknown, whose};
use crate::engine::decision::Taken;
use crate::run::Agent;
use crate::store::RunProgress;

/// Answers `why-run`.
///
/// # Errors
/// There is no such run, or the ledger failed.
pub(super) async fn answer(
    agent: &Agent,
    ask: &AgentRunsRequest,
) -> Result<AgentRunsResponse, Error> {
    let ledger = agent.ledger().await?;
    let run = ledger.of_question(&whose(ask), &ask.id).await?;
    let run = run.ok_or_else(unknown)?;
    let stands = ledger.standing(&run.run, run.started_ms).await?;
    let taken = |step| agent.leases.is_under_way(&run.run, step);
    let below = stands.len() > 1;
    let rows = stands.into_iter().map(|one| {
        let own = one.run == run.run;
        let waits_for = waits_for(&one, own && below);
        let orphaned = own && !one.over && !taken(one.step);
        row(one, own, if orphaned { "process" } else { waits_for })
    });
    let mut standing: Vec<RunStanding> = rows.collect();
    if let Some(own) = standing.first_mut() {
        own.deadline_ms = run.caller.deadline_ms;
    }
    Ok(AgentRunsResponse {
        runs: vec![shown(run, clock::millis())],
        standing,
        ..AgentRunsResponse::default()
    })
}

/// What has to come before it goes on; `has_subagents`: some of its own are under way.
fn waits_for(stands: &RunProgress, has_subagents: bool) -> &'static str {
    if stands.over {
        return "nothing";
    }
    if stands.asked.is_some() {
        return "user";
    }
    match stands.decision.as_ref().map(|decision| &decision.taken) {
        Some(Taken::Goals { .. }) => "subagents",
        Some(Taken::Action { .. }) if has_subagents => "subagents",
        Some(Taken::Action { name, .. }) if !name.is_empty() => "tool",
        Some(Taken::Actions { .. }) => "tool",
        // What is left of the step takes a moment.
        Some(_) => "nothing",
        None => "model",
    }
}

fn row(stands: RunProgress, own: bool, waits_for: &str) -> RunStanding {
    let tool = match &stands.decision {
        Some(decision) if !decision.is_unreadable() => decision.action_name().into_owned(),
        _ => String::new(),
    };
    let (asked, until_ms) = stands.asked.unwrap_or_default();
    RunStanding {
        subagent: if own { String::new() } else { stands.run },
        step: i64::from(stands.step),
        waits_for: waits_for.to_owned(),
        tool,
        since_ms: stands.since_ms,
        until_ms,
        asked,
        ended: stands.ended.unwrap_or_default(),
        deadline_ms: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::decision::Decision;

    #[test]
    fn a_run_waits_for_what_was_decided_and_is_not_there() {
        let taken = |taken: Taken| RunProgress {
            decision: Some(Decision::of(taken)),
            ..RunProgress::default()
        };
        let uses = |name: &str| {
            taken(Taken::Action {
                name: name.to_owned(),
                arguments: Default::default(),
            })
        };
        let asks = RunProgress {
            asked: Some(("m".to_owned(), 1)),
            ..uses("mail")
        };
        let over = RunProgress {
            over: true,
            ..RunProgress::default()
        };
        let goals = taken(Taken::Goals { goals: Vec::new() });
        let text = String::new();
        for (stands, has_subagents, expected) in [
            (RunProgress::default(), false, "model"),
            (uses("mail"), false, "tool"),
            (uses("delegate"), true, "subagents"),
            (taken(Taken::Actions { calls: Vec::new() }), false, "tool"),
            (goals, false, "subagents"),
            (taken(Taken::Answer { text }), false, "nothing"),
            (asks, false, "user"),
            (over, false, "nothing"),
        ] {
            assert_eq!(waits_for(&stands, has_subagents), expected, "{stands:?}");
        }
    }
}
