//! What is kept of sessions that were shortened, of what a workspace says of its sessions, and of what users said of themselves.

use std::collections::BTreeMap;

use async_trait::async_trait;
use tg_storage::StorageError;

use super::record::{Began, Message, NewSession, Session};

/// What a summary does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SummaryKind {
    /// Another session begins with it.
    Lineage,
    /// The agent is told of it instead of what it sums up; the session goes on.
    InPlace,
}

impl SummaryKind {
    /// As it is kept.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lineage => "lineage",
            Self::InPlace => "in_place",
        }
    }

    /// From how it is kept.
    pub fn parse(text: &str) -> Self {
        match text {
            "in_place" => Self::InPlace,
            _ => Self::Lineage,
        }
    }
}

/// A summary, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryRow {
    /// Its id.
    pub id: String,
    /// The session whose messages it sums up.
    pub session: String,
    /// The session that begins with it.
    pub successor: Option<String>,
    /// What it does.
    pub kind: SummaryKind,
    /// How good it is.
    pub tier: String,
    /// The text.
    pub text: String,
    /// The model that wrote it.
    pub model: String,
    /// The prompt that it was asked for with.
    pub prompt: String,
    /// Whether what tools returned was left out.
    pub mask: bool,
    /// Number of the first message that it stands for.
    pub first: i64,
    /// Number of the last one.
    pub last: i64,
    /// How many these are.
    pub count: i64,
    /// Tokens before, about.
    pub before: i64,
    /// Tokens after, about.
    pub after: i64,
    /// What caused it.
    pub trigger: String,
    /// Id of the request that caused it, by which a repetition is known.
    pub request: String,
    /// When, in milliseconds.
    pub at: i64,
}

/// A session is shortened: the messages from the first kept one on are copied into another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortening {
    /// The summary, with the session and its successor. What comes after is counted by the store.
    pub summary: SummaryRow,
    /// The text of the first message of the successor.
    pub opening: String,
    /// Number of the first message that stays.
    pub first_kept: i64,
    /// Ids of the messages of the successor: of its first one, and of each that is live from the first kept one on.
    pub ids: Vec<String>,
}

/// A fact that a user stated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryRow {
    /// Its id.
    pub id: String,
    /// The user.
    pub user: String,
    /// Whom or what it is about.
    pub subject: String,
    /// What is said of that.
    pub predicate: String,
    /// The value.
    pub object: String,
    /// The agent that was told.
    pub agent: String,
    /// The session in which it was said.
    pub session: String,
    /// The message that says it.
    pub message: String,
    /// When, in milliseconds. Later ones of a workspace are later here, too.
    pub at: i64,
}

/// A message of a user that is still to be searched for facts about the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsearched {
    /// The session in which it was said.
    pub session: String,
    /// Its number there.
    pub seq: i64,
    /// Its id.
    pub id: String,
    /// The text.
    pub content: String,
    /// Searches of it that failed.
    pub failed: i64,
}

/// Shortened sessions. Each method is one transaction.
#[async_trait]
pub trait LineageStore: Send + Sync + 'static {
    /// Archives a session and makes the one that continues it. `None`: it is not there, or archived already.
    ///
    /// # Errors
    /// The workspace may keep no more, where a user wants it shortened, or the store failed; nothing was changed.
    async fn shorten(
        &self,
        workspace: &str,
        new: Shortening,
    ) -> Result<Option<Session>, StorageError>;

    /// Whether the workspace may keep one session more, however short.
    ///
    /// # Errors
    /// It may not, or the store failed.
    async fn has_room(&self, workspace: &str) -> Result<(), StorageError>;

    /// Takes that back. `None`: the session is not archived, or the one that continues it has more than it began with. A
    /// request that comes again finds it done, until the session is shortened anew.
    ///
    /// # Errors
    /// The store failed; nothing was changed.
    async fn restore(
        &self,
        workspace: &str,
        id: &str,
        request: &str,
    ) -> Result<Option<Session>, StorageError>;

    /// Adds a summary of a session that goes on. `false`: the session is not there.
    ///
    /// # Errors
    /// The store failed; nothing was added.
    async fn summed_up(&self, workspace: &str, new: SummaryRow) -> Result<bool, StorageError>;

    /// The summaries of messages of a session, the oldest first.
    ///
    /// # Errors
    /// The store failed.
    async fn summaries(
        &self,
        workspace: &str,
        session: &str,
    ) -> Result<Vec<SummaryRow>, StorageError>;

    /// The newest summary that an agent is told instead of what it sums up.
    ///
    /// # Errors
    /// The store failed.
    async fn newest_in_place(
        &self,
        workspace: &str,
        session: &str,
    ) -> Result<Option<SummaryRow>, StorageError>;

    /// At most `most` summaries that agents read instead of what they sum up, the oldest first: those that end after the
    /// message of this number.
    ///
    /// # Errors
    /// The store failed.
    async fn in_place(
        &self,
        workspace: &str,
        session: &str,
        after: i64,
        most: usize,
    ) -> Result<Vec<SummaryRow>, StorageError>;

    /// The one of them that has this id.
    ///
    /// # Errors
    /// The store failed.
    async fn one_in_place(
        &self,
        workspace: &str,
        session: &str,
        id: &str,
    ) -> Result<Option<SummaryRow>, StorageError>;

    /// Removes the newest of them. `false`: there is none. A request that comes again finds it done, until one is added.
    ///
    /// # Errors
    /// The store failed; nothing was removed.
    async fn take_back(
        &self,
        workspace: &str,
        session: &str,
        request: &str,
    ) -> Result<bool, StorageError>;

    /// The turn of a session that a request began, with its answer where it has one. `None`: it began none.
    ///
    /// # Errors
    /// The store failed.
    async fn begun(
        &self,
        workspace: &str,
        session: &str,
        request: &str,
    ) -> Result<Option<Began>, StorageError>;

    /// Id of the newest message of a session that its user sent. `None`: there is none.
    ///
    /// # Errors
    /// The store failed.
    async fn last_asked(
        &self,
        workspace: &str,
        session: &str,
    ) -> Result<Option<String>, StorageError>;

    /// Adds a session with its messages, unless one of its id is there.
    ///
    /// # Errors
    /// The workspace may keep no more, or the store failed; nothing was added.
    async fn import(
        &self,
        workspace: &str,
        new: NewSession,
        messages: Vec<Message>,
    ) -> Result<Session, StorageError>;
}

/// What a workspace says of its sessions.
#[async_trait]
pub trait SettingStore: Send + Sync + 'static {
    /// All of it, JSON in text by name.
    ///
    /// # Errors
    /// The store failed.
    async fn settings(&self, workspace: &str) -> Result<BTreeMap<String, String>, StorageError>;

    /// All of it, and a session: a turn needs both, and one read finds them.
    ///
    /// # Errors
    /// The store failed.
    async fn settings_and_session(
        &self,
        workspace: &str,
        id: &str,
    ) -> Result<(BTreeMap<String, String>, Option<Session>), StorageError>;

    /// Changes some of it; `None` takes a setting back.
    ///
    /// # Errors
    /// The store failed; nothing was changed.
    async fn set(
        &self,
        workspace: &str,
        changes: BTreeMap<String, Option<String>>,
        at: i64,
    ) -> Result<(), StorageError>;
}

/// What users said of themselves.
#[async_trait]
pub trait FactStore: Send + Sync + 'static {
    /// Messages of a session, and of the one that it continues, that are still to be searched: at most `most`, the oldest first.
    ///
    /// # Errors
    /// The store failed.
    async fn unsearched(
        &self,
        workspace: &str,
        session: &str,
        most: usize,
    ) -> Result<Vec<Unsearched>, StorageError>;

    /// The search of a message of a session failed: it is to be searched again, unless it failed so often.
    ///
    /// # Errors
    /// The store failed; nothing was changed.
    async fn search_failed(
        &self,
        workspace: &str,
        message: (&str, i64),
        most: i64,
    ) -> Result<(), StorageError>;

    /// Remembers the facts that were found in a message of a session, which needs no other search then. Of a fact that is known
    /// nothing changes, and of a user no more than so many are kept: the oldest go. A workspace of which nothing is there stays so.
    ///
    /// # Errors
    /// The store failed; nothing was added.
    async fn remember(
        &self,
        workspace: &str,
        message: (&str, i64),
        facts: Vec<MemoryRow>,
        most: usize,
    ) -> Result<(), StorageError>;

    /// At most `most` facts of a user, the oldest first, after a moment.
    ///
    /// # Errors
    /// The store failed.
    async fn memories(
        &self,
        workspace: &str,
        user: &str,
        after: i64,
        most: usize,
    ) -> Result<Vec<MemoryRow>, StorageError>;

    /// Forgets a fact. `false`: the user has none of this id. A request that comes again finds it done.
    ///
    /// # Errors
    /// The store failed.
    async fn forget(
        &self,
        workspace: &str,
        user: &str,
        id: &str,
        request: &str,
    ) -> Result<bool, StorageError>;
}
