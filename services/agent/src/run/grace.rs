//! How long a run goes on without anybody who listens to it.

use std::sync::Arc;
use std::time::Duration;

use tg_mesh::{Mesh, TaskKind, clock};
use tg_schemas::Error;

use super::agent::Agent;
use super::transcript::Transcript;
use crate::store::KnownRun;

/// A run that cannot be cancelled is cancelled again after this long.
const CANCEL_PAUSE: Duration = Duration::from_secs(2);

/// Who asked for a run listens no more.
pub(crate) async fn asker_left(
    agent: &Arc<Agent>,
    mesh: &Mesh,
    mut asker: KnownRun,
) -> Result<(), Error> {
    let transcript = agent.transcripts.of(&asker.run, &asker.workspace);
    if transcript.asker_left() {
        asker.left_ms = asker.left_ms.or_else(|| Some(clock::millis()));
        return nobody_listens(agent, mesh, asker).await;
    }
    agent.ledger().await?.left(&asker.run, None, true).await?;
    Ok(())
}

/// Nobody listens to a run: from now on, unless it is noted since when. It is cancelled when nobody has for its grace.
pub(crate) async fn nobody_listens(
    agent: &Arc<Agent>,
    mesh: &Mesh,
    asker: KnownRun,
) -> Result<(), Error> {
    let since = asker.left_ms.unwrap_or_else(clock::millis);
    let ledger = agent.ledger().await?;
    ledger.left(&asker.run, Some(since), true).await?;
    drop(ledger);
    let transcript = agent.transcripts.of(&asker.run, &asker.workspace);
    // One task for each run, however often it is left.
    if transcript.wait(since) {
        let (agent, own) = (agent.clone(), mesh.clone());
        mesh.spawn(TaskKind::Background, async move {
            watch(&agent, &own, &transcript, &asker).await;
            agent.transcripts.unused(&asker.run);
        });
    }
    Ok(())
}

/// Cancels a run when nobody has listened to it for its grace.
async fn watch(agent: &Agent, mesh: &Mesh, transcript: &Transcript, asker: &KnownRun) {
    let mut seen = None;
    loop {
        let news = transcript.news();
        let Some(since) = transcript.waits(seen) else {
            return;
        };
        let ends = since.saturating_add(asker.caller.grace_ms);
        let left =
            u64::try_from(ends - clock::millis()).map_or(Duration::ZERO, Duration::from_millis);
        if !left.is_zero() {
            tokio::select! {
                () = tokio::time::sleep(left) => {}
                () = news => {}
                () = mesh.stopping().cancelled() => return,
            }
            continue;
        }
        // Who has joined it just now has said so there, or here.
        let cancelled = async {
            let ledger = agent.ledger().await?;
            let cancelled = ledger.cancel_left(&asker.run, since, clock::millis());
            Ok::<_, Error>(cancelled.await?)
        };
        match cancelled.await {
            Ok(true) => mesh.server().cancel_detached(&asker.caller.question),
            Ok(false) => {}
            // Its grace is over all the same.
            Err(error) => {
                tracing::debug!(%error, "a run that nobody listens to goes on");
                tokio::time::sleep(CANCEL_PAUSE).await;
                continue;
            }
        }
        seen = Some(since);
    }
}
