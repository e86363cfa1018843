//! `tg show-config`: the whole configuration of a workspace.

use clap::Args;
use serde_json::json;

use crate::args::{Common, Options};
use crate::client::{Error, Result};
use crate::fields::text;
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg show-config`.
#[derive(Debug, Args)]
pub struct ShowConfig {
    #[command(flatten)]
    common: Common,
}

impl Command for ShowConfig {
    const NAME: &'static str = "show-config";
    const ABOUT: &'static str = "Print the whole configuration and its version";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let request = json!({"operation": "config"});
        let reply = session.http()?.all("config", request).await?;
        let Some(config) = reply.get("config") else {
            return Err(Error::Protocol("no config in the reply".to_owned()));
        };
        if session.out.is_json() {
            return session
                .out
                .json(&json!({"version": reply.get("version"), "config": config}));
        }
        session
            .out
            .line(format!("Version: {}", text(&reply, "version")))?;
        session.out.json(config)
    }
}
