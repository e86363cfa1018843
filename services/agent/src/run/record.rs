//! A recorded run: the ledger keeps each input from outside before the run acts on it. So the run can be replayed up to its last
//! step, also after its process died.

use serde_json::Value;
use tg_mesh::clock;
use tg_schemas::msg::AgentRun;

use super::execution::StepExecution;
use crate::engine::exchange::{Beginning, Entry, Surroundings, rows_hash};
use crate::engine::splitting;
use crate::error::{AgentError, Stop};
use crate::store::{Added, Noted};

/// Bytes of one record at most. A longer record is deleted.
pub(crate) const LARGEST: u64 = 8 << 20;

impl StepExecution {
    /// Whether inputs are recorded.
    pub(super) fn records(&self) -> bool {
        let kept = self.agent.options.records_mb > 0 && !self.unrecorded;
        self.run.record && kept && self.playback.is_none()
    }

    /// Notes an input. The ledger keeps it with the next commit that the step waits for.
    pub(super) fn note(&mut self, entry: &Entry) -> Result<(), Stop> {
        self.note_as(None, entry)
    }

    fn note_as(&mut self, name: Option<String>, entry: &Entry) -> Result<(), Stop> {
        if !self.records() {
            return Ok(());
        }
        let noted = Noted {
            run: self.run.run.clone(),
            step: self.step,
            name,
            text: serde_json::to_string(entry).map_err(AgentError::from)?,
        };
        self.notes.push(noted);
        Ok(())
    }

    /// Notes the configuration that the step uses when it begins, or when a process takes it up again.
    pub(super) fn note_begin(&mut self) -> Result<(), Stop> {
        if !self.records() {
            return Ok(());
        }
        if self.step == 1 && self.run.parent.is_empty() {
            let mut run = AgentRun::clone(&self.run);
            run.reply.clear();
            let options = serde_json::to_value(&self.agent.options);
            let beginning = Beginning {
                run,
                detach: self.detach,
                options: options.unwrap_or(Value::Null),
            };
            let entry = Entry::Run(Box::new(beginning));
            self.note_as(Some(Noted::FIRST.to_owned()), &entry)?;
        }
        let rows = self.rows_now();
        let around = Surroundings {
            rows: rows_hash(&rows),
            library: self.traces.has_library(),
            hook: self.has_hook(),
        };
        self.note_as(Some(around.rows.clone()), &Entry::Rows(rows))?;
        self.note(&Entry::Step(around))
    }

    /// Writes the noted inputs to the ledger.
    pub(super) async fn keep_notes(&mut self) -> Result<(), Stop> {
        if self.notes.is_empty() {
            return Ok(());
        }
        self.recorded().await?;
        let root = splitting::whole(&self.run).to_owned();
        let added = Added {
            root,
            workspace: self.cx.workspace_key().to_string(),
            entries: std::mem::take(&mut self.notes),
            most: LARGEST,
            keep: self.agent.options.records_mb << 20,
        };
        let ledger = self.ledger().await?;
        let key = self.key();
        if !ledger.keep_record(&key, added, clock::millis()).await? {
            tracing::warn!(
                run = self.run.run,
                "the run is not recorded any more: its record is too large"
            );
            self.unrecorded = true;
        }
        Ok(())
    }
}
