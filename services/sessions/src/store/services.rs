//! What is kept of the services that a workspace names: of models that answer, and of models that put passages in order.

use async_trait::async_trait;
use tg_storage::StorageError;

use super::Page;
use crate::engine::cursor::Key;
use crate::engine::service_kind::ServiceKind;

/// A service that is added to a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LlmServiceRow {
    /// Its id.
    pub id: String,
    /// Id of the request, by which a repetition is known.
    pub request: String,
    /// What it is like: JSON in text.
    pub body: String,
    /// When, in milliseconds.
    pub at: i64,
}

/// A service of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LlmService {
    /// Its id.
    pub id: String,
    /// What it is like: JSON in text.
    pub body: String,
    /// When it was created, in milliseconds. Later services of a workspace are later here, too.
    pub created: i64,
    /// When it changed last.
    pub updated: i64,
}

/// What came of the wish to remove one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Removed {
    /// It is gone.
    Gone,
    /// It was not there.
    Missing,
    /// An agent names it, whose body this is.
    Named(String),
}

/// Services of workspaces, each kind for itself. Each method is one transaction, and doing it again changes nothing more.
#[async_trait]
pub trait LlmServiceStore: Send + Sync + 'static {
    /// Adds one. A request that came before finds the one that it added. `None`: another request added one of this id.
    ///
    /// # Errors
    /// The workspace may keep no more, or the store failed; nothing was added.
    async fn add_service(
        &self,
        kind: ServiceKind,
        workspace: &str,
        new: LlmServiceRow,
    ) -> Result<Option<LlmService>, StorageError>;

    /// One of them.
    ///
    /// # Errors
    /// The store failed.
    async fn service(
        &self,
        kind: ServiceKind,
        workspace: &str,
        id: &str,
    ) -> Result<Option<LlmService>, StorageError>;

    /// Some of them, the oldest first, after one of them: `most`, and no more once those before have so many bytes.
    ///
    /// # Errors
    /// The store failed.
    async fn services(
        &self,
        kind: ServiceKind,
        workspace: &str,
        after: Option<Key>,
        most: usize,
        bytes: usize,
    ) -> Result<Page<LlmService>, StorageError>;

    /// Replaces what one is like. `None`: it is not there.
    ///
    /// # Errors
    /// The workspace may keep no more, or the store failed; nothing was changed.
    async fn change_service(
        &self,
        kind: ServiceKind,
        workspace: &str,
        id: &str,
        body: String,
        at: i64,
    ) -> Result<Option<LlmService>, StorageError>;

    /// Removes one that no agent names. A request that comes again finds it done.
    ///
    /// # Errors
    /// The store failed; nothing was removed.
    async fn remove_service(
        &self,
        kind: ServiceKind,
        workspace: &str,
        id: &str,
        request: &str,
    ) -> Result<Removed, StorageError>;
}
