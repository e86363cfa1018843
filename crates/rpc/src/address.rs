//! Where the rest of an answer goes, and where its asker stands.

use serde::{Deserialize, Serialize};
use tg_schemas::{Class, Frame, Headers, Topic};

use crate::deadline::{Deadline, QUESTION};

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

impl ReplyAddress {
    /// Where the answer to a question goes, by its headers. `None` where they are of no question in frames.
    pub fn of(headers: &Headers) -> Option<Self> {
        if headers.frame != Some(Frame::Ask) {
            return None;
        }
        Some(Self {
            id: headers.id.clone()?,
            reply_to: headers.reply_to.clone()?,
            seq: headers.seq.unwrap_or(0),
            deadline: headers
                .deadline
                .unwrap_or_else(|| Deadline::after(QUESTION).millis()),
            detach: headers.detach,
            plain: false,
        })
    }

    /// Where the answer to a plain question on a topic goes.
    pub fn plain(headers: &Headers, asked_on: &Topic) -> Option<Self> {
        Some(Self {
            id: headers.id.clone()?,
            reply_to: asked_on.with_class(Class::Response).to_string(),
            deadline: Deadline::after(QUESTION).millis(),
            plain: true,
            ..Self::default()
        })
    }
}

/// Where the asker of an answer stands that another process began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskerState {
    /// It lacks the parts from this one on.
    Lacks(u64),
    /// It does not wait any more.
    Gone,
}
