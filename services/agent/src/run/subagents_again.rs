//! Steps of a run that is replayed, and its subagents: one after the other, each from its own part of the record, and then told in
//! the order in which they were passed on when they went side by side.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use tg_clients::traces::TraceWriter;
use tg_mesh::Cx;
use tg_schemas::msg::{AgentResponse, AgentRun};
use tokio::sync::mpsc;

use super::agent::Agent;
use super::execution::StepExecution;
use super::fan_in::{Task, WAITING, Work, apart, named, subagent};
use super::playback::{Playback, ReplayError};
use super::went::{Relay, Went};
use crate::engine::decision::{Decision, Finding, Observation};
use crate::error::{AgentError, Stop};

/// What a replayed run goes by.
#[derive(Clone)]
pub(super) struct Again {
    /// Without a ledger that lasts.
    pub(super) agent: Arc<Agent>,
    pub(super) cx: Cx,
    pub(super) playback: Arc<Playback>,
}

/// What came of a replayed step.
pub(super) enum Came {
    /// There is another.
    On(Box<AgentRun>),
    /// The run is over; what a subagent found.
    Over(Option<Box<Finding>>),
    /// The record says nothing of what comes next.
    NoFurther(Stop),
}

impl Again {
    /// Takes a step, as often as it was taken.
    pub(super) async fn step(&self, run: &AgentRun, relay: Option<&Relay>) -> Result<Came, Stop> {
        let number = u32::try_from(run.step).map_err(|_| AgentError::MalformedStep)?;
        let detach = relay.is_none() && self.playback.began().detach;
        let mut taken_up = false;
        loop {
            let ledger = self.agent.ledger().await.map_err(Stop::Error)?;
            let row = ledger.load(run.run.clone(), number).await?;
            let (agent, cx) = (self.agent.clone(), self.cx.clone());
            let own = Arc::new(run.clone());
            let walk = StepExecution::new(agent, cx, own, number, None, detach);
            let mut walk = walk.with(&self.playback);
            walk.relay = relay.cloned();
            if relay.is_none() {
                match taken_up {
                    false => self.playback.begin_step(),
                    true => walk.take_up()?,
                }
            }
            let Err(stop) = walk.settle(row).await else {
                return Ok(match walk.went {
                    Some(Went::On(next)) => Came::On(next),
                    Some(Went::Over(finding)) => Came::Over(Some(finding)),
                    None => Came::Over(None),
                });
            };
            match self.playback.fault() {
                Some(ReplayError::Cut) => taken_up = true,
                Some(ReplayError::Ends) => return Ok(Came::NoFurther(stop)),
                None => return Err(stop),
            }
        }
    }

    /// Takes a subagent's run to its end; `None`: the record does not reach so far.
    async fn walk(self, mut run: AgentRun, relay: Relay) -> Result<Option<Finding>, Stop> {
        loop {
            match self.step(&run, Some(&relay)).await? {
                Came::On(next) => run = *next,
                Came::Over(found) => return Ok(found.map(|found| *found)),
                Came::NoFurther(_) => return Ok(None),
            }
        }
    }
}

/// Boxed: it takes steps as its parent does.
fn walked(
    again: Again,
    run: AgentRun,
    relay: Relay,
) -> BoxFuture<'static, Result<Option<Finding>, Stop>> {
    Box::pin(again.walk(run, relay))
}

impl StepExecution {
    /// The step is one of a run that is replayed.
    fn with(mut self, playback: &Arc<Playback>) -> Self {
        let library = playback.around((&self.run.run, self.step)).library;
        self.traces = TraceWriter::silent(&self.cx, library);
        self.playback = Some(playback.clone());
        self
    }

    /// Another process takes the step up: of a run that goes on without its asker it knows what the model said.
    fn take_up(&mut self) -> Result<(), Stop> {
        let Some(playback) = self.playback.clone() else {
            return Ok(());
        };
        playback.begin_again();
        if self.detach {
            self.heard = playback.said();
        }
        if self.heard.is_empty() {
            return Ok(());
        }
        playback.tell((&self.run.run, self.step), self.known())
    }

    /// As [`StepExecution::fan_out`] did.
    pub(super) async fn fan_out_again(
        &mut self,
        decision: &Decision,
        work: &mut dyn Work,
        playback: &Arc<Playback>,
    ) -> Result<Observation, Stop> {
        let mut seen = Observation {
            state: self.run.state.clone(),
            ..Observation::default()
        };
        let result = self.gather_again(decision, work, &mut seen, playback);
        let result = result.await;
        // Also where it ends, or the record does: what was passed on before was told.
        let whole = result.is_ok();
        let told = self.pass_on_again(playback, whole).await;
        let result = result.and(told);
        if matches!(result, Err(Stop::End(_))) {
            self.seen = Some(seen.clone());
        }
        result.map(|()| seen)
    }

    async fn gather_again(
        &mut self,
        decision: &Decision,
        work: &mut dyn Work,
        seen: &mut Observation,
        playback: &Arc<Playback>,
    ) -> Result<(), Stop> {
        let (run, numbers) = (self.run.run.clone(), work.numbers());
        let at = (&*run, self.step);
        let arrived = playback.findings(&run).iter();
        let mut arrived = arrived.filter(|found| numbers.contains(&found.subagent));
        let mut going = BTreeMap::new();
        while !work.is_over() {
            while let Some(task) = work.next() {
                let number = task.number;
                going.insert(number, self.walk_again(task, playback).await?);
            }
            let Some(found) = arrived.next() else {
                return match going.is_empty() {
                    true => Ok(()),
                    false => Err(playback.nothing(at)),
                };
            };
            let Some(own) = going.remove(&found.subagent) else {
                return Err(playback.differs(at, "a subagent has not begun that was recorded"));
            };
            if let Some(mut own) = own {
                self.renumber(seen, &mut own);
                let same = own.text == found.text && own.error == found.error;
                if !same && !found.late {
                    let what = format!("subagent {} has found something else", found.run);
                    return Err(playback.differs(at, &what));
                }
            }
            self.take_in(decision, seen, found.clone(), work).await?;
        }
        Ok(())
    }

    /// Has a subagent do its task again; `None`: it was not begun, or had not come to its end.
    async fn walk_again(
        &mut self,
        task: Task,
        playback: &Arc<Playback>,
    ) -> Result<Option<Finding>, Stop> {
        let known = playback.subagent(&self.run.run, task.number);
        let Some((run, started_at)) = known.cloned() else {
            return Ok(None);
        };
        if matches!(&task.agent, Some((_, one, _)) if one.program) {
            // Nobody asks a program twice: what it found stands in the record.
            return Ok(None);
        }
        let caller = self.phase.gives_work(&self.run, self.step);
        let run = subagent(&self.run, &task, (run, started_at), caller);
        let again = Again {
            agent: self.agent.clone(),
            cx: self.cx.clone(),
            playback: playback.clone(),
        };
        let (relay, mut parts) = mpsc::channel::<Vec<AgentResponse>>(WAITING);
        let found = apart(&self.cx.mesh, walked(again, run, relay));
        while let Some(said) = parts.recv().await {
            self.pass_on(said).await?;
        }
        found
            .await
            .unwrap_or_else(|_| Err(AgentError::Stopping.into()))
    }

    /// Tells what subagents said in the order in which it was passed on; a subagent's own are put in order by its parent.
    async fn pass_on_again(&mut self, playback: &Arc<Playback>, whole: bool) -> Result<(), Stop> {
        let held = std::mem::take(&mut self.held);
        if self.relay.is_some() {
            return self.send_all(held).await;
        }
        let run = self.run.run.clone();
        let at = (&*run, self.step);
        let mut held: BTreeMap<_, _> = held.into_iter().map(|part| (named(&part), part)).collect();
        let mut parts = Vec::new();
        for name in playback.passed(at) {
            match held.remove(&name) {
                Some(part) => parts.push(part),
                None if whole => {
                    let what = format!("a subagent did not tell '{} {}'", name.0, name.1);
                    return Err(playback.differs(at, &what));
                }
                None => break,
            }
        }
        self.send_all(parts).await
    }
}
