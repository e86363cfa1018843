//! The last calls, by their hashes: all that the detectors know of a run.

use tg_schemas::msg::{AgentRun, LoopRecord};

use super::calls;
use crate::engine::bounds::{PARSE_ERROR, own_steps};

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Window {
    records: Vec<LoopRecord>,
}

impl Window {
    /// The last calls of some, so many at most.
    pub fn new(mut records: Vec<LoopRecord>, most: usize) -> Self {
        records.drain(..records.len().saturating_sub(most));
        Self { records }
    }

    /// What a run knows of its calls: what travels with it, else what its steps say.
    pub fn of(run: &AgentRun, most: usize) -> Self {
        if !run.loop_window.is_empty() {
            return Self::new(run.loop_window.clone(), most);
        }
        let steps = own_steps(run);
        let steps = &steps[steps.len().saturating_sub(most)..];
        let called = steps.iter().filter(|step| step.action != PARSE_ERROR);
        let records = called.map(|step| LoopRecord {
            t: step.action.clone(),
            a: calls::args_hash(&step.arguments),
            r: calls::result_hash(&step.observation),
        });
        Self {
            records: records.collect(),
        }
    }

    /// With a call that is about to be made.
    #[must_use]
    pub fn calling(mut self, tool: &str, arguments: &str, most: usize) -> Self {
        self.records.push(LoopRecord {
            t: tool.to_owned(),
            a: calls::args_hash(arguments),
            r: String::new(),
        });
        Self::new(self.records, most)
    }

    /// With what that call returned.
    #[must_use]
    pub fn returned(mut self, result_hash: &str) -> Self {
        if let Some(newest) = self.records.last_mut() {
            result_hash.clone_into(&mut newest.r);
        }
        self
    }

    /// With what the last calls returned, as many as there are hashes.
    #[must_use]
    pub fn all_returned(mut self, hashes: Vec<&str>) -> Self {
        let newest = self.records.iter_mut().rev();
        for (record, hash) in newest.zip(hashes.into_iter().rev()) {
            hash.clone_into(&mut record.r);
        }
        self
    }

    /// The result of the same call as the newest, when it was made last.
    pub fn known_result(&self) -> Option<&str> {
        let (newest, before) = self.records.split_last()?;
        let same = before.iter().rev().find(|record| same_call(record, newest));
        same.map(|record| record.r.as_str())
            .filter(|hash| !hash.is_empty())
    }

    /// The calls, oldest first.
    pub fn records(&self) -> &[LoopRecord] {
        &self.records
    }

    /// The same, as they travel.
    pub fn into_records(self) -> Vec<LoopRecord> {
        self.records
    }
}

/// Whether two records are of one call.
pub(super) fn same_call(one: &LoopRecord, other: &LoopRecord) -> bool {
    one.t == other.t && one.a == other.a
}
