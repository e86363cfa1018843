//! What the operations of one surface share: its service, its headers and its paging.

use super::declare::{Field, Form};

/// Base of the topic on which agents and sessions are served.
pub const SESSIONS: &str = "sessions";
/// The capability that all of them need.
pub(super) const AGENT: &str = "agent";
/// The release that brings them.
pub(super) const SINCE: &str = "0.1.0";

/// What the id of a request is called in errors of agents that files describe.
pub(super) const REQUEST_ID: &str = "request_id";
/// The same in errors of the agents of a workspace.
pub(super) const OF_WORKSPACE: &str = "requestId";
/// Capabilities for the agents of a workspace.
pub(super) const READS: &str = "agents:read";
pub(super) const WRITES: &str = "agents:write";
/// Capabilities for what a workspace says of its sessions.
pub(super) const CONFIG_READ: &str = "config:read";
pub(super) const CONFIG_WRITE: &str = "config:write";

/// The header that names the user.
pub const USER: Field = Field::new("spass-user-id", "user_id", Form::Text);
/// The header that says how many agents called each other before this request.
pub const DEPTH: Field = Field::new("spass-caller-depth", "caller_depth", Form::Whole);
/// The header that names the request which caused this one.
pub const PARENT: Field = Field::new("spass-parent-request-id", "parent_request_id", Form::Text);
/// The header that names the workspace. The gateway reads it; no operation has a field for it.
pub const TENANT: &str = "spass-tenant";

/// Headers of what asks no agent.
pub(super) const OF_USER: &[Field] = &[USER];
/// Headers of what asks an agent.
pub(super) const OF_TURN: &[Field] = &[USER, DEPTH, PARENT];

/// Headers of a turn of nobody in particular.
pub(super) const OF_NOBODY: &[Field] = &[DEPTH, PARENT];

/// Query of a listing.
pub(super) const PAGE: &[Field] = &[
    Field::new("limit", "limit", Form::Whole),
    Field::new("cursor", "cursor", Form::Text),
];
/// Query of the end of a turn.
pub(super) const ONE_TURN: &[Field] = &[Field::new("message_id", "message_id", Form::Text)];
/// Query of the listing of messages.
pub(super) const PAGE_OF_MESSAGES: &[Field] = &[
    Field::new("limit", "limit", Form::Whole),
    Field::new("cursor", "cursor", Form::Text),
    Field::new("live", "live", Form::Flag),
];
