//! Who and what is known, one by one.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use tg_schemas::WorkspaceKey;

/// A unit of isolation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Workspace {
    /// Its id.
    pub(crate) id: String,
    /// Name for people.
    pub(crate) name: String,
    /// A disabled one's keys are refused.
    pub(crate) enabled: bool,
    /// When it was made.
    pub(crate) created: DateTime<Utc>,
    /// Id of the question that brings it back, until that is done; empty where none does.
    pub(crate) restoring: String,
    /// In which generation of its name configuration has it; `None` until that was seen.
    pub(crate) generation: Option<i64>,
}

impl Workspace {
    /// Its name in its generation, where that is known.
    pub(crate) fn key(&self) -> Option<WorkspaceKey> {
        let generation = self.generation?;
        Some(WorkspaceKey::new(&self.id, generation))
    }
}

/// A person or program that may hold keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    /// Its id.
    pub(crate) id: String,
    /// Home workspace.
    pub(crate) home: String,
    /// Unique name.
    pub(crate) username: String,
    /// Name for people.
    pub(crate) name: String,
    /// Mail address, if told.
    pub(crate) email: String,
    /// Names of roles.
    pub(crate) roles: BTreeSet<String>,
    /// A disabled one's keys are refused.
    pub(crate) enabled: bool,
    /// A note for clients.
    pub(crate) must_change_password: bool,
    /// When it was made.
    pub(crate) created: DateTime<Utc>,
    /// Id of the question that made it: asked twice, it is made once.
    pub(crate) made_by: String,
}

/// An API key, as far as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    /// Its id.
    pub(crate) id: String,
    /// Whose it is.
    pub(crate) user_id: String,
    /// Name for people.
    pub(crate) name: String,
    /// First characters, to tell keys apart.
    pub(crate) prefix: String,
    /// SHA-256 in hex.
    pub(crate) hash: String,
    /// When it ends.
    pub(crate) expires: Option<DateTime<Utc>>,
    /// When it was made.
    pub(crate) created: DateTime<Utc>,
    /// Id of the question that made it.
    pub(crate) made_by: String,
}
