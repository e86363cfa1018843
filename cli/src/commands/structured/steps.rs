//! What a data file gives, step by step, while a thread of its own reads it.

use std::path::PathBuf;

use tokio::sync::mpsc;

use super::rows::{Counts, Plan, Step};
use crate::client::{Error, Result};
use crate::session::Session;

/// Batches that may wait between the reader and the socket.
const AHEAD: usize = 4;

/// What a file gives, step by step, while it is read on a thread of its own.
pub(super) struct Steps {
    from: mpsc::Receiver<Step>,
    work: tokio::task::JoinHandle<Result<Counts>>,
    input: PathBuf,
}

impl Steps {
    pub(super) fn of(plan: Plan) -> Self {
        let (to, from) = mpsc::channel(AHEAD);
        let input = plan.input.clone();
        Self {
            from,
            work: tokio::task::spawn_blocking(move || plan.run(&to)),
            input,
        }
    }

    /// The next step; `None` at the end, whose outcome [`Self::counts`] says.
    pub(super) async fn next(&mut self, session: &Session) -> Result<Option<Step>> {
        session.until_interrupted(self.from.recv()).await
    }

    pub(super) async fn counts(self) -> Result<Counts> {
        let broken = |_| Error::file(&self.input, "cannot be read: the reader failed");
        self.work.await.map_err(broken)?
    }
}
