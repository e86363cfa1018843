//! What whoever starts the service decides: how long sessions with MCP servers are kept, and which addresses are asked.

use std::time::Duration;

use tg_provider_http::{Reach, address};
use tg_settings::SettingError;

use crate::programs::Programs;

tg_settings::options! {
    /// Options of tool calls.
    pub struct Options {
        /// Sessions with MCP servers that are kept; the one not used for longest goes first.
        sessions: u64 = 64, Whole(1..=100_000);
        /// How long a session that is not used is kept, in seconds.
        session_idle_seconds: u64 = 300, Whole(1..=86_400);
        /// Whether servers of tools may be at private addresses: of this machine, of local networks. Without users (`auth = none`) they
        /// may unless this says otherwise. Where they may not, names count by what they resolve to, and no proxy is asked.
        /// Link-local addresses and those of a cloud's metadata are never asked.
        private_addresses: bool = false;
        /// Programs that are MCP servers and speak over their standard input and output: a JSON object of objects with `command`,
        /// `args`, `env` and `workspaces` by name, or `file:PATH` of one (see [tools.md](tools.md#programs)). Rows of type `mcp`
        /// name them. Empty: none.
        mcp_servers: Option<Programs> = None;
        /// Processes of such programs at once.
        mcp_processes: usize = 16, Whole(1..=1_000);
        /// Where `wikipedia_search` and `wikipedia_summary` ask: a Wikipedia of any language, or what speaks as it does.
        wikipedia_url: String = "https://en.wikipedia.org".to_owned();
    }
}

impl Options {
    /// All mistakes that one setting alone does not show.
    pub fn faults(&self) -> Vec<SettingError> {
        let url = address("wikipedia_url", &self.wikipedia_url);
        let programs = self.mcp_servers.iter().flat_map(Programs::faults);
        url.err().into_iter().chain(programs).collect()
    }

    /// Which addresses servers of tools may have.
    pub(crate) fn reach(&self) -> Reach {
        match self.private_addresses {
            true => Reach::BeyondLink,
            false => Reach::Public,
        }
    }

    /// How long a session that is not used is kept.
    pub(crate) fn idle(&self) -> Duration {
        Duration::from_secs(self.session_idle_seconds)
    }
}
