//! What is kept in one transaction of what a step saw.

use tg_storage::StorageError;
use tg_storage::rusqlite::Transaction;

use super::{calls, steps, told, usage};
use crate::engine::decision::Observation;
use crate::store::{Counted, RunKey, Told};

/// What a step saw, with what goes with it.
pub(super) struct Observed {
    run: RunKey,
    step: u32,
    text: String,
    told: Told,
    counted: Vec<Counted>,
}

impl Observed {
    pub(super) fn new(
        run: &RunKey,
        step: u32,
        observation: &Observation,
        told: Told,
        counted: &[Counted],
    ) -> Result<Self, StorageError> {
        Ok(Self {
            run: run.clone(),
            step,
            text: steps::write_json(observation)?,
            told,
            counted: counted.to_vec(),
        })
    }

    /// How much is written.
    pub(super) fn bytes(&self) -> usize {
        self.text.len().saturating_add(told::bytes(&self.told))
    }

    /// The workspace, and how many bytes of what its runs streamed are kept.
    pub(super) fn keeps(&self) -> (String, u64) {
        (self.told.workspace.clone(), self.told.keep)
    }

    /// Keeps it; whether the workspace has streamed more than is kept. `None`: the workspace has ended.
    pub(super) fn keep(
        &self,
        tx: &Transaction<'_>,
        now_ms: i64,
    ) -> Result<Option<bool>, StorageError> {
        let RunKey { run, is_over } = &self.run;
        steps::observe(tx, run, self.step, &self.text)?;
        calls::forget(tx, run, self.step)?;
        if is_over.holds() {
            return Ok(None);
        }
        usage::settle_all(tx, &self.counted, now_ms)?;
        told::keep(tx, run, &self.told, now_ms).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::super::SqliteLedger;
    use super::*;
    use crate::engine::decision::{Decision, Taken};
    use crate::engine::usage::{Amount, Scope};
    use crate::store::{Account, Call, CallKind, Decided, IsOver, LedgerStore, Reservation};

    /// Each is done when it is first polled: it has not waited for another thread.
    #[test]
    fn what_is_reserved_is_committed_on_the_asking_thread() {
        let ledger = SqliteLedger::in_memory().unwrap();
        let key = RunKey {
            run: "r".into(),
            is_over: IsOver::when(|| false),
        };
        let next = Reservation {
            account: Account::default(),
            amount: Amount::default(),
            like: (Scope::Model, String::new()),
            bounds: Vec::new(),
            expires_ms: 1000,
            day: "2026-11-27".into(),
            waits: false,
            ahead: false,
        };
        let of_step = |step: u32| Call {
            run: "r".into(),
            step,
            kind: CallKind::Model,
            nth: 0,
        };
        let first = ledger.reserve(&of_step(1), &next, 1).now_or_never();
        assert_eq!(first.unwrap().unwrap(), None);
        let decision = Decision::of(Taken::Answer { text: "x".into() });
        let tool = (of_step(2), next.clone());
        let decided = ledger.decide_and_reserve(&key, 1, &decision, &[], &tool, 1);
        let decided = decided.now_or_never().unwrap();
        assert_eq!(decided.unwrap(), Decided::Fits);
        let (seen, model) = (Observation::default(), (of_step(3), next));
        let none: [Counted; 0] = [];
        let with = (&none[..], &model);
        let observed = ledger.observe_and_reserve(&key, 1, &seen, Told::default(), with, 1);
        assert!(observed.now_or_never().unwrap().unwrap());
    }
}
