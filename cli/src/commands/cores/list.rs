//! `tg show-kg-cores`, `tg show-de-cores`, `tg delete-kg-core`, `tg delete-de-core`.

use clap::Args;
use serde_json::{Value, json};

use super::SERVICE;
use crate::args::{Common, Options};
use crate::client::{Error, Result};
use crate::fields::texts;
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg show-kg-cores`.
#[derive(Debug, Args)]
pub struct ShowKgCores {
    #[command(flatten)]
    common: Common,
}

impl Command for ShowKgCores {
    const NAME: &'static str = "show-kg-cores";
    const ABOUT: &'static str = "List the knowledge cores";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        show(session, "list-kg-cores").await
    }
}

/// Arguments of `tg show-de-cores`.
#[derive(Debug, Args)]
pub struct ShowDeCores {
    #[command(flatten)]
    common: Common,
}

impl Command for ShowDeCores {
    const NAME: &'static str = "show-de-cores";
    const ABOUT: &'static str = "List the cores of document embeddings";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        show(session, "list-de-cores").await
    }
}

async fn show(session: &mut Session, operation: &str) -> Result<()> {
    let request = json!({"operation": operation});
    let reply = session.http()?.service(SERVICE, request).await?;
    if reply.get("ids").is_none() {
        return Err(Error::Protocol("no ids in the reply".to_owned()));
    }
    let ids = texts(&reply, "ids");
    session
        .out
        .show(&Value::from(ids.clone()), || match ids.as_slice() {
            [] => "No cores.".to_owned(),
            ids => ids.join("\n"),
        })
}

/// Arguments of `tg delete-kg-core`.
#[derive(Debug, Args)]
pub struct DeleteKgCore {
    #[command(flatten)]
    common: Common,
    /// Core
    #[arg(long, visible_alias = "identifier", value_name = "ID")]
    id: String,
}

impl Command for DeleteKgCore {
    const NAME: &'static str = "delete-kg-core";
    const ABOUT: &'static str = "Delete a knowledge core, and the document embeddings of its name";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        delete(session, "delete-kg-core", &self.id).await
    }
}

/// Arguments of `tg delete-de-core`.
#[derive(Debug, Args)]
pub struct DeleteDeCore {
    #[command(flatten)]
    common: Common,
    /// Core
    #[arg(long, visible_alias = "identifier", value_name = "ID")]
    id: String,
}

impl Command for DeleteDeCore {
    const NAME: &'static str = "delete-de-core";
    const ABOUT: &'static str = "Delete a core of document embeddings";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        delete(session, "delete-de-core", &self.id).await
    }
}

async fn delete(session: &mut Session, operation: &str, id: &str) -> Result<()> {
    let request = json!({"operation": operation, "id": id});
    session.http()?.service(SERVICE, request).await?;
    let done = json!({"id": id, "deleted": true});
    session.out.show(&done, String::new)
}
