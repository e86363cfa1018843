//! Options of a question or record.

use std::sync::Arc;

use tg_schemas::{CountedBy, WorkspaceId};
use tokio_util::sync::CancellationToken;

use crate::deadline::Deadline;

/// Options of a question or record.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    /// Absolute deadline; absent: 600 s, an hour for a stream.
    pub deadline: Option<Deadline>,
    /// Ends the question.
    pub cancel: CancellationToken,
    /// The answer is streamed: the longer deadline applies.
    pub streaming: bool,
    /// The work goes on when the answer is dropped.
    pub detach: bool,
    /// Another process goes on with the answer of one that dies. It is waited for where the answer has begun, or is detached.
    pub taken_over: bool,
    /// Whoever takes the question on may pass it to another service, whose parts are then read as the answer's.
    pub forward: bool,
    /// Epoch of the flow.
    pub epoch: Option<u64>,
    /// Workspace.
    pub workspace: Option<WorkspaceId>,
    /// Generation of the workspace that it belongs to.
    pub generation: Option<i64>,
    /// Collection that a record is for.
    pub collection: Option<String>,
    /// Generation of that collection, as in [`Headers::collection_generation`](tg_schemas::Headers::collection_generation).
    pub collection_generation: Option<i64>,
    /// Question that caused this one.
    pub parent: Option<Arc<str>>,
    /// How deep the chain of questions is.
    pub depth: u32,
    /// Thread of work.
    pub thread: Option<String>,
    /// Caller at the edge.
    pub user_id: Option<String>,
    /// By what the caller is known, as in [`Headers::credential`](tg_schemas::Headers::credential).
    pub credential: Option<String>,
    /// What policies are to know of the caller, as in [`Headers::user_context`](tg_schemas::Headers::user_context).
    pub user_context: Option<String>,
    /// As in [`Headers::roles`](tg_schemas::Headers::roles).
    pub roles: Option<String>,
    /// As in [`Headers::counted`](tg_schemas::Headers::counted); of questions only.
    pub counted: Option<CountedBy>,
    /// As in [`Headers::policies`](tg_schemas::Headers::policies).
    pub policies: bool,
    /// As in [`Headers::by_hand`](tg_schemas::Headers::by_hand).
    pub by_hand: bool,
    /// W3C trace context.
    pub traceparent: Option<String>,
    /// Id of the client's request that is behind it, for the log.
    pub request_id: Option<String>,
    /// Id of the question; a random one if absent.
    pub id: Option<String>,
    /// Where it receives what became of a record, as in [`Headers::receipt`](tg_schemas::Headers::receipt).
    pub receipt: Option<String>,
    /// A record that no queue takes is dropped, also where this release has a reader for its kind.
    pub droppable: bool,
}
