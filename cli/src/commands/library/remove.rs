//! `tg remove-library-document`. Silent on stdout when it worked; on stderr it says what is gone.

use clap::Args;
use serde_json::json;

use crate::args::{Common, Options, subject};
use crate::client::Result;
use crate::fields::text;
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
        let (http, id) = (session.http()?, self.document.id());
        let request = json!({"operation": "get-document-metadata", "document-id": id});
        // Who may remove need not be allowed to look; what is not there the removal itself says.
        let known = http.service("librarian", request).await.ok();
        let title = known.map(|reply| text(&reply["document-metadata"], "title"));
        let request = json!({"operation": "remove-document", "document-id": id});
        http.service("librarian", request).await?;
        session.out.talk(match title.unwrap_or_default().as_str() {
            "" => format!("Removed {id}."),
            title => format!("Removed \"{title}\" ({id})."),
        });
        let done = json!({"id": id, "removed": true});
        session.out.show(&done, String::new)
    }
}
