//! Ids of threads: random, so that nobody reads a chain out of one. They and the time come from outside.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::{Uuid, Variant};

/// One call chain, by a name that says nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ThreadId(Uuid);

/// A text that is not the canonical form of a random UUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a thread is named by a UUID of version 4 in lower case")]
pub struct NotAThread;

impl ThreadId {
    /// Reads the canonical form, and no other.
    ///
    /// # Errors
    /// It is not one.
    pub fn parse(text: &str) -> Result<Self, NotAThread> {
        let id = Uuid::try_parse(text).map_err(|_| NotAThread)?;
        let random = id.get_version_num() == 4 && id.get_variant() == Variant::RFC4122;
        match random && id.to_string() == text {
            true => Ok(Self(id)),
            false => Err(NotAThread),
        }
    }

    /// One out of sixteen random bytes.
    pub fn from_random(bytes: [u8; 16]) -> Self {
        Self(uuid::Builder::from_random_bytes(bytes).into_uuid())
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl TryFrom<String> for ThreadId {
    type Error = NotAThread;
    fn try_from(text: String) -> Result<Self, NotAThread> {
        Self::parse(&text)
    }
}

impl From<ThreadId> for String {
    fn from(id: ThreadId) -> String {
        id.to_string()
    }
}

/// What comes from outside: the time, and ids that nobody had before.
pub trait World {
    /// Milliseconds since the Unix epoch.
    fn time(&self) -> u64;
    /// An id that is new.
    fn fresh(&mut self) -> ThreadId;
}
