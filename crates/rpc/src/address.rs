//! Where the rest of an answer goes, and where its asker stands.

use serde::{Deserialize, Serialize};

/// Where the rest of an answer goes, so that another message or process can go on with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default, rename_all = "kebab-case")]
pub struct ReplyAddress {
    /// Id of the question.
    pub id: String,
    /// Inbox of the asker, or the response topic of a plain one.
    pub reply_to: String,
    /// Number of the next part.
    pub seq: u64,
    /// Deadline, milliseconds since the Unix epoch.
    pub deadline: u64,
    /// The work goes on when nobody listens.
    pub detach: bool,
    /// The asker reads no headers of ours: parts are not numbered and go to a topic.
    #[serde(rename = "foreign")]
    pub plain: bool,
}

/// Where the asker of an answer stands that another process began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskerState {
    /// It lacks the parts from this one on.
    Lacks(u64),
    /// It does not wait any more.
    Gone,
}
