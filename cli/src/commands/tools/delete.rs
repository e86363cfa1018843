//! `tg delete-tool`.

use clap::Args;
use serde_json::json;

use crate::args::{Common, Options, subject};
use crate::client::{Error, Result};
use crate::commands::config::{delete_item, get_item};
use crate::registry::Command;
use crate::session::Session;

subject!(
    /// The tool that goes.
    ToolId,
    "Id of the tool",
    long = "id"
);

/// Arguments of `tg delete-tool`.
#[derive(Debug, Args)]
pub struct DeleteTool {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    tool: ToolId,
}

impl Command for DeleteTool {
    const NAME: &'static str = "delete-tool";
    const ABOUT: &'static str = "Remove a tool";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let http = session.http()?;
        let id = self.tool.id();
        if get_item(&http, "tool", id).await?.is_none() {
            return Err(Error::Missing(format!(
                "Tool configuration for '{id}' not found."
            )));
        }
        delete_item(&http, "tool", id).await?;
        session.out.show(&json!({"id": id, "deleted": true}), || {
            format!("Tool '{id}' deleted successfully.")
        })
    }
}
