//! Content on its way into the library: whole if it is small, in parts if it is large.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::client::{Error, Http, Result};
use crate::fields::text;
use crate::session::Session;

/// From this size on a document goes in parts.
const WHOLE: usize = 2 << 20;
/// The size of a part.
const PART: usize = tg_schemas::limits::CONTENT_PART;

/// A document with its content.
pub(super) struct Upload<'a> {
    /// As the library takes it.
    pub(super) metadata: Value,
    pub(super) content: &'a [u8],
    /// It takes the place of what the document is now.
    pub(super) replaces: bool,
    /// For people.
    pub(super) name: &'a str,
}

impl Upload<'_> {
    /// Puts it into the library.
    pub(super) async fn put(self, session: &Session, http: &Http) -> Result<()> {
        if self.content.len() >= WHOLE {
            return self.in_parts(session, http).await;
        }
        let operation = match self.replaces {
            true => "update-document",
            false => "add-document",
        };
        let request = json!({
            "operation": operation,
            "document-metadata": self.metadata,
            "content": STANDARD.encode(self.content),
        });
        http.service("librarian", request).await.map(drop)
    }

    async fn in_parts(self, session: &Session, http: &Http) -> Result<()> {
        let mut begin = json!({
            "operation": "begin-upload",
            "document-metadata": self.metadata,
            "total-size": self.content.len(),
            "chunk-size": PART,
        });
        if self.replaces {
            begin["replace"] = json!(true);
        }
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
        let size = self.content.len() as u64;
        let progress = session.out.progress(self.name, Some(size));
        let outcome = async {
            for (index, chunk) in self.content.chunks(part).enumerate() {
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
}
