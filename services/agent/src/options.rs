//! What whoever starts the service decides: bounds of a run.

use std::path::PathBuf;
use std::time::Duration;

use tg_storage::Durability;

tg_settings::options! {
    /// Options of the agent.
    pub struct Options {
        /// Steps with a tool that a run may take.
        max_iterations: u32 = 10, Whole(1..=100);
        /// Times that the model is asked again after a reply that cannot be read.
        repairs: u32 = 2, Whole(0..=10);
        /// Longest that one tool call may take, in seconds.
        tool_timeout_seconds: u64 = 600, Whole(1..=86_400);
    }
    given {
        /// Directory of the service's files.
        data_dir: PathBuf,
        /// What a committed write survives.
        durability: Durability,
    }
}

impl Options {
    /// Longest that one tool call may take.
    pub(crate) fn tool_timeout(&self) -> Duration {
        Duration::from_secs(self.tool_timeout_seconds)
    }
}
