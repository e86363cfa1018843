//! A step is taken: by the process that wrote its record, at once, else by who reads it. Is it past, is it under
//! way, can it be taken up where it was left?
//!
//! The record is what a step is recovered from. Who writes it knows that nobody has begun the step, so it begins
//! while the record is on its way, and keeps and says nothing before it is durable; the record, when it comes, waits
//! for that and finds the step done. The ledger is the same for both.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tg_mesh::tg_bus::pause::doubled;
use tg_mesh::{AskerState, ConsumeError, Cx, Deadline, ReplyAddress, Responder, TaskKind};
use tg_provenance::Reason;
use tg_schemas::msg::{AgentResponse, AgentRun};
use tg_schemas::{Error, Headers};
use tokio::sync::oneshot;

use super::agent::Agent;
use super::execution::StepExecution;
use super::leases::StepLease;
use super::recorded::Recorded;
use super::telling::Telling;
use crate::engine::decision::Ending;
use crate::engine::patterns;
use crate::engine::trace::Entries;
use crate::error::AgentError;
use crate::store::{Ledger, Piece, StepRow};

/// How long a step waits for its answer while another step of this process still has it.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Between two looks at whether an answer is free: doubling up to the second.
const LOOKS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(500));
/// Longest wait for an asker whose holder died to ask again (an asker is patient for 12 s at most).
const ASKER_TIMEOUT: Duration = Duration::from_secs(20);
/// The same for a run that goes on anyhow.
const DETACHED_TIMEOUT: Duration = Duration::from_secs(3);

/// Begins a step whose record is being written here, under the claim that the record will ask for. Whoever writes it
/// says to what is returned whether it is durable. Where there is no room, or another delivery has the step, the record
/// is left to do it.
pub(crate) fn begin_at_once(
    agent: &Arc<Agent>,
    cx: &Cx,
    run: &Arc<AgentRun>,
    address: ReplyAddress,
) -> Option<oneshot::Sender<bool>> {
    let step = u32::try_from(run.step).ok()?;
    // What follows a message through its handler, follows the record.
    if cx.follow().is_some() || cx.mesh.stopping().is_cancelled() {
        return None;
    }
    let room = agent.leases.room()?;
    let claim = agent.leases.take(&run.run, step)?;
    let (written, recorded) = oneshot::channel();
    let recorded = Recorded::Written(recorded);
    let mut own = cx.clone();
    own.headers = Arc::new(Headers {
        generation: cx.headers.generation,
        collection: cx.headers.collection.clone(),
        collection_generation: cx.headers.collection_generation,
        depth: u32::try_from(run.depth).ok(),
        thread: cx.headers.thread.clone(),
        user_id: cx.headers.user_id.clone(),
        credential: cx.headers.credential.clone(),
        user_context: cx.headers.user_context.clone(),
        roles: cx.headers.roles.clone(),
        traceparent: cx.headers.traceparent.clone(),
        request_id: cx.headers.request_id.clone(),
        ..Headers::default()
    });
    // Boxed: a step begins the next one.
    let work = take(agent.clone(), own, run.clone(), address, (claim, recorded));
    let work: BoxFuture<'static, _> = work.boxed();
    cx.mesh.spawn(TaskKind::Handler, async move {
        if let Err(ConsumeError::Retry { error, .. } | ConsumeError::Dead(error)) = work.await {
            tracing::debug!(%error, "a step waits for its record");
        }
        drop(room);
    });
    Some(written)
}

/// Takes a step from where it is, under its claim.
///
/// # Errors
/// Its record is tried again: something of ours failed, or another step has the answer.
pub(crate) async fn take(
    agent: Arc<Agent>,
    cx: Cx,
    run: Arc<AgentRun>,
    mut address: ReplyAddress,
    (claim, recorded): (StepLease, Recorded),
) -> Result<(), ConsumeError> {
    let step = claim.step();
    let cx = deepened(cx, &run);
    let ledger = agent.ledger().await?;
    let fresh = agent.leases.is_fresh(&run.run, step);
    let mut row = if fresh {
        StepRow::default()
    } else {
        let known = ledger.load(run.run.clone(), step).await;
        known.map_err(Error::from)?
    };
    if row.done {
        return Ok(());
    }
    if row.later {
        let walk = StepExecution::new(agent, cx, run, step, None, true);
        return Ok(walk.catch_up(&row).await?);
    }
    let (mut heard, mut lacked) = (Vec::new(), None);
    if let Some(seq) = row.ending.as_ref().and_then(|ending| ending.seq) {
        address.seq = seq;
    } else if address.detach && !fresh && row.decision.is_none() && row.ending.is_none() {
        (heard, lacked) = heard_before(&ledger, &cx, &run, step, &mut address).await?;
    } else if !fresh && row.decision.is_none() && row.ending.is_none() {
        row.ending = broken_off(&agent, &cx, &run, step, &mut address).await;
    }
    let (deadline, detach) = (Deadline::from_millis(address.deadline), address.detach);
    let id = address.id.clone();
    let telling = Telling::from(address.seq, lacked);
    let out = match resume_soon(&cx, address, &ledger, (&run.run, step)).await? {
        Resumed::Here(out, None) => out,
        Resumed::Here(out, Some(now)) => {
            row = StepRow {
                ending: row.ending,
                ..now
            };
            out
        }
        Resumed::Past(row) if row.done => return Ok(()),
        Resumed::Past(row) => {
            let walk = StepExecution::new(agent, cx, run, step, None, true);
            return Ok(walk.catch_up(&row).await?);
        }
        Resumed::Busy => return Err(AgentError::AnswerHeld.into()),
    };
    // Who cancels it notes that first, and then looks for the answer, which is here by now.
    let asker = match detach || !fresh {
        true => ledger.asker(&run.run).await.map_err(Error::from)?,
        false => None,
    };
    if asker.as_ref().is_some_and(|asker| asker.cancelled) {
        cx.mesh.server().cancel_detached(&id);
    }
    let mut own = cx;
    own.id = id.into();
    own.deadline = deadline;
    own.cancel = out.cancelled();
    // While the model thinks, the store may have to go to another process.
    drop(ledger);
    let mut walk =
        StepExecution::new(agent, own, run, step, Some(out), detach).begun_with(recorded);
    walk.heard = heard;
    let walk = walk.remembered(telling, asker.filter(|_| detach));
    let result = walk.take(row).await;
    if result.is_ok() {
        claim.done();
    }
    Ok(result?)
}

/// A record does not say how deep its chain of questions is; the run does, so that one that asks for itself ends.
fn deepened(mut cx: Cx, run: &AgentRun) -> Cx {
    if cx.headers.depth == u32::try_from(run.depth).ok() {
        return cx;
    }
    let mut headers = Headers::clone(&cx.headers);
    headers.depth = u32::try_from(run.depth).ok();
    cx.headers = Arc::new(headers);
    cx
}

/// Whether a step can go on with its answer.
enum Resumed {
    /// And what the step has by now, where it had to wait.
    Here(Responder<AgentResponse>, Option<StepRow>),
    /// A later step has it for good: what this one lacks is its trace.
    Past(StepRow),
    Busy,
}

/// Goes on with the answer as soon as no other step of this process holds it. After a crash two steps of a run
/// may come again at the same time; the later one does not end before the earlier.
async fn resume_soon(
    cx: &Cx,
    address: ReplyAddress,
    ledger: &Ledger,
    (run, step): (&str, u32),
) -> Result<Resumed, Error> {
    let end = tokio::time::Instant::now() + TIMEOUT;
    let mut pause = LOOKS.0;
    let mut waited = false;
    loop {
        if let Some(out) = cx.mesh.resume::<AgentResponse>(address.clone()) {
            if !waited {
                return Ok(Resumed::Here(out, None));
            }
            let row = ledger.load(run.to_owned(), step).await?;
            if row.done || row.later {
                let _ = out.release();
                return Ok(Resumed::Past(row));
            }
            return Ok(Resumed::Here(out, Some(row)));
        }
        let row = ledger.load(run.to_owned(), step).await?;
        if row.done || row.later {
            return Ok(Resumed::Past(row));
        }
        waited = true;
        if tokio::time::Instant::now() >= end {
            return Ok(Resumed::Busy);
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => pause = doubled(pause, LOOKS.1),
            () = cx.mesh.stopping().cancelled() => return Ok(Resumed::Busy),
        }
    }
}

/// A step that was begun and has no rows: if the asker got some of what the model said, it must not hear
/// another text, and the run ends.
async fn broken_off(
    agent: &Agent,
    cx: &Cx,
    run: &AgentRun,
    step: u32,
    address: &mut ReplyAddress,
) -> Option<Ending> {
    if !run.streaming {
        return None;
    }
    // What an answer begins with is not of the model.
    let opening = patterns::next(run).concludes();
    let certain = certain(address, run, step) + u64::from(opening);
    let lacks = if address.plain {
        None
    } else {
        lacks(agent, cx, address).await
    };
    if lacks.is_some_and(|seq| seq <= certain) {
        return None;
    }
    let error = AgentError::BrokenOff.into();
    let seq = lacks.unwrap_or(address.seq);
    address.seq = seq;
    Some(Ending {
        seq: Some(seq),
        ..Ending::new(Reason::Interrupted, &error)
    })
}

/// What a detached run said in a step that was begun and has no rows, and from where to where it is known: it goes on after
/// it, whoever heard it.
async fn heard_before(
    ledger: &Ledger,
    cx: &Cx,
    run: &AgentRun,
    step: u32,
    address: &mut ReplyAddress,
) -> Result<(Vec<Piece>, Option<(u64, u64)>), Error> {
    if !run.streaming {
        return Ok((Vec::new(), None));
    }
    let standing = cx.mesh.standing(address, DETACHED_TIMEOUT).await;
    let pieces = ledger.said(&run.run, step).await?;
    if pieces.is_empty() {
        return Ok((pieces, None));
    }
    let (begins, end) = (
        address.seq,
        certain(address, run, step) + pieces.len() as u64,
    );
    address.seq = match standing {
        Some(AskerState::Lacks(seq)) => seq.clamp(begins, end),
        Some(AskerState::Gone) | None => end,
    };
    Ok((pieces, Some((begins, address.seq))))
}

/// The first part of a step that depends on the model: the first step opens with the session's entry and that of the
/// router's choice, which are always the same.
fn certain(address: &ReplyAddress, run: &AgentRun, step: u32) -> u64 {
    match step {
        1 => address.seq + Entries::opening(run),
        _ => address.seq,
    }
}

/// From which part on the asker lacks the answer: as it says when asked, or when it asks again itself.
/// `None` if nobody waits any more.
async fn lacks(agent: &Agent, cx: &Cx, address: &ReplyAddress) -> Option<u64> {
    tokio::select! {
        biased;
        seq = agent.leases.position(&address.id, ASKER_TIMEOUT) => seq,
        standing = cx.mesh.standing(address, ASKER_TIMEOUT) => match standing {
            Some(AskerState::Lacks(seq)) => Some(seq),
            Some(AskerState::Gone) | None => None,
        },
    }
}
