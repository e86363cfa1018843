//! Content on its way into the library: whole if it is small, in chunks if it is large. Chunks are read from where the
//! content is, one by one; an upload that ended early is gone on with.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tg_provider_http::{Again, Backoff};
use tokio::time::Instant;

use super::waiting::passes;
use crate::client::{Error, Http, Result};
use crate::content::Content;
use crate::fields::text;
use crate::session::Session;
use crate::terminal::Bar;

/// Bytes of a chunk.
const CHUNK: usize = tg_schemas::limits::CONTENT_PART;
/// Pauses between tries while the server is away. What ends them is the time without an answer.
const BACKOFF: Backoff = Backoff {
    attempts: u32::MAX,
    base: Duration::from_millis(250),
    cap: Duration::from_secs(10),
};
/// How the library begins to say that what arrived is not what was announced.
const OTHER_CONTENT: &str = "content-hash: must be that of the content";

/// A document with its content.
pub(super) struct Upload<'a> {
    /// As the library takes it.
    pub(super) metadata: Value,
    pub(super) content: &'a Content,
    /// SHA-256 of the content in hexadecimal digits.
    pub(super) hash: &'a str,
    /// It takes the place of what the document is now.
    pub(super) replaces: bool,
    /// For people.
    pub(super) name: &'a str,
}

/// How a document went in chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sent {
    /// Chunks that it has.
    chunks: u64,
    /// Those that this command sent; the others were there.
    sent: u64,
}

impl Sent {
    /// For programs.
    pub(super) fn json(self) -> Value {
        json!({"chunks": self.chunks, "sent": self.sent})
    }
}

impl Upload<'_> {
    /// Puts it into the library. `None`: it went whole.
    pub(super) async fn put(self, session: &mut Session, http: &Http) -> Result<Option<Sent>> {
        let Some(content) = self.content.small() else {
            return self.in_chunks(session, http).await.map(Some);
        };
        let operation = match self.replaces {
            true => "update-document",
            false => "add-document",
        };
        let request = json!({
            "operation": operation,
            "document-metadata": self.metadata,
            "content": STANDARD.encode(content),
        });
        http.service("librarian", request).await?;
        Ok(None)
    }

    async fn in_chunks(self, session: &mut Session, http: &Http) -> Result<Sent> {
        let bar = session.out.progress(self.name, Some(self.content.size()));
        let mut line = Line {
            session: &mut *session,
            http,
            name: self.name,
            bar: &bar,
        };
        let begun = match line.ask(&self.begin()).await {
            Ok(reply) => Begun::read(&reply, self.content.size()),
            Err(error) => Err(error),
        };
        let outcome = match &begun {
            Ok(begun) => self.send(&mut line, begun).await,
            Err(_) => Ok(()),
        };
        bar.finish_and_clear();
        let begun = begun?;
        match outcome {
            Ok(()) => Ok(begun.sent()),
            Err(error) => Err(self.ended(session, http, &begun, error).await),
        }
    }

    fn begin(&self) -> Value {
        let mut begin = json!({
            "operation": "begin-upload",
            "document-metadata": self.metadata,
            "total-size": self.content.size(),
            "chunk-size": CHUNK,
            "content-hash": self.hash,
        });
        if self.replaces {
            begin["replace"] = json!(true);
        }
        begin
    }

    /// Sends what is missing, and has it made a document.
    async fn send(&self, line: &mut Line<'_>, begun: &Begun) -> Result<()> {
        line.bar.set_position(begun.there(self.content.size()));
        if begun.missing.len() as u64 != begun.chunks {
            let (there, all) = (begun.chunks - begun.missing.len() as u64, begun.chunks);
            line.tell(&format!("goes on, {there} of {all} chunks are there"));
        }
        for index in &begun.missing {
            let chunk = self.content.piece(index * begun.chunk as u64, begun.chunk);
            let chunk = chunk.map_err(|error| Error::file(self.name, error))?;
            let request = json!({
                "operation": "upload-chunk",
                "upload-id": begun.upload,
                "chunk-index": index,
                "content": STANDARD.encode(&chunk),
            });
            line.ask(&request).await?;
            line.bar.inc(chunk.len() as u64);
        }
        let complete = json!({"operation": "complete-upload", "upload-id": begun.upload});
        line.ask(&complete).await.map(drop)
    }

    /// What is told of an upload that ended early. One that the same command can go on with is left as it is.
    async fn ended(
        &self,
        session: &mut Session,
        http: &Http,
        begun: &Begun,
        error: Error,
    ) -> Error {
        if passes(&error) || matches!(error, Error::Interrupted | Error::Timeout(_)) {
            session.out.talk(format!(
                "{}: what was sent stays for a day; the same command goes on with it",
                self.name
            ));
            return error;
        }
        let abort = json!({"operation": "abort-upload", "upload-id": begun.upload});
        // What matters is why it failed; an upload left behind expires.
        let _ = http.service("librarian", abort).await;
        match error {
            Error::Service { kind, message } if message.starts_with(OTHER_CONTENT) => {
                let message = "it changed while it was sent; nothing of it is kept".to_owned();
                Error::Service { kind, message }
            }
            other => other,
        }
    }
}

/// An upload as the library has it.
#[derive(Debug, PartialEq, Eq)]
struct Begun {
    upload: String,
    /// Bytes of each chunk but the last.
    chunk: usize,
    chunks: u64,
    /// Chunks that are to be sent.
    missing: Vec<u64>,
}

impl Begun {
    /// Reads what the library says. Of one that does not know how to go on, all is missing.
    fn read(reply: &Value, size: u64) -> Result<Self> {
        let upload = text(reply, "upload-id");
        if upload.is_empty() {
            return Err(Error::Protocol("no upload-id".to_owned()));
        }
        // The library may want chunks of another size than we proposed.
        let chunk = reply.get("chunk-size").and_then(Value::as_u64);
        let chunk = chunk
            .and_then(|size| usize::try_from(size).ok())
            .filter(|size| *size > 0)
            .unwrap_or(CHUNK);
        let chunks = size.div_ceil(chunk as u64);
        let list = |key: &str| reply.get(key).and_then(Value::as_array);
        let mut missing: Vec<u64> = match (list("missing-chunks"), list("received-chunks")) {
            (Some(missing), _) => missing
                .iter()
                .map(|index| index.as_u64().filter(|index| *index < chunks))
                .collect::<Option<_>>()
                .ok_or_else(|| Error::Protocol("missing-chunks of another upload".to_owned()))?,
            (None, Some(_)) => Vec::new(),
            (None, None) => (0..chunks).collect(),
        };
        // One that is named twice is sent once, or more would be missing than there is.
        missing.sort_unstable();
        missing.dedup();
        Ok(Self {
            upload,
            chunk,
            chunks,
            missing,
        })
    }

    /// Bytes that need not be sent.
    fn there(&self, size: u64) -> u64 {
        let chunk = self.chunk as u64;
        let of = |index: &u64| chunk.min(size - index * chunk);
        size - self.missing.iter().map(of).sum::<u64>()
    }

    fn sent(&self) -> Sent {
        Sent {
            chunks: self.chunks,
            sent: self.missing.len() as u64,
        }
    }
}

/// The way of an upload to the library, and the line that tells how far it is.
struct Line<'a> {
    session: &'a mut Session,
    http: &'a Http,
    name: &'a str,
    bar: &'a Bar,
}

impl Line<'_> {
    /// Asks until the library answers; a server that goes away is waited for, as long as the session waits for anything.
    /// Each question of an upload may be asked again: it says what is to be, and not what is to be done.
    async fn ask(&mut self, request: &Value) -> Result<Value> {
        let (since, mut failed) = (Instant::now(), 0);
        loop {
            let error = match self.http.service("librarian", request.clone()).await {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            let again = match passes(&error) {
                true => Again::Soon,
                false => Again::Never,
            };
            failed += 1;
            let left = self.session.options.timeout.saturating_sub(since.elapsed());
            let Some(pause) = BACKOFF.pause(again, failed, left, 1.0) else {
                return Err(error);
            };
            if failed == 1 {
                self.tell(&format!("{error}; trying again"));
            }
            self.session.pause(pause).await?;
        }
    }

    fn tell(&mut self, what: &str) {
        let (bar, out, name) = (self.bar, &mut self.session.out, self.name);
        bar.suspend(|| out.talk(format!("{name}: {what}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_what_the_library_says() {
        let read = |reply: Value| Begun::read(&reply, 10);
        let begun = |reply: Value| read(reply).expect("begun");
        let plain = begun(json!({"upload-id": "u", "chunk-size": 4}));
        assert_eq!((plain.chunks, plain.there(10)), (3, 0));
        assert_eq!(plain.missing, [0, 1, 2]);
        let open = json!({"upload-id": "u", "chunk-size": 4, "received-chunks": [0, 2],
            "missing-chunks": [1]});
        let open = begun(open);
        assert_eq!((&*open.missing, open.there(10)), (&[1][..], 6));
        assert_eq!(open.sent().json(), json!({"chunks": 3, "sent": 1}));
        let twice = json!({"upload-id": "u", "chunk-size": 4, "missing-chunks": [2, 0, 2, 2, 0]});
        let twice = begun(twice);
        assert_eq!((&*twice.missing, twice.there(10)), (&[0, 2][..], 4));
        let whole = begun(json!({"upload-id": "u", "chunk-size": 4, "received-chunks": [0, 1, 2]}));
        assert_eq!((whole.missing.len(), whole.there(10)), (0, 10));
        assert_eq!(begun(json!({"upload-id": "u"})).chunk, CHUNK);
        for wrong in [
            json!({}),
            json!({"upload-id": "u", "chunk-size": 4, "missing-chunks": [3]}),
            json!({"upload-id": "u", "chunk-size": 4, "missing-chunks": ["x"]}),
        ] {
            assert!(matches!(read(wrong), Err(Error::Protocol(_))));
        }
    }
}
