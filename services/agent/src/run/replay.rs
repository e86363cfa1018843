//! Runs a recorded run again, by its record alone: no model, tool or hook is asked, nothing is written or counted. The same code takes
//! the same steps, so that it streams the same parts byte for byte, or says where it differs.

use std::sync::Arc;

use futures::executor::block_on;
use tg_mesh::{Cx, InstanceScope};
use tg_schemas::msg::AgentResponse;
use tg_schemas::processors::agent_manager;
use tg_schemas::{Error, ErrorCode, FlowId, WorkspaceId, limits};
use tokio::sync::OwnedSemaphorePermit;

use super::agent::Agent;
use super::playback::Playback;
use super::record::LARGEST;
use super::subagents_again::{Again, Came};
use crate::error::{AgentError, Stop};
use crate::options::Options;
use crate::store::Record;

/// The parts of a replayed run, and why it went no further.
pub(crate) struct Replayed {
    pub(crate) parts: Vec<AgentResponse>,
    pub(crate) end: Result<(), Error>,
}

/// Runs it again, as soon as there is `room`. `record`: as the ledger has it; `place`: workspace and flow of the run.
///
/// # Errors
/// When there is no record that it could be run by.
pub(crate) async fn replay(
    agent: &Agent,
    cx: &Cx,
    record: Option<Record>,
    (place, room): ((&str, &str), OwnedSemaphorePermit),
) -> Result<Replayed, Error> {
    let none = || {
        let text = "the run was not recorded: ask with record=true (tg invoke-agent --record) to replay it later";
        Error::new(ErrorCode::NotFound, text)
    };
    let record = record.ok_or_else(none)?;
    if record.grown {
        let most = limits::human(usize::try_from(LARGEST).unwrap_or(usize::MAX));
        let text = format!(
            "the run cannot be replayed: its record grew over {most}, or over what the workspace may keep"
        );
        return Err(Error::new(ErrorCode::TooLarge, text));
    }
    let (options, cx) = (agent.options.clone(), apart(cx, place));
    // It computes and waits for nothing; and it opens and closes a ledger in memory.
    let work = tokio::task::spawn_blocking(move || {
        let replayed = block_on(again(record, options, cx));
        drop(room);
        replayed
    });
    work.await
        .unwrap_or_else(|_| Err(AgentError::Stopping.into()))
}

async fn again(record: Record, options: Options, cx: Cx) -> Result<Replayed, Error> {
    let playback = Arc::new(Playback::new(record)?);
    let began = playback.began();
    let mut run = began.run.clone();
    // Where those of then are of another release, those of now.
    let then: Option<Options> = serde_json::from_value(began.options.clone()).ok();
    let again = Again {
        agent: Agent::apart(Options {
            // It is said in what money is worth now.
            usd_eur_rate: options.usd_eur_rate,
            ..then.unwrap_or(options)
        })?,
        cx,
        playback: playback.clone(),
    };
    let end = loop {
        match again.step(&run, None).await {
            Ok(Came::On(next)) => run = *next,
            Ok(Came::Over(_)) => break Ok(()),
            Ok(Came::NoFurther(stop)) | Err(stop) => break Err(told(stop)),
        }
    };
    Ok(Replayed {
        parts: playback.told(),
        end,
    })
}

/// The context of a run in its place, of which nothing is asked.
fn apart(cx: &Cx, (workspace, flow): (&str, &str)) -> Cx {
    let mut own = cx.clone();
    own.scope = Arc::new(InstanceScope {
        processor: agent_manager::PROCESSOR.id.to_owned(),
        workspace: WorkspaceId::new(workspace).ok(),
        flow: FlowId::new(flow).ok(),
        ..InstanceScope::default()
    });
    // Who asks for it stops waiting; the run itself was not cancelled by that.
    own.cancel = cx.mesh.shutdown().child_token();
    own
}

fn told(stop: Stop) -> Error {
    match stop {
        Stop::Error(error) => error,
        Stop::End(_) | Stop::Spent(_) => AgentError::EndNotHandled.into(),
    }
}
