//! What the flow service keeps itself: the epoch counter, how far stops have come, and dead letters. Flow records
//! and processor rows are configuration, not here.
//!
//! [`FlowStore`] is what an adapter does. A method is one transaction; repeating a writer changes nothing, where it does
//! not say otherwise. A workspace is the text form of its key: a name and which generation of it.

mod records;
mod sqlite;

#[cfg(test)]
mod conformance;

use std::ops::Deref;
use std::sync::Arc;

use async_trait::async_trait;
use tg_collections::KnownConfig;
use tg_schemas::WorkspaceKey;
use tg_storage::StorageError;

pub(crate) use records::{
    DeadLetterBacklog, DeadLetterCount, Due, NewRecord, Reason, RecordStore, Select, StoredRecord,
};
pub use sqlite::ONE_WORKSPACE;
pub(crate) use sqlite::SqliteFlows;

use crate::engine::receipt::Counts;

/// Where a stop stands. Each phase is stored before it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Processors finish what they have.
    Drain,
    /// Rows go, processors leave.
    Detach,
    /// What is left is parked or counted as thrown away.
    Park,
    /// Queues, exchanges and the record go.
    Remove,
}

impl Phase {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Drain, "drain"),
        (Self::Detach, "detach"),
        (Self::Park, "park"),
        (Self::Remove, "remove"),
    ];

    pub(crate) fn as_str(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(phase, _)| *phase == self)
            .map_or("", |(_, text)| text)
    }

    pub(crate) fn parse(text: &str) -> Self {
        let known = Self::ALL.iter().find(|(_, known)| *known == text);
        known.map_or(Self::Drain, |(phase, _)| *phase)
    }
}

/// A stop under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Where it stands.
    pub(crate) phase: Phase,
    /// When it began, milliseconds since the Unix epoch.
    pub(crate) started: i64,
    /// What was counted so far.
    pub(crate) counts: Counts,
}

/// The epoch counter and stops under way.
#[async_trait]
pub(crate) trait StopStore: Send + Sync + 'static {
    /// The next epoch: larger than any before.
    async fn next_epoch(&self) -> Result<u64, StorageError>;

    /// Makes sure that the next epoch is larger than one that is in use.
    async fn raise_epoch(&self, in_use: u64) -> Result<(), StorageError>;

    /// Begins a stop, or goes on with the one that was begun under the same epoch: `true`. Also with one of the release
    /// before, which had workspaces without their generation: an epoch is given once.
    async fn begin_stop(
        &self,
        workspace: &WorkspaceKey,
        flow: &str,
        epoch: u64,
        now: i64,
    ) -> Result<(Progress, bool), StorageError>;

    /// Stores how far a stop has come.
    async fn stop_at(
        &self,
        workspace: &str,
        flow: &str,
        phase: Phase,
        counts: &Counts,
    ) -> Result<(), StorageError>;

    /// Forgets a stop.
    async fn end_stop(&self, workspace: &str, flow: &str) -> Result<(), StorageError>;
}

/// All that the flow service keeps.
pub(crate) trait FlowStore: StopStore + RecordStore + KnownConfig {}

impl<S: StopStore + RecordStore + KnownConfig> FlowStore for S {}

/// The store that this process has open.
#[derive(Clone)]
pub(crate) struct Store(Arc<dyn FlowStore>);

impl Store {
    /// Over an adapter.
    pub(crate) fn new(store: Arc<dyn FlowStore>) -> Self {
        Self(store)
    }
}

impl Deref for Store {
    type Target = dyn FlowStore;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}
