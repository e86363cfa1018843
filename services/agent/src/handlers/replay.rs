//! `replay-run` of `agent-runs`: a recorded run is run again, and streams what it streamed, from any part on.

use tg_clients::neighbours::Neighbours;
use tg_mesh::{Cx, Responder};
use tg_schemas::msg::{AgentRunsRequest, AgentRunsResponse};
use tg_schemas::{Error, WorkspaceKey};

use super::known::unknown;
use super::parts::{TOGETHER, beyond};
use crate::engine::chunks;
use crate::error::AgentError;
use crate::run::Agent;
use crate::run::replay::{Replayed, replay as run_again};
use crate::store::Whose;

/// Answers with the parts of a run as the replay streams them.
pub(super) async fn replay(
    agent: &Agent,
    cx: &Cx,
    (whose, ask): (&Whose, &AgentRunsRequest),
    out: &mut Responder<AgentRunsResponse>,
) -> Result<(), Error> {
    let gone = out.cancelled();
    let Replayed { parts, end } = tokio::select! {
        replayed = replayed(agent, cx, whose, &ask.id) => replayed?,
        () = gone.cancelled() => return Ok(()),
        () = cx.mesh.stopping().cancelled() => return Err(AgentError::Stopping.into()),
    };
    let from = usize::try_from(ask.from).unwrap_or(0);
    if from > parts.len() && end.is_ok() {
        return Err(beyond());
    }
    let lean = Neighbours::of(&cx.mesh).read_lean_terms();
    let mut first = from;
    let (mut some, mut bytes) = (Vec::new(), 0);
    for part in parts.iter().skip(from) {
        let text = chunks::written(part, lean);
        bytes += text.len();
        some.push(text);
        if bytes >= TOGETHER {
            let parts = std::mem::take(&mut some);
            bytes = 0;
            let count = parts.len();
            out.send(told(first, parts)).await?;
            first += count;
        }
    }
    if !some.is_empty() {
        out.send(told(first, some)).await?;
    }
    end?;
    out.send(AgentRunsResponse::default()).await
}

async fn replayed(agent: &Agent, cx: &Cx, whose: &Whose, id: &str) -> Result<Replayed, Error> {
    // Ends only with the process.
    let room = agent.replays.clone().acquire_owned().await;
    let room = room.map_err(|_| Error::from(AgentError::Stopping))?;
    let ledger = agent.ledger().await?;
    let run = ledger.of_question(whose, id).await?.ok_or_else(unknown)?;
    let record = ledger.record(&run.run).await?;
    // While it is replayed, the store may have to go to another process.
    drop(ledger);
    let workspace = WorkspaceKey::parse(&run.workspace);
    let place = (workspace.name(), &*run.caller.flow);
    run_again(agent, cx, record, (place, room)).await
}

fn told(first: usize, parts: Vec<String>) -> AgentRunsResponse {
    AgentRunsResponse {
        first: i64::try_from(first).unwrap_or(i64::MAX),
        parts,
        more: true,
        ..AgentRunsResponse::default()
    }
}
