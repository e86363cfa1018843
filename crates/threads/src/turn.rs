//! What a handler returns, and what the pump makes of it.

use serde_json::Value;

use crate::envelope::{Delivery, Envelope};
use crate::id::ThreadId;
use crate::name::Name;

/// Most messages that one return may send.
pub const FORWARDS: usize = 64;
/// Most characters of why nothing came of something: a part of it is what a listener says.
const WHY: usize = 512;

/// A payload as a handler would like it; the pump reads it before anybody else does.
#[derive(Debug, Clone, PartialEq)]
pub struct Wish {
    /// Its type.
    pub kind: String,
    /// Its body.
    pub body: Value,
}

impl Wish {
    /// A payload of a type.
    pub fn new(kind: &str, body: Value) -> Self {
        Self {
            kind: kind.to_owned(),
            body,
        }
    }

    pub(crate) fn raw(&self) -> Vec<u8> {
        serde_json::to_vec(&self.body).unwrap_or_default()
    }
}

/// A message to another listener.
#[derive(Debug, Clone, PartialEq)]
pub struct Forward {
    /// Whom the handler names.
    pub to: String,
    /// What it says.
    pub wish: Wish,
}

/// What a handler returns: messages to others in order, and at last a respond. Nothing of both is `none`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Turn {
    /// Messages to others.
    pub forwards: Vec<Forward>,
    /// The answer to whoever called.
    pub respond: Option<Wish>,
}

impl Turn {
    /// No message.
    pub fn none() -> Self {
        Self::default()
    }

    /// An answer.
    pub fn respond(kind: &str, body: Value) -> Self {
        Self::none().and_respond(kind, body)
    }

    /// A message to another listener.
    pub fn forward(to: &str, kind: &str, body: Value) -> Self {
        Self::none().and_forward(to, kind, body)
    }

    /// One more message, before the answer.
    pub fn and_forward(mut self, to: &str, kind: &str, body: Value) -> Self {
        self.forwards.push(Forward {
            to: to.to_owned(),
            wish: Wish::new(kind, body),
        });
        self
    }

    /// The answer at last.
    pub fn and_respond(mut self, kind: &str, body: Value) -> Self {
        self.respond = Some(Wish::new(kind, body));
        self
    }
}

/// How the handling of a message ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The handler returned.
    Turn(Turn),
    /// What it returned is nothing that a handler may return.
    Unreadable(Vec<u8>),
    /// It failed or panicked; why is only noted.
    Failed(String),
    /// It did not return in time.
    TimedOut,
    /// Nobody serves it.
    Unserved,
    /// Whoever asked does not want it any more.
    Cancelled,
}

/// What is to be done, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// A handler gets a message; its outcome comes back to the pump.
    Deliver(Delivery),
    /// A message leaves through the door that the caller came in by.
    Door(Envelope),
    /// Threads have ended; what is kept for them goes.
    Ended(Vec<ThreadId>),
    /// Something for the log alone.
    Note(Note),
}

/// What is for the log alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// On which thread.
    pub thread: ThreadId,
    /// Whose message it was.
    pub sender: Name,
    /// Whom it named.
    pub wanted: String,
    /// Why nothing came of it.
    pub why: String,
}

impl Note {
    pub(crate) fn refused(delivery: &Delivery, wanted: &str, why: &str) -> Self {
        Self {
            thread: delivery.envelope.thread,
            sender: delivery.envelope.to.clone(),
            wanted: wanted.chars().take(128).collect(),
            why: why.chars().take(WHY).collect(),
        }
    }

    pub(crate) fn failed(delivery: &Delivery, why: String) -> Self {
        Self {
            thread: delivery.envelope.thread,
            sender: delivery.envelope.from.clone(),
            wanted: delivery.envelope.to.to_string(),
            why: why.chars().take(WHY).collect(),
        }
    }

    pub(crate) fn late(delivery: &Delivery) -> Self {
        Self::failed(delivery, "the thread ended meanwhile".to_owned())
    }
}
