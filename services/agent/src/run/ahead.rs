//! What a step saw is committed together with what the next step is likely to ask of the model: a run with budgets commits as often
//! for a step as one without.

use std::pin::pin;
use std::sync::Arc;

use tg_mesh::{Deadline, LeasedStore, clock};
use tg_provenance::Event;
use tg_schemas::Error;
use tg_schemas::msg::AgentRun;

use super::budget::{GRACE_MS, expires_ms};
use super::execution::StepExecution;
use super::leases::FRESH;
use crate::engine::bounds::own_steps;
use crate::engine::decision::{Decision, Observation};
use crate::engine::phase::Phase;
use crate::engine::toolset::ToolSet;
use crate::engine::usage::Scope;
use crate::error::Stop;
use crate::store::{Call, CallKind, Ledger, Reservation, Told};

/// The run after a step, where it was made before the step is handed on.
pub(super) type NextRun = Option<Box<AgentRun>>;

impl StepExecution {
    /// Commits what a tool returned and what the calls took, and reserves the first call of the model in the next step, if anything
    /// binds it. Returns the run after this step if it made it for that. `promised`: all entries of this step.
    pub(super) async fn commit_observation(
        &self,
        (decision, seen): (&Decision, &Observation),
        told: Told,
        promised: Option<&[Event]>,
    ) -> Result<NextRun, Stop> {
        let (took, now) = (self.tool_took(decision, seen), clock::millis());
        let ahead = self.ahead(decision, seen, promised, now);
        let ledger = self.ledger().await?;
        let key = self.key();
        let Some((next, reservation)) = ahead else {
            let kept = ledger.observe(&key, self.step, seen, told, &took, now);
            kept.await?;
            return Ok(None);
        };
        let counted_and_next = (&took[..], &reservation);
        let kept = ledger.observe_and_reserve(&key, self.step, seen, told, counted_and_next, now);
        // A call that does not fit is asked for again by its step, which waits or says why.
        if kept.await? {
            self.agent.leases.reserved(&self.run.run, self.step + 1);
        }
        Ok(Some(next))
    }

    /// The run after this step, and what its next step is likely to ask first. `None`: nothing binds it, or it asks nothing.
    fn ahead(
        &self,
        decision: &Decision,
        seen: &Observation,
        promised: Option<&[Event]>,
        now: i64,
    ) -> Option<(Box<AgentRun>, (Call, Reservation))> {
        let stops = seen.guard.as_ref().is_some_and(|guard| guard.stops());
        let goes_on = self.phase.is_react() && self.out.is_some() && !stops;
        // A subagent goes on within this step of its parent, and a replay reserves nothing.
        if !goes_on || self.relay.is_some() || self.playback.is_some() {
            return None;
        }
        if self.cx.cancel.is_cancelled() || !self.is_bound() {
            return None;
        }
        let chain = promised.map(|all| self.head_of(all));
        let next = self.next(decision, seen, chain);
        if own_steps(&next).len() >= self.most_steps() {
            return None;
        }
        let like = (Scope::Model, next.model.clone());
        let reservation = self.reservation(self.likely(&next), like, now)?;
        // The record of the next step may wait: then others are let in.
        let reservation = Reservation {
            waits: true,
            ahead: true,
            expires_ms: now + GRACE_MS,
            ..reservation
        };
        let call = self.numbered(self.step + 1, (CallKind::Model, 0));
        Some((Box::new(next), (call, reservation)))
    }

    /// Whether the step before this one has just reserved the first call of the model; once, as far as this process knows.
    pub(super) fn is_reserved(&self) -> bool {
        self.playback.is_none() && self.agent.leases.is_reserved(&self.run.run, self.step)
    }

    /// Asks the model as the phase does it.
    pub(super) async fn think_by_phase(&mut self, tools: &ToolSet) -> Result<Decision, Stop> {
        let renewing = self.asks.ahead.then(|| {
            let call = self.numbered(self.step, (CallKind::Model, 0));
            renew(self.agent.store.clone(), call, self.cx.deadline)
        });
        let mut thinking = pin!(async {
            match self.phase {
                Phase::React => self.think(tools).await,
                Phase::Plan => self.plan(tools).await,
                Phase::Execute(at) => self.choose_steps(at, tools).await,
                Phase::Conclude | Phase::Merge => self.put_together().await,
                Phase::Decompose => self.decompose(tools).await,
            }
        });
        if let Some(renewing) = renewing {
            tokio::select! {
                biased;
                thought = &mut thinking => return thought,
                () = renewing => {}
            }
        }
        thinking.await
    }

    /// The step does not make its first call of a kind. What an earlier commit reserved for it is free again.
    pub(super) async fn free(&self, kind: CallKind) -> Result<(), Stop> {
        if self.playback.is_some() || !self.is_bound() {
            return Ok(());
        }
        let ledger = self.ledger().await?;
        Ok(ledger.free(&self.numbered(self.step, (kind, 0))).await?)
    }
}

/// What the step before reserved would expire during a call that takes long. One that is soon over needs no commit of its own.
async fn renew(store: Arc<LeasedStore<Ledger>>, call: Call, deadline: Deadline) {
    tokio::time::sleep(FRESH).await;
    let expires = expires_ms(deadline, clock::millis());
    let renewed = async {
        let ledger = store.get().await?;
        ledger.renew(&call, expires).await.map_err(Error::from)
    };
    if let Err(error) = renewed.await {
        let run = call.run.as_str();
        tracing::debug!(run, %error, "the reservation of a call may expire before the call ends");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::guards::Budget;
    use crate::engine::usage::Amount;
    use crate::store::{Account, Bound};

    #[tokio::test(start_paused = true)]
    async fn a_call_that_takes_long_stays_reserved() {
        let ledger = Ledger::in_memory().unwrap();
        let now = clock::millis();
        let reserve = async |run: &str, now: i64, ahead: bool| {
            let next = Reservation {
                account: Account {
                    workspace: "ws".into(),
                    run: run.into(),
                    ..Account::default()
                },
                amount: Amount {
                    in_token: 600,
                    ..Amount::default()
                },
                like: (Scope::Model, "m".into()),
                bounds: vec![Bound {
                    scope: Scope::Workspace,
                    since: String::new(),
                    budget: Budget {
                        tokens: 1000,
                        ..Budget::default()
                    },
                    seconds: None,
                    whose: "a budget".into(),
                }],
                expires_ms: now + GRACE_MS,
                day: "2026-11-30".into(),
                waits: true,
                ahead,
            };
            let over = ledger.reserve(&call(run), &next, now).await.unwrap();
            over.is_none()
        };
        assert!(reserve("r", now, true).await);
        let deadline = u64::try_from(now + 600_000).unwrap();
        let store = LeasedStore::opened_with("agent-manager", ledger.clone());
        renew(store, call("r"), Deadline::from_millis(deadline)).await;
        let later = now + 2 * GRACE_MS;
        assert!(!reserve("other", later, false).await, "it lasts");
        assert!(reserve("other", now + 600_000 + GRACE_MS, false).await);
    }

    fn call(run: &str) -> Call {
        Call {
            run: run.into(),
            step: 2,
            kind: CallKind::Model,
            nth: 0,
        }
    }
}
