//! `tg add-library-document`: puts files into the library; large ones go in parts.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use serde_json::{Value, json};

use super::metadata::{Known, iri};
use crate::args::{Common, Options};
use crate::client::{Error, Http, Result};
use crate::fields::text;
use crate::files::read_bytes;
use crate::registry::Command;
use crate::session::Session;

/// From this size on a document goes in parts.
const WHOLE: usize = 2 << 20;
/// The size of a part.
const PART: usize = 3 << 20;

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
        if content.len() >= WHOLE {
            upload(session, http, metadata, &content, file).await?;
        } else {
            let request = json!({
                "operation": "add-document",
                "document-metadata": metadata,
                "content": STANDARD.encode(&content),
            });
            http.service("librarian", request).await?;
        }
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

async fn upload(
    session: &Session,
    http: &Http,
    metadata: Value,
    content: &[u8],
    file: &Path,
) -> Result<()> {
    let begin = json!({
        "operation": "begin-upload",
        "document-metadata": metadata,
        "total-size": content.len(),
        "chunk-size": PART,
    });
    let begun = http.service("librarian", begin).await?;
    let upload = text(&begun, "upload-id");
    if upload.is_empty() {
        return Err(Error::Protocol("no upload-id".to_owned()));
    }
    // The library may want parts of another size than we proposed.
    let part = begun.get("chunk-size").and_then(Value::as_u64);
    let part = part
        .and_then(|size| usize::try_from(size).ok())
        .filter(|size| *size > 0)
        .unwrap_or(PART);
    let progress = session
        .out
        .progress(&file.display().to_string(), Some(content.len() as u64));
    let outcome = async {
        for (index, chunk) in content.chunks(part).enumerate() {
            let request = json!({
                "operation": "upload-chunk",
                "upload-id": upload,
                "chunk-index": index,
                "content": STANDARD.encode(chunk),
            });
            http.service("librarian", request).await?;
            progress.inc(chunk.len() as u64);
        }
        let complete = json!({"operation": "complete-upload", "upload-id": upload});
        http.service("librarian", complete).await
    }
    .await;
    progress.finish_and_clear();
    if let Err(error) = outcome {
        let abort = json!({"operation": "abort-upload", "upload-id": upload});
        // What matters is why it failed; an upload left behind expires.
        let _ = http.service("librarian", abort).await;
        return Err(error);
    }
    Ok(())
}
