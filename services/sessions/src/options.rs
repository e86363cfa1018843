//! What the operator decides: where agents are described, and how many turns there may be at once.

use std::path::PathBuf;

use tg_collections::Quota;
use tg_provider_http::Credentials;
use tg_schemas::operations::TenantSettings;
use tg_storage::Durability;

tg_settings::options! {
    /// Options of agents over time.
    pub struct Options {
        /// Directory of the files that describe agents, one `*.yaml` for each, read at the start. Empty: `agents` below the
        /// data directory. Where there is no such directory, the agents that come with the program are there.
        agents_dir: PathBuf = PathBuf::new();
        /// Models that agents may ask for, separated by commas. Empty: all.
        allowed_models: String = String::new();
        /// File of workspaces: what the operator says of the sessions of each. Empty: `tenants.yaml` below the data directory,
        /// where there is one.
        tenants_file: PathBuf = PathBuf::new();
        /// Messages that stay as they are when a session is shortened, where a workspace says nothing else.
        compact_keep: u32 = 10, Whole(0..=200);
        /// Model that sums sessions up, where a workspace says nothing else. Empty: that of the flow.
        summary_model: String = String::new();
        /// What an agent of a workspace is told that has no instructions of its own. Empty: a text of ours.
        system_prompt: String = String::new();
        /// Turns in progress at once in a workspace, and as many again of each depth of nesting; more wait.
        max_concurrent: usize = 64, Whole(1..=10_000);
        /// Sessions and conversations of one workspace at most. One that fills its model and is continued in another is never refused.
        workspace_sessions: u64 = 1_000_000, Whole(1..=1 << 40);
        /// Messages, agents and LLM services of one workspace at most, in MiB of their texts. The answer of a turn that has begun is always kept.
        workspace_mb: u64 = 10_240, Whole(1..=1 << 30);
        /// Days whose trail of turns is kept. 0: of all days.
        trail_days: u32 = 365, Whole(0..=36_500);
    }
    given {
        /// Credentials that LLM services may name.
        credentials: Option<Credentials>,
        /// Directory of the service's files.
        data_dir: PathBuf,
        /// What a committed write survives.
        durability: Durability,
    }
}

impl Options {
    /// What a workspace may keep.
    pub(crate) fn quota(&self) -> Quota {
        Quota {
            items: self.workspace_sessions,
            bytes: self.workspace_mb << 20,
        }
    }

    /// The models that agents may ask for; none: all.
    pub(crate) fn models(&self) -> Vec<String> {
        let names = self.allowed_models.split(',').map(str::trim);
        let names = names.filter(|name| !name.is_empty());
        names.map(str::to_owned).collect()
    }

    /// Where the file of workspaces is.
    pub(crate) fn tenants(&self) -> PathBuf {
        match self.tenants_file.as_os_str().is_empty() {
            true => self.data_dir.join("tenants.yaml"),
            false => self.tenants_file.clone(),
        }
    }

    /// What the process says of sessions.
    pub(crate) fn settings(&self) -> TenantSettings {
        let model = Some(self.summary_model.trim()).filter(|model| !model.is_empty());
        TenantSettings {
            compact_keep_last_n: Some(self.compact_keep.into()),
            compact_summary_model: model.map(str::to_owned),
            ..TenantSettings::default()
        }
    }

    /// Where the files of agents are.
    pub(crate) fn agents(&self) -> PathBuf {
        match self.agents_dir.as_os_str().is_empty() {
            true => self.data_dir.join("agents"),
            false => self.agents_dir.clone(),
        }
    }
}
