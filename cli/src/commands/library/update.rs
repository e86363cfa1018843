//! `tg update-document`: a document of the library has another content from now on, and is processed again; what was made of the
//! former goes with what changed.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::intake::Add;
use crate::args::{InCollection, Options};
use crate::client::Result;
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg update-document`.
#[derive(Debug, Args)]
pub struct UpdateDocument {
    #[command(flatten)]
    into: InCollection,
    /// Id of the document
    #[arg(short = 'd', long, visible_alias = "id", value_name = "IRI")]
    document_id: String,
    /// Wait until it is processed
    #[arg(long)]
    wait: bool,
    /// MIME type or ending, where content and name do not say
    #[arg(short = 'k', long, value_name = "MIME")]
    kind: Option<String>,
    /// Title [default: what the document calls itself, else its file's name]
    #[arg(long, visible_alias = "name")]
    title: Option<String>,
    /// File or http(s) address of the new content
    #[arg(value_name = "FILE|URL")]
    content: PathBuf,
}

impl Command for UpdateDocument {
    const NAME: &'static str = "update-document";
    const ABOUT: &'static str = "Give a document another content and process it again";

    fn options(&self) -> Options {
        Options::from(&self.into)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        // One that is not there is a slip of the pen, not a new document.
        let known = json!({"operation": "get-document-metadata", "document-id": self.document_id});
        session.http()?.service("librarian", known).await?;
        let add = Add {
            into: self.into,
            wait: self.wait,
            watch: false,
            delete: false,
            kind: self.kind,
            title: self.title,
            id: Some(self.document_id),
            tags: Vec::new(),
            paths: vec![self.content],
        };
        add.run(session).await
    }
}
