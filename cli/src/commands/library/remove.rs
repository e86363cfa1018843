//! `tg remove-library-document`. Silent on stdout when it worked.

use clap::Args;
use serde_json::json;

use crate::args::{Common, Options, subject};
use crate::client::Result;
use crate::registry::Command;
use crate::session::Session;

subject!(
    /// The document that goes.
    DocumentId,
    "Id of the document" as "IRI",
    long = "identifier",
    visible_alias = "id"
);

/// Arguments of `tg remove-library-document`.
#[derive(Debug, Args)]
pub struct RemoveLibraryDocument {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    document: DocumentId,
}

impl Command for RemoveLibraryDocument {
    const NAME: &'static str = "remove-library-document";
    const ABOUT: &'static str = "Remove a document and what was made from it";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let request = json!({"operation": "remove-document", "document-id": self.document.id()});
        session.http()?.service("librarian", request).await?;
        let done = json!({"id": self.document.id(), "removed": true});
        session.out.show(&done, String::new)
    }
}
