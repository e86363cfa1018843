//! What a handler returns, and what the pump makes of it.

use serde_json::Value;
use tg_schemas::limits;

use crate::directory::Directory;
use crate::envelope::{Delivery, Envelope};
use crate::id::ThreadId;
use crate::listener::CHECKS;
use crate::name::Name;
use crate::payload::{ATTEMPT, Payload};

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

    /// The payload, if whom it is for takes it; else the beginning of what was to be sent.
    fn read(self, takes: impl FnOnce(Payload) -> Option<Payload>) -> Result<Payload, Vec<u8>> {
        let mut raw = serde_json::to_vec(&self.body).unwrap_or_default();
        let payload = match self.body {
            Value::Object(_) => Payload::read(&self.kind, &raw).and_then(takes),
            _ => None,
        };
        payload.ok_or_else(|| {
            raw.truncate(ATTEMPT);
            raw
        })
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

/// How the handling of a message ended, with payloads that were checked by what their listeners take. That needs no pump, which
/// does one thing at a time for a whole workspace.
#[derive(Debug)]
pub struct Checked(pub(crate) Returned);

impl Checked {
    /// Whether messages to other listeners follow from it.
    pub fn forwards(&self) -> bool {
        matches!(&self.0, Returned::Turn(forwards, _) if !forwards.is_empty())
    }
}

/// What is in it.
#[derive(Debug)]
pub(crate) enum Returned {
    Turn(Vec<Sending>, Option<Result<Payload, Vec<u8>>>),
    Unreadable(Vec<u8>),
    Failed(String),
    TimedOut,
    Unserved,
    Cancelled,
}

/// A message to another listener, which takes the payload; else the beginning of it.
#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) to: String,
    pub(crate) payload: Result<Payload, Vec<u8>>,
}

impl Outcome {
    /// Whether the check takes long; see [`Directory::is_costly`]. Only schemas of listeners that the handler may reach
    /// count: others are not checked, and their weight would show in the time of the answer.
    pub fn is_costly(&self, directory: &Directory, delivery: &Delivery) -> bool {
        let Self::Turn(turn) = self else {
            return false;
        };
        let mut cost = 0_usize;
        let from = &delivery.envelope.to;
        let forwards = turn.forwards.iter();
        let forwards = forwards.map(|one| (directory.reached(from, &one.to), &one.wish));
        let respond = turn.respond.iter().map(|wish| (None, wish));
        forwards.chain(respond).any(|(to, wish)| {
            let one = Directory::cost(to, &wish.kind, length(&wish.body));
            cost = cost.saturating_add(one);
            cost >= CHECKS
        })
    }

    /// Checks what a handler wants to send by what its targets take.
    pub fn checked(self, directory: &Directory, delivery: &Delivery) -> Checked {
        Checked(match self {
            Self::Turn(turn) => {
                let sending = |forward: Forward| {
                    let target = directory.reached(&delivery.envelope.to, &forward.to);
                    let takes = |payload| target.and_then(|target| target.admitted(payload));
                    let payload = forward.wish.read(takes);
                    let to = forward.to;
                    Sending { to, payload }
                };
                let forwards = turn.forwards.into_iter().map(sending).collect();
                Returned::Turn(forwards, turn.respond.map(|wish| wish.read(Some)))
            }
            Self::Unreadable(raw) => Returned::Unreadable(raw),
            Self::Failed(why) => Returned::Failed(why),
            Self::TimedOut => Returned::TimedOut,
            Self::Unserved => Returned::Unserved,
            Self::Cancelled => Returned::Cancelled,
        })
    }
}

/// About how many bytes a value has as text. They are counted up to [`limits::OFFLOAD`]: that many are much anyway.
fn length(value: &Value) -> usize {
    let (mut length, mut left) = (0, vec![value]);
    while length < limits::OFFLOAD
        && let Some(value) = left.pop()
    {
        length += match value {
            Value::String(text) => text.len() + 2,
            Value::Array(items) => 2 * items.len() + 2,
            Value::Object(fields) => fields.keys().map(|key| key.len() + 4).sum::<usize>() + 2,
            Value::Null | Value::Bool(_) | Value::Number(_) => 1,
        };
        if length < limits::OFFLOAD {
            match value {
                Value::Array(items) => left.extend(items),
                Value::Object(fields) => left.extend(fields.values()),
                _ => {}
            }
        }
    }
    length
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
