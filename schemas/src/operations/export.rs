//! A session as one document, which another system can take in.

use serde::{Deserialize, Serialize};

use super::records::{Session, SessionMessage};

/// The form of the document.
pub const FORM: &str = "threadgraph-session-1";

/// A session with its messages.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SessionDocument {
    /// The form of the document: `threadgraph-session-1`.
    pub form: String,
    /// The session.
    pub session: Session,
    /// What was said in it, the oldest first.
    pub messages: Vec<SessionMessage>,
}
