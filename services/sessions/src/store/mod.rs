//! What the service keeps: sessions and what was said in them. The traits know no database; the adapter is one over
//! SQLite, with one file for each workspace.
//!
//! Messages are only ever added. What one turn takes does not depend on how many came before it.

mod lifecycle;
mod lineage;
mod record;
mod services;
mod sqlite;

#[cfg(test)]
mod conformance;

use async_trait::async_trait;
use tg_storage::StorageError;

pub use lineage::{
    FactStore, LineageStore, MemoryRow, SettingStore, Shortening, SummaryKind, SummaryRow,
    Unsearched,
};
pub use record::{
    Agent, AgentRow, Answer, Asked, Began, Finished, Message, NewSession, Owner, Page, Role,
    Session, Span, Step, Surface, Unasked,
};
pub use services::{LlmService, LlmServiceRow, LlmServiceStore, Removed};
/// The adapter that is used.
pub use sqlite::{ONE_WORKSPACE, Purged, SqliteSessions, file_name};

use crate::engine::cursor::Key;

/// Sessions of workspaces, each named by the text form of its key. Each method is one transaction, and doing it again
/// changes nothing more.
#[async_trait]
pub trait SessionStore: Send + Sync + 'static {
    /// Adds a session, unless one of its id is there. Returns the one that is there then.
    ///
    /// # Errors
    /// The workspace may keep no more, or the store failed; nothing was added.
    async fn create(&self, workspace: &str, new: NewSession) -> Result<Session, StorageError>;

    /// A session.
    ///
    /// # Errors
    /// The store failed.
    async fn session(&self, workspace: &str, id: &str) -> Result<Option<Session>, StorageError>;

    /// At most `most` sessions of an owner, the newest first, after one of them.
    ///
    /// # Errors
    /// The store failed.
    async fn sessions(
        &self,
        workspace: &str,
        owner: Owner,
        after: Option<Key>,
        most: usize,
    ) -> Result<Vec<Session>, StorageError>;

    /// Changes the title of a session and the collections that its answers may use. `None`: it is not there.
    ///
    /// # Errors
    /// The store failed; nothing was changed.
    async fn rename(
        &self,
        workspace: &str,
        id: &str,
        title: Option<String>,
        knowledge: Vec<String>,
    ) -> Result<Option<Session>, StorageError>;

    /// Gives a session of a user in which nothing was said to another agent; any other stays as it is. Returns it as it is
    /// then. `None`: it is not there.
    ///
    /// # Errors
    /// The store failed; nothing was changed.
    async fn give(
        &self,
        workspace: &str,
        id: &str,
        to: Owner,
    ) -> Result<Option<Session>, StorageError>;

    /// Takes a collection from all conversations that may use it. How many there were.
    ///
    /// # Errors
    /// The store failed; nothing was changed.
    async fn forget_collection(
        &self,
        workspace: &str,
        collection: &str,
    ) -> Result<usize, StorageError>;

    /// Deletes a session with its messages. `false`: it is not there. A request that comes again finds it done.
    ///
    /// # Errors
    /// The store failed; nothing was deleted.
    async fn delete(&self, workspace: &str, id: &str, request: &str) -> Result<bool, StorageError>;

    /// Deletes a session in which nothing was said; any other stays. Whether it is gone.
    ///
    /// # Errors
    /// The store failed; nothing was deleted.
    async fn delete_empty(&self, workspace: &str, id: &str) -> Result<bool, StorageError>;

    /// Whether a request did already what can be done once: it deleted something, forgot it, or took it back.
    ///
    /// # Errors
    /// The store failed.
    async fn is_done(&self, workspace: &str, request: &str, id: &str)
    -> Result<bool, StorageError>;

    /// Adds the user's message of a turn. A request that came before adds none: it finds its own message, and the answer
    /// where the turn has one. `None`: the session is not there.
    ///
    /// # Errors
    /// The workspace may keep no more, or the store failed; nothing was added.
    async fn begin(
        &self,
        workspace: &str,
        session: &str,
        asked: Asked,
    ) -> Result<Option<Began>, StorageError>;

    /// Adds the agent's answer to the message that began a turn, unless it has one. Returns the one that it has then.
    /// `None`: the session is not there.
    ///
    /// # Errors
    /// The store failed; nothing was added.
    async fn finish(
        &self,
        workspace: &str,
        session: &str,
        turn: i64,
        answer: Answer,
    ) -> Result<Option<Finished>, StorageError>;

    /// Adds what an agent says without being asked, unless a message of its id is there. `false`: the session is not there.
    ///
    /// # Errors
    /// The workspace may keep no more, or the store failed; nothing was added.
    async fn announce(
        &self,
        workspace: &str,
        session: &str,
        said: Unasked,
    ) -> Result<bool, StorageError>;

    /// Messages of a session.
    ///
    /// # Errors
    /// The store failed.
    async fn messages(
        &self,
        workspace: &str,
        session: &str,
        span: Span,
    ) -> Result<Page<Message>, StorageError>;

    /// The newest messages of a session, the oldest of them first: `most`, and no more once those after have so many bytes.
    ///
    /// # Errors
    /// The store failed.
    async fn newest(
        &self,
        workspace: &str,
        session: &str,
        most: usize,
        bytes: usize,
    ) -> Result<Vec<Message>, StorageError>;

    /// The last messages between two numbers that no summary replaced, the oldest first, with no more than `bytes` of text and of
    /// calls of tools. What they used is left out.
    ///
    /// # Errors
    /// The store failed.
    async fn past(
        &self,
        workspace: &str,
        session: &str,
        between: (i64, i64),
        bytes: usize,
    ) -> Result<Vec<Message>, StorageError>;
}

/// Agents of workspaces. Each method is one transaction, and doing it again changes nothing more.
#[async_trait]
pub trait AgentStore: Send + Sync + 'static {
    /// Adds an agent. A request that came before finds the one that it added. `None`: another request added one of this id.
    ///
    /// # Errors
    /// The workspace may keep no more, or the store failed; nothing was added.
    async fn add_agent(
        &self,
        workspace: &str,
        new: AgentRow,
    ) -> Result<Option<Agent>, StorageError>;

    /// Adds the agents that a workspace begins with, in this order, unless that was done before.
    ///
    /// # Errors
    /// The store failed; nothing was added.
    async fn seed(&self, workspace: &str, agents: Vec<AgentRow>) -> Result<(), StorageError>;

    /// Whether a workspace has had the agents that it begins with.
    ///
    /// # Errors
    /// The store failed.
    async fn is_seeded(&self, workspace: &str) -> Result<bool, StorageError>;

    /// An agent.
    ///
    /// # Errors
    /// The store failed.
    async fn agent(&self, workspace: &str, id: &str) -> Result<Option<Agent>, StorageError>;

    /// Agents, the oldest first, after one of them: `most`, and no more once those before have so many bytes.
    ///
    /// # Errors
    /// The store failed.
    async fn agents(
        &self,
        workspace: &str,
        after: Option<Key>,
        most: usize,
        bytes: usize,
    ) -> Result<Page<Agent>, StorageError>;

    /// Replaces what an agent is like. `None`: it is not there.
    ///
    /// # Errors
    /// The workspace may keep no more, or the store failed; nothing was changed.
    async fn change_agent(
        &self,
        workspace: &str,
        id: &str,
        body: String,
        at: i64,
    ) -> Result<Option<Agent>, StorageError>;

    /// Removes an agent with the conversations with it. `false`: it is not there. A request that comes again finds it done.
    ///
    /// # Errors
    /// The store failed; nothing was removed.
    async fn remove_agent(
        &self,
        workspace: &str,
        id: &str,
        request: &str,
    ) -> Result<bool, StorageError>;
}
