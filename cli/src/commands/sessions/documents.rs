//! `tg export-session` and `tg import-session`: sessions as documents.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use tg_schemas::operations::{
    ExportSession as Export, ImportSession as Import, ImportedSession, OneSession, SessionDocument,
};

use super::agents::Agent;
use super::{Which, Whose};
use crate::args::{Common, Options};
use crate::client::{Error, Result};
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg export-session`.
#[derive(Debug, Args)]
pub struct ExportSession {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    which: Which,
}

impl Command for ExportSession {
    const NAME: &'static str = "export-session";
    const ABOUT: &'static str = "Write a session as a JSON document";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let asked = OneSession::from(&self.which);
        let document = session.http()?.call::<Export>(&asked).await?;
        session.out.json(&json!(document))
    }
}

/// Arguments of `tg import-session`.
#[derive(Debug, Args)]
pub struct ImportSession {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    agent: Agent,
    #[command(flatten)]
    whose: Whose,
    /// File with the document
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
}

impl Command for ImportSession {
    const NAME: &'static str = "import-session";
    const ABOUT: &'static str = "Take a session in that was written as a document";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let unread = |error: String| Error::Usage(format!("{}: {error}", self.file.display()));
        let bytes = std::fs::read(&self.file).map_err(|error| unread(error.to_string()))?;
        let document: SessionDocument =
            serde_json::from_slice(&bytes).map_err(|error| unread(error.to_string()))?;
        let asked = ImportedSession {
            name: self.agent.id().to_owned(),
            user_id: self.whose.user_id.clone(),
            document,
        };
        let made = session.http()?.call::<Import>(&asked).await?;
        session.out.json(&json!(made))
    }
}
