//! `tg add-library-document`: puts files into the library, as what the user says or the content tells that they are.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::intake::document::{Document, hash};
use super::metadata::{Known, iri_of};
use super::upload::Upload;
use crate::args::{Common, Options};
use crate::client::{Error, Result};
use crate::content::Content;
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg add-library-document`.
#[derive(Debug, Args)]
pub struct AddLibraryDocument {
    #[command(flatten)]
    common: Common,
    /// MIME type of the documents, e.g. text/plain [default: by content and name]
    #[arg(short = 'k', long, value_name = "MIME")]
    kind: Option<String>,
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
            let path = file.display().to_string();
            let content = Content::open(file).map_err(|error| Error::file(file, error))?;
            let hash = hash(session, &path, &content).await?;
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let declared = self.kind.as_deref().unwrap_or_default();
            let looked = Document::look(&name, declared, &content, &hash);
            let looked = session.until_interrupted(looked).await?;
            let looked = looked.map_err(|error| Error::file(file, error))?;
            if let Err(why) = &looked {
                // Who says what it is may know better.
                if self.kind.is_none() {
                    return Err(Error::file(file, why));
                }
                session
                    .out
                    .talk(format!("{path}: {why}: it will not be processed"));
            }
            let title = match (&self.known.name, &looked) {
                (Some(name), _) => name.clone(),
                (None, Ok(document)) => document.title.clone(),
                (None, Err(_)) => name.to_string(),
            };
            let kind = match (&self.kind, &looked) {
                (Some(kind), _) => kind.clone(),
                (None, Ok(document)) => document.mime.clone(),
                (None, Err(_)) => String::new(),
            };
            let id = match &self.identifier {
                Some(id) => id.clone(),
                None => iri_of("doc", &hash),
            };
            let metadata = self.metadata(&id, kind, title.clone());
            let upload = Upload {
                metadata,
                content: &content,
                hash: &hash,
                replaces: false,
                name: &path,
            };
            let put = upload.put(session, &http).await;
            let sent = put.map_err(|error| named(error, &id))?;
            let mut told = json!({"file": path, "id": id, "title": title, "content-hash": hash});
            if let Some(sent) = sent {
                told["upload"] = sent.json();
            }
            added.push(told);
            if !session.out.is_json() {
                let line = format!("{path}: Loaded successfully. It is {id} (\"{title}\").");
                session.out.line(line)?;
            }
        }
        session.out.show(&Value::from(added), String::new)
    }
}

/// A conflict names the document that is there.
fn named(error: Error, id: &str) -> Error {
    match error {
        Error::Service { kind, message } if message.starts_with("Document already exists") => {
            let message = format!("{message}: {id}");
            Error::Service { kind, message }
        }
        other => other,
    }
}

impl AddLibraryDocument {
    fn metadata(&self, id: &str, kind: String, title: String) -> Value {
        json!({
            "id": id,
            "time": chrono::Utc::now().timestamp(),
            "kind": kind,
            "title": title,
            "comments": self.known.description.clone().unwrap_or_default(),
            "metadata": self.known.triples(id),
            "tags": self.tags,
        })
    }
}
