//! The handle of the engine: the way to its datasets and to its commit thread.

use std::sync::Arc;

use tg_collections::CollectionKey;
use tg_schemas::msg::UserContext;
use tg_storage::{Durability, GroupCommitter};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::bounds::Bounds;
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
    committer: Arc<GroupCommitter<Change>>,
}

impl EmbeddedGraph {
    /// Over a commit thread that was started.
    pub(super) fn over(shared: Arc<Shared>, committer: GroupCommitter<Change>) -> Self {
        Self {
            shared,
            committer: Arc::new(committer),
        }
    }

    /// What a committed write survives.
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

    /// The dataset as a user sees it, loaded; `None` if there is none.
    pub(crate) async fn seen(
        &self,
        key: &CollectionKey,
        user: Option<&UserContext>,
    ) -> Result<Option<Arc<Dataset>>, GraphError> {
        let dataset = self.dataset(key).await?;
        let limits = &self.shared.limits;
        let bounds = Bounds {
            time: limits.query_time,
            memory: limits.query_memory,
        };
        dataset
            .map(|dataset| dataset.seen_by(user, bounds))
            .transpose()
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
        let sent = self.committer.push(change).await;
        sent.map_err(|_| GraphError::Closed)?;
        result.await.map_err(|_| GraphError::Closed)?
    }
}
