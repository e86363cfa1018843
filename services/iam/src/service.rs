//! The directory of this process: reads from memory; changes to disk, then memory, one at a time.

use parking_lot::RwLock;
use tg_schemas::Error;
use tg_schemas::msg::{IamRequest, IamResponse};
use tg_storage::StorageError;
use tokio::sync::Mutex;

use crate::engine::{self, Call, Directory, Effect};
use crate::store::Store;

/// An operation, worked out on the directory as it is.
pub(crate) type Operation = fn(&Directory, &Call, &IamRequest) -> Result<Effect, Error>;

/// The open store and its directory in memory.
pub(crate) struct Service {
    store: Store,
    directory: RwLock<Directory>,
    changing: Mutex<()>,
}

impl Service {
    /// Reads the store into memory.
    pub(crate) async fn load(store: Store) -> Result<Self, StorageError> {
        let directory = store.load().await?;
        Ok(Self {
            store,
            directory: RwLock::new(directory),
            changing: Mutex::default(),
        })
    }

    /// Whether there is no user yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.directory.read().users().len() == 0
    }

    /// What an operation that changes nothing answers; `None` if it would change something.
    pub(crate) fn read(
        &self,
        operation: Operation,
        call: &Call,
        ask: &IamRequest,
    ) -> Result<Option<IamResponse>, Error> {
        let effect = operation(&self.directory.read(), call, ask)?;
        Ok(effect.changes.is_empty().then_some(effect.answer))
    }

    /// Runs an operation. Must not be dropped half-way: memory would fall behind the disk; so callers give
    /// it a task of its own.
    pub(crate) async fn change(
        &self,
        operation: Operation,
        call: &Call,
        ask: &IamRequest,
    ) -> Result<IamResponse, Error> {
        let _turn = self.changing.lock().await;
        let Effect { changes, answer } = operation(&self.directory.read(), call, ask)?;
        self.store.commit(changes.clone()).await.map_err(wire)?;
        let mut directory = self.directory.write();
        for change in &changes {
            directory.apply(change);
        }
        Ok(answer)
    }

    /// Whether a workspace is there.
    pub(crate) fn workspace(&self, ask: &IamRequest) -> Result<String, Error> {
        Ok(engine::existing(&self.directory.read(), ask)?.id.clone())
    }
}

/// Logs what happened and tells what clients may know.
pub(crate) fn wire(fault: StorageError) -> Error {
    tracing::error!(error = %fault, "iam store");
    Error::from(fault)
}

#[cfg(test)]
mod tests;
