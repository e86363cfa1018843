//! Settings of the agent.

use std::time::Duration;

/// Bounds of a run.
#[derive(Debug, Clone)]
pub struct AgentSettings {
    /// Steps with a tool that a run may take.
    pub max_iterations: u32,
    /// Times the model is asked again after a reply that cannot be read.
    pub repairs: u32,
    /// Longest that one tool call may take.
    pub tool_timeout: Duration,
}

impl Default for AgentSettings {
    fn default() -> Self {
        Self {
            max_iterations: 10,
            repairs: 2,
            tool_timeout: Duration::from_secs(600),
        }
    }
}
