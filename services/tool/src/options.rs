//! What whoever starts the service decides: how long sessions with MCP servers are kept.

use std::time::Duration;

tg_settings::options! {
    /// Options of tool calls.
    pub struct Options {
        /// Sessions with MCP servers that are kept; the one not used for longest goes first.
        sessions: u64 = 64, Whole(1..=100_000);
        /// How long a session that is not used is kept, in seconds.
        session_idle_seconds: u64 = 300, Whole(1..=86_400);
    }
}

impl Options {
    /// How long a session that is not used is kept.
    pub(crate) fn idle(&self) -> Duration {
        Duration::from_secs(self.session_idle_seconds)
    }
}
