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

    /// The workspace, and bytes of what its runs told that are kept.
    pub(super) fn keeps(&self) -> (String, u64) {
        (self.told.workspace.clone(), self.told.keep)
    }

    /// Keeps it; whether the workspace has told more than is kept. `None`: the workspace has ended.
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
