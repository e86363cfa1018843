//! `tg add-library-document`: puts files into the library, as the user says what they are.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use super::metadata::{Known, iri};
use super::upload::Upload;
use crate::args::{Common, Options};
use crate::client::{Error, Http, Result};
use crate::files::read_bytes;
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg add-library-document`.
#[derive(Debug, Args)]
pub struct AddLibraryDocument {
    #[command(flatten)]
    common: Common,
    /// MIME type of the documents, e.g. text/plain
    #[arg(short = 'k', long, value_name = "MIME")]
    kind: String,
    /// Id of the document [default: made from its content]
    #[arg(long, visible_alias = "id", value_name = "IRI")]
    identifier: Option<String>,
    /// Tags, separated by commas
    #[arg(long, value_delimiter = ',')]
    tags: Vec<String>,
    #[command(flatten)]
    known: Known,
    /// Files to add
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

impl Command for AddLibraryDocument {
    const NAME: &'static str = "add-library-document";
    const ABOUT: &'static str = "Put documents into the library";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        if self.identifier.is_some() && self.files.len() > 1 {
            return Err(Error::Usage("--identifier is for one file only".to_owned()));
        }
        let http = session.http()?;
        let mut added = Vec::new();
        for file in &self.files {
            let id = self.add(session, &http, file).await?;
            added.push(json!({"file": file.display().to_string(), "id": id}));
            if !session.out.is_json() {
                session
                    .out
                    .line(format!("{}: Loaded successfully.", file.display()))?;
            }
        }
        session.out.show(&Value::from(added), String::new)
    }
}

impl AddLibraryDocument {
    async fn add(&self, session: &Session, http: &Http, file: &Path) -> Result<String> {
        let content = read_bytes(file)?;
        let id = match &self.identifier {
            Some(id) => id.clone(),
            None => iri("doc", &content),
        };
        let metadata = self.metadata(&id);
        let upload = Upload {
            metadata,
            content: &content,
            replaces: false,
            name: &file.display().to_string(),
        };
        upload.put(session, http).await?;
        Ok(id)
    }

    fn metadata(&self, id: &str) -> Value {
        json!({
            "id": id,
            "time": chrono::Utc::now().timestamp(),
            "kind": self.kind,
            "title": self.known.name.clone().unwrap_or_default(),
            "comments": self.known.description.clone().unwrap_or_default(),
            "metadata": self.known.triples(id),
            "tags": self.tags,
        })
    }
}
