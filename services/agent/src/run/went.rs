//! What a subagent's step gives to its parent.

use tg_schemas::msg::{AgentResponse, AgentRun};
use tokio::sync::mpsc;

use crate::engine::decision::Finding;

/// Passes the parts of a subagent's run to its parent.
pub(super) type Relay = mpsc::Sender<Vec<AgentResponse>>;

/// What came of a step.
#[derive(Debug)]
pub(super) enum Went {
    /// There is another.
    On(Box<AgentRun>),
    /// The run is over.
    Over(Box<Finding>),
}
