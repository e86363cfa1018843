//! What a step saw is committed together with what the next step is likely to ask of the model: a run with budgets commits as often
//! for a step as one without.

use tg_mesh::clock;
use tg_provenance::Event;
use tg_schemas::msg::AgentRun;

use super::execution::StepExecution;
use crate::engine::bounds::own_steps;
use crate::engine::decision::{Decision, Observation};
use crate::engine::usage::Scope;
use crate::error::Stop;
use crate::store::{Call, CallKind, Reservation, Told};

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
        let reservation = Reservation {
            waits: true,
            ..reservation
        };
        let call = self.numbered(self.step + 1, (CallKind::Model, 0));
        Some((Box::new(next), (call, reservation)))
    }

    /// Whether the step before this one reserved the first call of the model; once, as far as this process knows.
    pub(super) fn is_reserved(&self) -> bool {
        self.playback.is_none() && self.agent.leases.is_reserved(&self.run.run, self.step)
    }
}
