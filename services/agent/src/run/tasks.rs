//! What this process knows of its tasks: their places, and how to end those that are under way.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tg_mesh::clock;
use tg_storage::StorageError;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::error::AgentError;
use crate::sessions::Sessions;
use crate::store::{Ledger, TaskEnd, TaskStatus};

/// A session is notified of progress once in this time.
const REPORT_PAUSE: Duration = Duration::from_secs(5);

/// A task, or a session, of a workspace.
type Key = (String, String);

/// What this process knows of its tasks.
pub(crate) struct Tasks {
    /// Names this process among those that had the ledger.
    pub(crate) owner: String,
    pub(crate) sessions: Arc<dyn Sessions>,
    /// Places of tasks that go on at the same time.
    pub(super) places: Semaphore,
    /// Bounded by the tasks that may be open.
    under_way: Mutex<HashMap<Key, CancellationToken>>,
    /// When sessions were last notified of progress, of the last seconds.
    reported: Mutex<HashMap<Key, Instant>>,
}

impl Tasks {
    pub(crate) fn new(most: usize, sessions: Arc<dyn Sessions>) -> Self {
        Self {
            owner: uuid::Uuid::new_v4().to_string(),
            sessions,
            places: Semaphore::new(most),
            under_way: Mutex::default(),
            reported: Mutex::default(),
        }
    }

    /// Whether a session may be notified of progress now. If so, it counts as notified.
    pub(super) fn may_report(&self, workspace: &str, session: &str) -> bool {
        let now = Instant::now();
        let mut reported = self.reported.lock();
        reported.retain(|_, at| now.duration_since(*at) < REPORT_PAUSE);
        match reported.entry((workspace.to_owned(), session.to_owned())) {
            Entry::Occupied(_) => false,
            Entry::Vacant(new) => {
                new.insert(now);
                true
            }
        }
    }

    /// Ends a task for good, with its run. `false`: it is over.
    pub(crate) async fn cancel(
        &self,
        ledger: &Ledger,
        workspace: &str,
        id: &str,
    ) -> Result<bool, StorageError> {
        let end = TaskEnd {
            status: TaskStatus::Cancelled,
            error: AgentError::Cancelled.to_string(),
            ..TaskEnd::default()
        };
        let ended = ledger.end_task(workspace, id, &end, clock::millis());
        let ended = ended.await?;
        let key = (workspace.to_owned(), id.to_owned());
        if let Some(stop) = self.under_way.lock().get(&key) {
            stop.cancel();
        }
        Ok(ended)
    }

    /// One is begun here, and ends by this.
    pub(super) fn enter(&self, workspace: &str, id: &str, stop: CancellationToken) {
        let key = (workspace.to_owned(), id.to_owned());
        self.under_way.lock().insert(key, stop);
    }

    /// One is over.
    pub(super) fn leave(&self, workspace: &str, id: &str) {
        let key = (workspace.to_owned(), id.to_owned());
        self.under_way.lock().remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sessions::InMemory;

    #[tokio::test(start_paused = true)]
    async fn a_session_is_told_of_progress_once_in_five_seconds() {
        let tasks = Tasks::new(1, Arc::new(InMemory::default()));
        assert!(tasks.may_report("w", "s"));
        assert!(!tasks.may_report("w", "s"));
        assert!(tasks.may_report("w", "another"));
        tokio::time::advance(REPORT_PAUSE).await;
        assert!(tasks.may_report("w", "s"));
        assert_eq!(tasks.reported.lock().len(), 1);
    }
}
