//! What a message says: a type and a JSON object. Those of the system are made here alone.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tg_schemas::limits;

use crate::name::Name;

/// How much of a body that could not be read is sent back.
pub const ATTEMPT: usize = 4096;
/// What every `huh` says.
pub const HUH: &str = "Invalid payload structure";
const RESERVED: [&str; 3] = ["huh", "systemerror", "boot"];

/// The name of a type: made like a name, without dots.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PayloadType(Name);

/// A text that names no type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the type is a name without dots, in lower case, and none of huh, systemerror and boot")]
pub struct BadType;

impl PayloadType {
    /// A type that a listener may take and a handler return.
    ///
    /// # Errors
    /// It is not made as types are, or is the system's.
    pub fn new(text: &str) -> Result<Self, BadType> {
        let read = Self::any(text)?;
        match RESERVED.contains(&text) {
            true => Err(BadType),
            false => Ok(read),
        }
    }

    /// A type as it stands in an envelope, those of the system included.
    ///
    /// # Errors
    /// It is not made as types are.
    pub fn any(text: &str) -> Result<Self, BadType> {
        match Name::any(text) {
            Ok(name) if !text.contains('.') => Ok(Self(name)),
            _ => Err(BadType),
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Whether only the system may send it.
    pub fn is_reserved(&self) -> bool {
        RESERVED.contains(&self.as_str())
    }
}

impl fmt::Display for PayloadType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl TryFrom<String> for PayloadType {
    type Error = BadType;
    fn try_from(text: String) -> Result<Self, BadType> {
        Self::any(&text)
    }
}

impl From<PayloadType> for String {
    fn from(kind: PayloadType) -> String {
        kind.0.into()
    }
}

/// A payload with its type.
#[derive(Debug, Clone, PartialEq)]
pub struct Payload {
    /// Its type.
    pub kind: PayloadType,
    /// What it says.
    pub body: Map<String, Value>,
}

/// Why a message could not be delivered or answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemError {
    /// Not a peer, no such listener, nobody there, or a limit of threads.
    Routing,
    /// The handler of the target failed.
    Validation,
    /// No reply in time.
    Timeout,
    /// A turn that went on for too long.
    Iterations,
}

impl SystemError {
    /// The code, the message and whether another try makes sense.
    pub fn says(self) -> (&'static str, &'static str, bool) {
        const LATE: &str = "No reply was received in time. You may try again.";
        match self {
            Self::Routing => (
                "routing",
                "Message could not be delivered. Please verify your target and try again.",
                true,
            ),
            Self::Validation => (
                "validation",
                "Message could not be processed. Please check its content and try again.",
                true,
            ),
            Self::Timeout => ("timeout", LATE, true),
            Self::Iterations => ("timeout", LATE, false),
        }
    }
}

impl Payload {
    /// Reads the body of a message: an object within the bound. The type may be any; who takes it decides.
    pub fn read(kind: &str, raw: &[u8]) -> Option<Self> {
        let kind = PayloadType::new(kind).ok()?;
        if raw.len() > limits::THREAD_PAYLOAD {
            return None;
        }
        let body = serde_json::from_slice(raw).ok()?;
        Some(Self { kind, body })
    }

    /// The answer to what could not be processed, whatever the cause.
    pub fn huh(raw: &[u8]) -> Self {
        let attempt = STANDARD.encode(&raw[..raw.len().min(ATTEMPT)]);
        Self::own("huh", json!({"error": HUH, "original_attempt": attempt}))
    }

    /// What takes the place of a message that failed; of one code all are the same.
    pub fn system_error(fault: SystemError) -> Self {
        let (code, message, retry) = fault.says();
        let body = json!({"code": code, "message": message, "retry_allowed": retry});
        Self::own("systemerror", body)
    }

    /// The one message of a start.
    pub fn boot(organism: &Name, timestamp: &str, listeners: usize) -> Self {
        let body = json!({
            "organism_name": organism, "timestamp": timestamp, "listener_count": listeners,
        });
        Self::own("boot", body)
    }

    pub(crate) fn own(kind: &'static str, body: Value) -> Self {
        let Value::Object(body) = body else {
            unreachable!("payloads of the system are objects")
        };
        Self {
            kind: PayloadType(Name::known(kind)),
            body,
        }
    }

    /// The body as bytes.
    pub fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(&self.body).unwrap_or_default()
    }

    /// A text of the body.
    pub fn text(&self, key: &str) -> &str {
        self.body.get(key).and_then(Value::as_str).unwrap_or("")
    }
}
