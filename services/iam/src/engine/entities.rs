//! Who and what is known, one by one.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use tg_jwt::LIFETIME;
use tg_schemas::WorkspaceKey;

use crate::password::PasswordHash;

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
    /// A disabled one's keys and tokens are refused.
    pub(crate) enabled: bool,
    /// A note for clients.
    pub(crate) must_change_password: bool,
    /// What is kept of the password; `None`: there is none, and no way in by one.
    pub(crate) password: Option<PasswordHash>,
    /// Counts what ended all of its sessions; tokens of an earlier count are refused.
    pub(crate) session: i64,
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
    /// The only capabilities that it has of the user's; empty: all of them.
    pub(crate) scopes: BTreeSet<String>,
    /// When it was made.
    pub(crate) created: DateTime<Utc>,
    /// Id of the question that made it.
    pub(crate) made_by: String,
}

/// What signs tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Signing {
    /// The private key, with its public one.
    pub(crate) key: tg_jwt::SigningKey,
    /// When it was made.
    pub(crate) created: DateTime<Utc>,
    /// Since when another one signs.
    pub(crate) retired: Option<DateTime<Utc>>,
}

impl Signing {
    /// Whether tokens that it signed may still be good.
    pub(crate) fn counts(&self, now: DateTime<Utc>) -> bool {
        let end = |retired: DateTime<Utc>| retired + chrono::Duration::seconds(LIFETIME);
        self.retired.is_none_or(|retired| now < end(retired))
    }
}

/// Users who are granted something together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    /// Its id.
    pub(crate) id: String,
    /// Unique name.
    pub(crate) name: String,
    /// What it is for.
    pub(crate) description: String,
    /// The grants of a disabled one do not count.
    pub(crate) enabled: bool,
    /// When it was made.
    pub(crate) created: DateTime<Utc>,
    /// Id of the question that made it.
    pub(crate) made_by: String,
}

/// Who has a grant, by id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Grantee {
    /// A user.
    User(String),
    /// All members of a group.
    Group(String),
}

impl Grantee {
    /// As it is written.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::User(_) => "user",
            Self::Group(_) => "group",
        }
    }

    /// The id.
    pub(crate) fn id(&self) -> &str {
        match self {
            Self::User(id) | Self::Group(id) => id,
        }
    }
}

/// What may be done where.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Grant {
    /// A capability, or a role, which stands for all of its capabilities.
    pub(crate) capability: String,
    /// Where; empty: everywhere.
    pub(crate) workspace: String,
}
