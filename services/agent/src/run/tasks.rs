//! What this process knows of its tasks: their places, and how to end those that are under way.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tg_mesh::clock;
use tg_storage::StorageError;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::error::AgentError;
use crate::sessions::Sessions;
use crate::store::{Ledger, TaskEnd, TaskStatus};

/// A task of a workspace.
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
}

impl Tasks {
    pub(crate) fn new(most: usize, sessions: Arc<dyn Sessions>) -> Self {
        Self {
            owner: uuid::Uuid::new_v4().to_string(),
            sessions,
            places: Semaphore::new(most),
            under_way: Mutex::default(),
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
