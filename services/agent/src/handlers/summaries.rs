//! `expand-summary` and `remake-summary`: the steps that a summary of a run stands for, and another summary of them.

use tg_mesh::Cx;
use tg_schemas::msg::{AgentRunsRequest, AgentRunsResponse, RunSummary, SummedStep};
use tg_schemas::{Error, ErrorCode, limits};

use super::known::{unknown, whose};
use crate::engine::compacting::SUMMARISE;
use crate::run::Agent;
use crate::run::summaries::{Summed, entity_of, remake, summed};
use crate::store::{KnownRun, Remade};

/// Answers `expand-summary`: the summary, those that were made again, and the steps that they stand for.
///
/// # Errors
/// There is no such run or summary, or the ledger failed.
pub(super) async fn expand(
    agent: &Agent,
    ask: &AgentRunsRequest,
) -> Result<AgentRunsResponse, Error> {
    let (run, summed) = find(agent, ask).await?;
    let ledger = agent.ledger().await?;
    let remade = ledger.remade(&run.run, summed.step).await?;
    let again = remade.iter().map(|one| made_again(&summed, one));
    let summaries = std::iter::once(first(&summed)).chain(again).collect();
    let steps = summed.steps.into_iter().map(|(number, step)| SummedStep {
        step: i64::from(number),
        thought: step.thought,
        action: step.action,
        arguments: step.arguments,
        observation: step.observation,
    });
    Ok(AgentRunsResponse {
        summaries,
        summed: steps.collect(),
        ..AgentRunsResponse::default()
    })
}

/// Answers `remake-summary`: the summary that was made.
///
/// # Errors
/// As [`expand`]; no model is named, or it made none.
pub(super) async fn again(
    agent: &Agent,
    cx: &Cx,
    ask: &AgentRunsRequest,
) -> Result<AgentRunsResponse, Error> {
    if ask.model.is_empty() || ask.model.len() > limits::MODEL_NAME {
        let most = limits::MODEL_NAME;
        let text = format!("model: is required, with at most {most} bytes");
        return Err(Error::new(ErrorCode::BadRequest, text));
    }
    let (run, summed) = find(agent, ask).await?;
    let made = remake(agent, cx, &run, (&summed, &ask.model)).await?;
    Ok(AgentRunsResponse {
        summaries: vec![made_again(&summed, &made)],
        ..AgentRunsResponse::default()
    })
}

async fn find(agent: &Agent, ask: &AgentRunsRequest) -> Result<(KnownRun, Summed), Error> {
    let step = u32::try_from(ask.step)
        .map_err(|_| Error::new(ErrorCode::BadRequest, "step: must be a step, or 0"))?;
    let ledger = agent.ledger().await?;
    let run = ledger.of_question(&whose(ask), &ask.id).await?;
    let run = run.ok_or_else(unknown)?;
    match summed(&ledger, &run.run, step).await? {
        Some(summed) => Ok((run, summed)),
        None => {
            let text = match step {
                0 => "the run summed nothing up".to_owned(),
                step => format!("step: the run summed nothing up before step {step}"),
            };
            Err(Error::new(ErrorCode::NotFound, text))
        }
    }
}

fn count(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The one that the run went on with.
fn first(summed: &Summed) -> RunSummary {
    let made = &summed.compacted;
    let prompt = match made.usage.model.is_empty() {
        true => String::new(),
        false => SUMMARISE.to_owned(),
    };
    RunSummary {
        step: i64::from(summed.step),
        trace: summed.entity(),
        tier: made.tier.as_str().to_owned(),
        text: made.text.clone(),
        model: made.usage.model.clone(),
        prompt,
        tokens_before: count(made.before),
        tokens_after: count(made.after),
        created_ms: 0,
    }
}

fn made_again(summed: &Summed, made: &Remade) -> RunSummary {
    RunSummary {
        step: i64::from(summed.step),
        trace: entity_of(made),
        tier: made.tier.as_str().to_owned(),
        text: made.text.clone(),
        model: made.model.clone(),
        prompt: SUMMARISE.to_owned(),
        tokens_before: count(made.tokens.0),
        tokens_after: count(made.tokens.1),
        created_ms: made.at_ms,
    }
}
