//! A recorded run: what it hears of the outside goes to the ledger before anything follows from it, so that it can be replayed
//! to where it came, whatever became of the process.

use serde_json::Value;
use tg_mesh::clock;
use tg_schemas::msg::AgentRun;

use super::execution::StepExecution;
use crate::engine::exchange::{Beginning, Entry, Surroundings, rows_hash};
use crate::engine::splitting;
use crate::error::{AgentError, Stop};
use crate::store::{Added, Noted};

/// Bytes of one record at most; of a run that hears more nothing is kept.
pub(crate) const LARGEST: u64 = 8 << 20;

impl StepExecution {
    /// Whether what is heard is kept.
    pub(super) fn records(&self) -> bool {
        let kept = self.agent.options.records_mb > 0 && !self.unrecorded;
        self.run.record && kept && self.playback.is_none()
    }

    /// Notes something that was heard; it is kept with the next that has to be.
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

    /// The step begins, or is taken up again: by what it goes.
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

    /// Keeps what was noted.
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
            tracing::warn!(run = self.run.run, "what a run hears is kept no more");
            self.unrecorded = true;
        }
        Ok(())
    }
}
