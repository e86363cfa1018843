//! The handle of the engine: the way to its datasets and to its commit thread.

use std::sync::Arc;
use std::thread::JoinHandle;

use tg_collections::CollectionKey;
use tg_storage::Durability;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::change::Change;
use super::dataset::Dataset;
use super::entry::Entry;
use super::shared::Shared;
use super::{journal, load};
use crate::error::GraphError;
use crate::options::Limits;

/// The handle; clones share the engine.
#[derive(Clone)]
pub struct EmbeddedGraph {
    pub(crate) shared: Arc<Shared>,
    committer: Arc<Committer>,
}

/// The way to the commit thread. The last handle lets it finish what waits, and waits for it.
struct Committer {
    changes: Option<mpsc::Sender<Change>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.changes = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl EmbeddedGraph {
    /// Over threads that were started: `thread` makes the changes that come to `changes`.
    pub(super) fn over(
        shared: Arc<Shared>,
        changes: mpsc::Sender<Change>,
        thread: JoinHandle<()>,
    ) -> Self {
        let committer = Arc::new(Committer {
            changes: Some(changes),
            thread: Some(thread),
        });
        Self { shared, committer }
    }

    /// How hard a commit is.
    pub fn durability(&self) -> Durability {
        self.shared.journal.durability()
    }

    /// The limits.
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// The dataset, loaded; `None` if there is none.
    pub(crate) async fn dataset(
        &self,
        key: &CollectionKey,
    ) -> Result<Option<Arc<Dataset>>, GraphError> {
        let known = self.shared.entries.lock().get(key).cloned();
        let entry = match known {
            Some(entry) => entry,
            None => match self.find_or_load(key).await? {
                Some(entry) => entry,
                None => return Ok(None),
            },
        };
        Ok(Some(entry.ready().await?))
    }

    async fn find_or_load(&self, key: &CollectionKey) -> Result<Option<Arc<Entry>>, GraphError> {
        let wanted = key.clone();
        let journal = &self.shared.journal;
        let found = journal
            .read(move |conn| journal::find(conn, &wanted))
            .await?;
        let Some(id) = found else {
            return Ok(None);
        };
        let mut entries = self.shared.entries.lock();
        if let Some(entry) = entries.get(key) {
            return Ok(Some(entry.clone()));
        }
        let entry = Arc::new(Entry::loading(id));
        entries.insert(key.clone(), entry.clone());
        load::start(self.shared.clone(), key.clone(), entry.clone());
        Ok(Some(entry))
    }

    pub(crate) async fn permit(
        semaphore: &Arc<Semaphore>,
    ) -> Result<OwnedSemaphorePermit, GraphError> {
        let permit = semaphore.clone().acquire_owned().await;
        permit.map_err(|_| GraphError::Closed)
    }

    pub(crate) async fn send<T>(
        &self,
        change: Change,
        result: oneshot::Receiver<Result<T, GraphError>>,
    ) -> Result<T, GraphError> {
        let changes = self.committer.changes.as_ref().ok_or(GraphError::Closed)?;
        let sent = changes.send(change).await;
        sent.map_err(|_| GraphError::Closed)?;
        result.await.map_err(|_| GraphError::Closed)?
    }
}
