//! A message as it travels, and what its handler reads of it. Handlers write none of it but the payload.

use serde::Serialize;
use serde_json::{Map, Value};
use tg_schemas::{FlowId, WorkspaceId};

use crate::id::ThreadId;
use crate::name::Name;
use crate::payload::{Payload, PayloadType};

/// Where threads are: the flow of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The flow.
    pub flow: FlowId,
}

/// Who sends a message from outside, and with what thread.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Where.
    pub place: Place,
    /// Through which door.
    pub initiator: Name,
    /// The authenticated user.
    pub principal: String,
    /// The thread that was given, if any.
    pub thread: Option<ThreadId>,
}

/// What is inherited along a chain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Meta {
    /// The client's request behind it.
    pub request_id: String,
    /// The request behind that one.
    pub parent_request_id: Option<String>,
    /// Hops between surfaces.
    pub caller_depth: u32,
    /// How deep agents are nested.
    pub delegate_depth: u32,
    /// The authenticated caller.
    pub user_id: String,
}

/// A message with everything that is said of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Envelope {
    /// Correlation id, copied to what follows.
    pub id: String,
    /// The thread.
    pub thread: ThreadId,
    /// Who sent it.
    pub from: Name,
    /// Whom it is for.
    pub to: Name,
    /// Type of the payload.
    #[serde(rename = "type")]
    pub kind: PayloadType,
    /// The workspace.
    pub workspace: WorkspaceId,
    /// What is inherited.
    pub meta: Meta,
    /// What it says.
    pub payload: Map<String, Value>,
}

impl Envelope {
    /// The payload with its type.
    pub fn content(&self) -> Payload {
        Payload {
            kind: self.kind.clone(),
            body: self.payload.clone(),
        }
    }
}

/// What a handler gets beside the payload. An agent gets its [usage instructions](crate::Directory::usage) as well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Metadata {
    /// The thread, opaque.
    pub thread_id: ThreadId,
    /// When the thread began, in milliseconds since the Unix epoch. Its id may have been that of an earlier one, of which nothing
    /// is known any more.
    pub since: u64,
    /// Who sent it; of the hops before nothing is said.
    pub from_id: Name,
    /// The listener's own name; agents only.
    pub own_name: Option<Name>,
    /// Whether the listener sent it itself.
    pub is_self_call: bool,
}

/// A message for a handler. Only the pump makes one.
#[derive(Debug, Clone, PartialEq)]
pub struct Delivery {
    pub(crate) envelope: Envelope,
    pub(crate) metadata: Metadata,
    pub(crate) place: Place,
    /// First thread of its tree.
    pub(crate) tree: ThreadId,
    /// Thread of whoever called the handler, if it has one.
    pub(crate) parent: Option<ThreadId>,
}

impl Delivery {
    /// The message.
    pub fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    /// What the handler reads of it.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The thread of whoever called the handler, for traces. Handlers do not get it.
    pub fn parent_thread(&self) -> Option<ThreadId> {
        self.parent
    }

    /// The flow it is in.
    pub fn place(&self) -> &Place {
        &self.place
    }
}
