//! `tg show-tenant-config` and `tg set-tenant-config`: what a workspace says of its sessions.

use clap::Args;
use serde_json::{Map, Value, json};
use tg_schemas::operations::{Empty, GetTenantConfig, PutTenantConfig, TenantChange, read};

use crate::args::{Common, Options};
use crate::client::{Error, Result};
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg show-tenant-config`.
#[derive(Debug, Args)]
pub struct ShowTenantConfig {
    #[command(flatten)]
    common: Common,
}

impl Command for ShowTenantConfig {
    const NAME: &'static str = "show-tenant-config";
    const ABOUT: &'static str = "Show the settings of sessions of a workspace";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    fn fails_with_one(&self) -> bool {
        true
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let found = session.http()?.call::<GetTenantConfig>(&Empty {}).await?;
        session.out.json(&json!(found))
    }
}

/// Arguments of `tg set-tenant-config`.
#[derive(Debug, Args)]
pub struct SetTenantConfig {
    #[command(flatten)]
    common: Common,
    /// Setting and value, as in `compact_keep_last_n=3`; `null` takes a setting back
    #[arg(value_name = "KEY=VALUE", required = true)]
    settings: Vec<String>,
}

impl Command for SetTenantConfig {
    const NAME: &'static str = "set-tenant-config";
    const ABOUT: &'static str = "Change the settings of sessions of a workspace";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    fn fails_with_one(&self) -> bool {
        true
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let change = change(&self.settings).map_err(Error::Usage)?;
        let told = session.http()?.call::<PutTenantConfig>(&change).await?;
        session.out.json(&json!(told))
    }
}

/// Reads settings. A value that is not JSON is a text.
fn change(settings: &[String]) -> std::result::Result<TenantChange, String> {
    let pair = |text: &String| {
        let (key, value) = text.split_once('=')?;
        let value = serde_json::from_slice(value.as_bytes()).unwrap_or_else(|_| value.into());
        Some((key.to_owned(), value))
    };
    let pairs: Option<Map<String, Value>> = settings.iter().map(pair).collect();
    read(&pairs.ok_or("a setting is KEY=VALUE")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_json_or_a_text() {
        let texts = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        let told = change(&texts(&["compact_keep_last_n=3", "agent_flow=main"])).unwrap();
        assert_eq!(told.compact_keep_last_n, Some(Some(3)));
        assert_eq!(told.agent_flow, Some(Some("main".to_owned())));
        let back = change(&texts(&["compact_strategy=null"])).unwrap();
        assert_eq!(back.compact_strategy, Some(None));
        for bad in ["x", "speed=1", "compact_keep_last_n=many"] {
            assert!(change(&texts(&[bad])).is_err(), "{bad}");
        }
    }
}
