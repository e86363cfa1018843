//! Work of a step that runs of their own do: each has steps in the ledger under its own id, and they go on side by side within
//! the parent's step. What each found is in the ledger before it counts; whoever takes the parent's step up goes on with those
//! that are not done, each where it was left.
//!
//! What subagents say is noted in the order in which it is passed on: a step that is taken up says the same again.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tg_clients::traces::Text;
use tg_mesh::{Cx, Deadline, Mesh, TaskKind, clock};
use tg_schemas::Error;
use tg_schemas::msg::{AgentResponse, AgentRun, LoopRecord};
use tokio::sync::{mpsc, oneshot};

use super::agent::Agent;
use super::execution::{StepExecution, is_over, there};
use super::ids::new_run;
use super::program;
use super::titles;
use super::went::{Relay, Went};
use crate::engine::bounds::{MAX_OBSERVATION, shorten};
use crate::engine::chunks;
use crate::engine::citing;
use crate::engine::decision::{Decision, Finding, Observation, Usage};
use crate::engine::delegating::{Definition, as_defined, session};
use crate::engine::exchange::Entry;
use crate::engine::router::Route;
use crate::engine::splitting;
use crate::engine::trace::Left;
use crate::error::{AgentError, Stop};
use crate::store::{Asked, Began, Piece, PieceKind, Told};

/// Groups of parts of subagents that wait to be passed on.
pub(super) const WAITING: usize = 64;
/// Of the time that is left, this part is for subagents; the rest is for the answer from what they found.
const SHARE: (u32, u32) = (3, 4);
/// How long subagents may take to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// What came of a subagent, by its number.
type Done = (u32, Result<Finding, Stop>);
type Going = FuturesUnordered<BoxFuture<'static, Done>>;

/// What a subagent is to do.
#[derive(Debug, Clone)]
pub(super) struct Task {
    /// Names it among those of its parent.
    pub(super) number: u32,
    /// Its message.
    pub(super) goal: String,
    /// The agent that it is, how many hops from its parent, and what called it.
    pub(super) agent: Option<(String, Definition, i64)>,
    /// How long it may take.
    pub(super) timeout: Option<Duration>,
    /// It waits for a slot of its workspace.
    pub(super) slot: bool,
    /// Session in which it is done; empty: that of its parent.
    pub(super) session: String,
    /// The last calls that were made in it.
    pub(super) window: Vec<LoopRecord>,
}

/// What is to be done by subagents, by what was found so far: a function of that alone, so that whoever takes the step up has
/// the same done.
pub(super) trait Work: Send {
    /// Numbers that its subagents have.
    fn numbers(&self) -> Range<u32>;
    /// The next one to begin, if one can be now.
    fn next(&mut self) -> Option<Task>;
    /// Takes in what one found, and says how far it is.
    fn found(&mut self, finding: &Finding) -> Option<String>;
    /// Those that are under way are not waited for.
    fn is_over(&self) -> bool {
        false
    }
}

impl StepExecution {
    /// Has subagents do what is to be done, and waits for what they find.
    pub(super) async fn fan_out(
        &mut self,
        decision: &Decision,
        work: &mut dyn Work,
    ) -> Result<Observation, Stop> {
        if let Some(playback) = self.playback.clone() {
            return self.fan_out_again(decision, work, &playback).await;
        }
        let mut seen = Observation {
            state: self.run.state.clone(),
            ..Observation::default()
        };
        let numbers = work.numbers();
        for finding in self.ledger().await?.findings(&self.run.run).await? {
            if numbers.contains(&finding.subagent) {
                self.take_in(decision, &mut seen, finding, work).await?;
            }
        }
        let stop = self.cx.cancel.child_token();
        let mut cx = self.cx.clone();
        cx.cancel = stop.clone();
        let share = self.cx.deadline.left() * SHARE.0 / SHARE.1;
        cx.deadline = cx.deadline.min(Deadline::after(share));
        let (relay, mut parts) = mpsc::channel(WAITING);
        let mut going = Going::new();
        let mut all = Under {
            cx,
            parent: self.run.clone(),
            caller: self.phase.gives_work(&self.run, self.step),
            relay,
        };
        let result = loop {
            if work.is_over() {
                break Ok(());
            }
            while let Some(task) = work.next() {
                going.push(follow(self.agent.clone(), all.clone(), task));
            }
            match self.wait(&mut seen, &mut going, &mut parts).await {
                Ok(Some(finding)) => {
                    if let Err(stop) = self.take_in(decision, &mut seen, finding, work).await {
                        break Err(stop);
                    }
                }
                Ok(None) => break Ok(()),
                Err(stop) => break Err(stop),
            }
        };
        // A fault of ours ends no run: the step is taken up again, and each goes on from its own rows.
        if !matches!(result, Err(Stop::Error(_))) && !going.is_empty() {
            stop.cancel();
            all.relay = mpsc::channel(1).0;
            let ended = async { while going.next().await.is_some() {} };
            let heard = async { while parts.recv().await.is_some() {} };
            // None of them is waited for any more.
            let _ = tokio::time::timeout(STOP_TIMEOUT, futures::future::join(ended, heard)).await;
        }
        if matches!(result, Err(Stop::End(_))) {
            // What was found is in the trace, also of a run that ends here.
            let ledger = self.ledger().await?;
            let key = self.key();
            let told = Told::default();
            let kept = ledger.observe(&key, self.step, &seen, told, &[], clock::millis());
            kept.await?;
            self.seen = Some(seen.clone());
        }
        result?;
        Ok(seen)
    }

    /// Passes on what subagents say until one is done, and commits what it found. `None`: all are.
    async fn wait(
        &mut self,
        seen: &mut Observation,
        going: &mut Going,
        parts: &mut mpsc::Receiver<Vec<AgentResponse>>,
    ) -> Result<Option<Finding>, Stop> {
        let (deadline, cancel) = (self.cx.deadline, self.cx.cancel.clone());
        let done = loop {
            tokio::select! {
                biased;
                Some(said) = parts.recv() => self.pass_on(said).await?,
                done = going.next() => break done,
                () = cancel.cancelled() => {
                    return Err(self.ending(&AgentError::Cancelled.into()));
                }
                () = deadline.reached() => return Err(self.ending(&AgentError::Timeout.into())),
            }
        };
        let Some((number, result)) = done else {
            return Ok(None);
        };
        while let Ok(said) = parts.try_recv() {
            self.pass_on(said).await?;
        }
        let mut finding = result?;
        if self.cx.cancel.is_cancelled() {
            return Err(self.ending(&AgentError::Cancelled.into()));
        }
        finding.subagent = number;
        self.renumber(seen, &mut finding);
        let ledger = self.ledger().await?;
        let key = self.key();
        let entered = ledger.found(&key, &finding, clock::millis());
        there(entered.await?.is_some())?;
        Ok(Some(finding))
    }

    /// Numbers in what a subagent found become those of the run.
    pub(super) fn renumber(&self, seen: &Observation, finding: &mut Finding) {
        let known = self.run.citations.iter().chain(&seen.citations);
        let known: Vec<_> = known.cloned().collect();
        (finding.text, finding.citations) =
            citing::of_run(&finding.text, &finding.citations, &known);
        finding.text = shorten(&finding.text, MAX_OBSERVATION);
    }

    /// Takes in what the ledger holds of a subagent: its text goes to the library, its entity to the asker.
    pub(super) async fn take_in(
        &mut self,
        decision: &Decision,
        seen: &mut Observation,
        finding: Finding,
        work: &mut dyn Work,
    ) -> Result<(), Stop> {
        let before = usize::try_from(self.run.findings).unwrap_or(0);
        let text = Text {
            id: self.id.finding_document(before + seen.findings.len()),
            title: titles::finding(&finding.goal),
            text: &finding.text,
        };
        self.traces.save(&text).await;
        seen.usage.add(&Usage {
            // The run's model is the one that splits and answers; time passes once for all.
            model: String::new(),
            duration_ms: 0,
            ..finding.usage.clone()
        });
        seen.citations.extend(finding.citations.iter().cloned());
        let progress = work.found(&finding);
        seen.findings.push(finding);
        let left = Left {
            decision: Some(decision),
            seen: Some(seen),
            ..Left::default()
        };
        let entry = self.promised(&left).last().map(chunks::explain);
        let progress = progress.map(|text| self.progress(seen.findings.len(), &text));
        self.pass_on(entry.into_iter().chain(progress).collect())
            .await
    }

    /// A report of progress for the caller.
    pub(super) fn progress(&self, done: usize, text: &str) -> AgentResponse {
        let message = format!("{}/progress/{done}", self.phase.caller(&self.id, self.step));
        chunks::thought(message, text, true)
    }

    /// Sends the parts again that were passed on before another process took the step up.
    pub(super) async fn retell(&mut self) -> Result<(), Stop> {
        let said = self.ledger().await?.said(&self.run.run, self.step).await?;
        let parts = said.iter().filter(|piece| piece.kind == PieceKind::Part);
        let parts: Vec<_> = parts.map(|piece| chunks::part(&piece.text)).collect();
        self.told = parts.iter().map(named).collect();
        self.send_all(parts).await
    }

    /// Passes parts on that were not passed on before, once they are noted.
    pub(super) async fn pass_on(&mut self, mut parts: Vec<AgentResponse>) -> Result<(), Stop> {
        parts.retain(|part| self.told.insert(named(part)));
        if self.playback.is_some() {
            self.held.append(&mut parts);
            return Ok(());
        }
        if parts.is_empty() || (self.detach && !self.is_heard()) {
            return Ok(());
        }
        if self.out.is_some() {
            let seq = self.telling.at;
            let pieces: Result<Vec<Piece>, _> = parts
                .iter()
                .map(|part| {
                    serde_json::to_string(part).map(|text| Piece {
                        kind: PieceKind::Part,
                        text,
                    })
                })
                .collect();
            let pieces = pieces.map_err(AgentError::from)?;
            self.note(&Entry::Passed(parts.iter().map(named).collect()))?;
            self.keep_notes().await?;
            let ledger = self.ledger().await?;
            let key = self.key();
            let kept = ledger.say(&key, self.step, seq, pieces, clock::millis());
            there(kept.await?)?;
        }
        self.send_all(parts).await
    }
}

/// What all subagents of a step have in common.
#[derive(Clone)]
struct Under {
    /// With the time that they have.
    cx: Cx,
    parent: Arc<AgentRun>,
    caller: String,
    relay: Relay,
}

/// What a part is, among those of subagents: none says a thing of the same name twice.
pub(super) fn named(part: &AgentResponse) -> (String, String) {
    let id = part.explain_id.as_ref().unwrap_or(&part.message_id);
    (part.message_type.clone(), id.clone())
}

/// Does work in a task of the runtime: within its parent's, a chain of subagents would be as deep on the stack as work is given on.
/// It ends with who waits for it.
pub(super) fn apart<T: Send + 'static>(
    mesh: &Mesh,
    work: BoxFuture<'static, T>,
) -> oneshot::Receiver<T> {
    let (mut done, result) = oneshot::channel();
    mesh.spawn(TaskKind::Handler, async move {
        tokio::select! {
            biased;
            () = done.closed() => {}
            result = work => {
                let _ = done.send(result);
            }
        }
    });
    result
}

/// Has a subagent do its task.
fn follow(agent: Arc<Agent>, under: Under, task: Task) -> BoxFuture<'static, Done> {
    let number = task.number;
    let mesh = under.cx.mesh.clone();
    // Boxed: it takes steps as its parent does.
    let work: BoxFuture<'static, _> = Box::pin(async move { work(&agent, under, task).await });
    let result = apart(&mesh, work);
    Box::pin(async move {
        let lost = |_| Err(Stop::Error(AgentError::Stopping.into()));
        (number, result.await.unwrap_or_else(lost))
    })
}

async fn work(agent: &Arc<Agent>, under: Under, task: Task) -> Result<Finding, Stop> {
    let Under {
        mut cx,
        parent,
        caller,
        relay,
    } = under;
    let (run, mut began_ms, new) = begin(agent, &cx, &parent, &task, caller).await?;
    let nothing = |error: &AgentError| Finding {
        goal: task.goal.clone(),
        run: run.run.clone(),
        error: Some(error.to_string()),
        ..Finding::default()
    };
    let mut slot = None;
    if task.slot {
        let most = agent.options.dispatch_tasks;
        slot = tokio::select! {
            slot = agent.slots.take(cx.workspace(), most) => slot,
            () = cx.cancel.cancelled() => return Ok(nothing(&AgentError::Cancelled)),
            () = cx.deadline.reached() => return Ok(nothing(&AgentError::Timeout)),
        };
        if new {
            began_ms = clock::millis();
        }
    }
    let gone = Duration::from_millis(u64::try_from(clock::millis() - began_ms).unwrap_or(0));
    let end = task
        .timeout
        .map(|most| Deadline::after(most.saturating_sub(gone)));
    if let Some(end) = end {
        cx.deadline = cx.deadline.min(end);
    }
    let late = nothing(&AgentError::Timeout);
    let walked = async {
        match &task.agent {
            Some((id, one, _)) if one.program => by_program(agent, &cx, (run, new), id).await,
            _ => walk(agent, &cx, run, &relay).await,
        }
    };
    let mut finding = match end {
        None => walked.await?,
        Some(end) => match tokio::time::timeout(end.left() + STOP_TIMEOUT, walked).await {
            Ok(finding) => finding?,
            Err(_) => late,
        },
    };
    if let (Some(most), Some(true), true) = (
        task.timeout,
        end.map(|end| end.passed()),
        finding.error.is_some(),
    ) {
        finding.late = true;
        finding.error = Some(format!("timeout after {}s", most.as_secs()));
    }
    drop(slot);
    finding.took_ms = u64::try_from(clock::millis() - began_ms).unwrap_or(0);
    Ok(finding)
}

/// Has a program do a task. One that was begun before may have done some of it: it is not asked again.
async fn by_program(
    agent: &Arc<Agent>,
    cx: &Cx,
    (run, new): (AgentRun, bool),
    id: &str,
) -> Result<Finding, Stop> {
    let (goal, name) = (run.question.clone(), run.run.clone());
    let answer = match new {
        false => Err("interrupted by restart".to_owned()),
        true => {
            let given = program::Given {
                session: &name,
                agent: id,
                lasts: false,
                message: &goal,
                run,
            };
            program::ask(agent, cx, &given).await?
        }
    };
    let finding = Finding {
        run: name,
        goal: goal.clone(),
        ..Finding::default()
    };
    Ok(match answer {
        Ok(reply) => Finding {
            text: reply.text,
            usage: reply.usage,
            ..finding
        },
        Err(error) => Finding {
            error: Some(error),
            ..finding
        },
    })
}

/// Takes a run to its end.
pub(super) async fn walk(
    agent: &Arc<Agent>,
    cx: &Cx,
    mut run: AgentRun,
    relay: &Relay,
) -> Result<Finding, Stop> {
    loop {
        match step(agent, cx, &run, relay).await? {
            Went::On(next) => run = *next,
            Went::Over(finding) => return Ok(*finding),
        }
    }
}

/// The run of a subagent, which is the same whoever asks for it, when it began, and whether it did so now.
async fn begin(
    agent: &Agent,
    cx: &Cx,
    parent: &AgentRun,
    task: &Task,
    caller: String,
) -> Result<(AgentRun, i64, bool), Stop> {
    let asked = Asked {
        workspace: cx.workspace_key().to_string(),
        is_over: is_over(cx),
        key: format!("subagent/{}/{}", parent.run, task.number),
        text: task.goal.clone(),
        asker: None,
    };
    let new = Began {
        run: new_run(),
        started_at: clock::rfc3339(),
        route: Some(Route::default()),
    };
    let own = new.run.clone();
    let ledger = agent.ledger().await.map_err(Stop::Error)?;
    let began = ledger.begin(asked, new, clock::millis()).await?;
    let began = began.ok_or(AgentError::NoWorkspace)?;
    let Began {
        run, started_at, ..
    } = began;
    let began_ms = DateTime::parse_from_rfc3339(&started_at);
    let began_ms = began_ms.map_or_else(|_| clock::millis(), |at| at.timestamp_millis());
    let run = subagent(parent, task, (run, started_at), caller);
    let new = run.run == own;
    Ok((run, began_ms, new))
}

/// The run of a subagent before its first step, with its id and when it began.
pub(super) fn subagent(
    parent: &AgentRun,
    task: &Task,
    (run, started_at): (String, String),
    caller: String,
) -> AgentRun {
    let run = splitting::subagent(parent, &task.goal, run, started_at);
    let run = AgentRun {
        session: match task.session.as_str() {
            "" => session::of(parent).to_owned(),
            own => own.to_owned(),
        },
        tree: session::tree(parent).to_owned(),
        loop_window: task.window.clone(),
        ..run
    };
    match &task.agent {
        None => run,
        Some((id, one, hops)) => as_defined(run, id, one, *hops, caller),
    }
}

/// One step of a subagent; one that is done is not taken again.
async fn step(agent: &Arc<Agent>, cx: &Cx, run: &AgentRun, relay: &Relay) -> Result<Went, Stop> {
    let number = u32::try_from(run.step).map_err(|_| AgentError::MalformedStep)?;
    let ledger = agent.ledger().await.map_err(Stop::Error)?;
    let row = ledger.load(run.run.clone(), number).await?;
    drop(ledger);
    let run = Arc::new(run.clone());
    let mut walk = StepExecution::new(agent.clone(), cx.clone(), run, number, None, false);
    walk.relay = Some(relay.clone());
    if row.done
        && let Some(went) = walk.again(&row)
    {
        return Ok(went);
    }
    walk.settle(row).await?;
    let nothing = || Stop::Error(Error::from(AgentError::EndNotHandled));
    walk.went.ok_or_else(nothing)
}
