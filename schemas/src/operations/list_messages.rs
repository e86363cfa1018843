//! `list-messages`: what was said in a session.

use serde::{Deserialize, Serialize};

use super::declare::{Effect, Meta, Operation};
use super::failure::Failure;
use super::records::{Empty, SessionMessage};
use super::send_message::WhenBusy;
use super::surface::{AGENT, OF_USER, PAGE_OF_MESSAGES, REQUEST_ID, SESSIONS, SINCE};
use crate::topic::Class;

/// Which messages are listed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct WhichMessages {
    /// Name of the agent; empty: whichever agent the session has.
    pub name: String,
    /// Id of the session.
    pub session_id: String,
    /// The user whose session it is.
    pub user_id: String,
    /// Most entries of the page: 1 to 200; left out: 50.
    pub limit: Option<i64>,
    /// The `next_cursor` of the page before; left out: the first page.
    pub cursor: Option<String>,
    /// Whether messages that a summary replaced are left out.
    pub live: bool,
    /// What happens while a turn of the session is in progress: `queue` waits for its end, `refuse` answers `session_busy`;
    /// left out: the messages are read at once.
    pub when_busy: Option<WhenBusy>,
    /// Instead of a page: so many of the newest messages, 1 to 1,000, as far as they have no more than 8 MiB.
    pub newest: Option<i64>,
}

/// A page of messages.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SessionMessages {
    /// Id of the session.
    pub session_id: String,
    /// The messages, oldest first.
    pub messages: Vec<SessionMessage>,
    /// The `cursor` of the next page; `null`: this is the last one.
    pub next_cursor: Option<String>,
}

/// The operation.
pub struct ListMessages;

impl Operation for ListMessages {
    const META: Meta = Meta {
        service: SESSIONS,
        name: "list-messages",
        summary: "Lists what was said in a session, oldest first.",
        capability: AGENT,
        method: "GET",
        path: "/a1/agents/{name}/sessions/{session_id}/messages",
        status: 200,
        stream: "",
        id_key: REQUEST_ID,
        headers: OF_USER,
        query: PAGE_OF_MESSAGES,
        class: Class::Request,
        effect: Effect::Read,
        asks_models: false,
        since: SINCE,
    };
    type Request = WhichMessages;
    type Reply = SessionMessages;
    type Chunk = Empty;
    type Error = Failure;
}
