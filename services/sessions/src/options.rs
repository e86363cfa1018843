//! What the operator decides: where agents are described, and how many turns there may be at once.

use std::path::PathBuf;

use tg_collections::Quota;
use tg_provider_http::Credentials;
use tg_schemas::operations::{NewLlmService, TenantSettings};
use tg_settings::SettingError;
use tg_storage::Durability;

use crate::engine::chat::{self, ChatDefaults, Named};

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
        /// System prompt of an agent of a workspace that has no instructions of its own. Empty: a built-in text.
        system_prompt: String = String::new();
        /// Who answers for agents of workspaces that name no LLM service: `openai`, `openrouter` or `ollama`. Empty: the provider of the flow.
        chat_provider: String = String::new();
        /// The model that answers for them. Empty: that of the flow.
        chat_model: String = String::new();
        /// Address of the provider, up to and including the version. Empty: its usual one.
        chat_url: String = String::new();
        /// Where the key of the provider is, as `env:NAME` or `file:PATH`; `llm.credentials` has to list it, too.
        chat_credential: String = String::new();
        /// Whether the model of the flow answers for them where no `sessions.chat_model` is set. If not, their messages are refused
        /// (`503 chat_disabled`).
        chat_of_flow: bool = true;
        /// Most tokens of a reply of this model, and of an LLM service that does not say how many.
        chat_max_tokens: u32 = 1_024, Whole(1..=8_192);
        /// Passages of each collection for an agent of a workspace that does not say how many.
        chat_passages: u32 = 6, Whole(1..=64);
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
        /// Euros for a dollar; 0: not set.
        usd_eur_rate: f64,
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

    /// What is wrong with them that no single one shows.
    pub fn faults(&self) -> Vec<SettingError> {
        let fault = |(setting, reason): (&str, String)| SettingError::new(setting, reason);
        self.chat_service().err().map(fault).into_iter().collect()
    }

    fn chat_service(&self) -> Result<Option<NewLlmService>, (&'static str, String)> {
        chat::service(Named {
            provider: &self.chat_provider,
            model: &self.chat_model,
            url: &self.chat_url,
            credential: &self.chat_credential,
        })
    }

    /// What agents of workspaces go by that say nothing themselves.
    pub(crate) fn chat(&self) -> ChatDefaults {
        ChatDefaults {
            prompt: self.system_prompt.clone(),
            passages: self.chat_passages.into(),
            max_tokens: self.chat_max_tokens.into(),
            model: self.chat_model.trim().to_owned(),
            // With one that is wrong no process starts.
            service: self.chat_service().unwrap_or_default(),
            of_flow: self.chat_of_flow,
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
