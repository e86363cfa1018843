//! What a subagent's step gives to its parent.

use tg_schemas::msg::{AgentResponse, AgentRun};
use tokio::sync::mpsc;

use crate::engine::decision::Finding;

/// Where the parts go that a subagent's run is told by.
pub(super) type Relay = mpsc::Sender<Vec<AgentResponse>>;

/// What came of a step.
#[derive(Debug)]
pub(super) enum Went {
    /// There is another.
    On(Box<AgentRun>),
    /// The run is over.
    Over(Box<Finding>),
}
