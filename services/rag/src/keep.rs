//! Stores what an answer leaves behind: its text with the librarian, its trace on the flow's triple store. Both are
//! records; in interop mode the library may be a foreign one, which is asked. A text that cannot be stored costs a
//! link, never an answer.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tg_mesh::{Cx, Deadline, Mode};
use tg_provenance::Event;
use tg_schemas::msg::{
    DocumentMetadata, LibrarianRequest, LibrarianResponse, LibraryText, Metadata, Triples,
};
use tg_schemas::{Error, ErrorCode};

/// Longest that the library may take for one text.
const LIBRARY: Duration = Duration::from_secs(10);
const LIBRARIAN: &str = "librarian-request";
const TRIPLES: &str = "explainability";

/// See the module.
pub struct Keeper {
    cx: Cx,
    collection: String,
}

impl Keeper {
    /// Keeps what belongs to a collection.
    pub fn new(cx: &Cx, collection: &str) -> Self {
        Self {
            cx: cx.clone(),
            collection: collection.to_owned(),
        }
    }

    /// Stores a text under an id of the trace. `true` once it is there, or safely on its way.
    pub async fn save(&self, id: &str, title: String, text: &str) -> bool {
        if text.is_empty() || !self.cx.has(LIBRARIAN) {
            return false;
        }
        let stored = match self.cx.mesh.bus().mode() {
            Mode::Native => self.send_text(id, title, text).await,
            Mode::Interop => self.add_document(id, title, text).await,
        };
        match stored {
            Ok(()) => true,
            // The same question under the same id has stored it before.
            Err(error) if error.code() == ErrorCode::Conflict => true,
            Err(error) => {
                metrics::counter!("tg_rag_texts_lost_total").increment(1);
                tracing::warn!(%error, "the text of an answer was not stored");
                false
            }
        }
    }

    async fn send_text(&self, id: &str, title: String, text: &str) -> Result<(), Error> {
        let text = LibraryText {
            id: id.to_owned(),
            title,
            time: chrono::Utc::now().timestamp(),
            text: text.to_owned(),
        };
        self.cx.store_texts(vec![text]).await
    }

    async fn add_document(&self, id: &str, title: String, text: &str) -> Result<(), Error> {
        let request = LibrarianRequest {
            operation: "add-document".to_owned(),
            document_id: id.to_owned(),
            document_metadata: Some(DocumentMetadata {
                id: id.to_owned(),
                time: chrono::Utc::now().timestamp(),
                kind: "text/plain".to_owned(),
                title,
                document_type: "answer".to_owned(),
                ..DocumentMetadata::default()
            }),
            content: STANDARD.encode(text),
            ..LibrarianRequest::default()
        };
        let mut cx = self.cx.clone();
        cx.deadline = cx.deadline.min(Deadline::after(LIBRARY));
        let answer = cx.ask::<_, LibrarianResponse>(LIBRARIAN, &request)?;
        answer.last().await.map(drop)
    }

    /// Writes entries of the trace as one record; durable when `Ok`.
    pub async fn publish(&self, events: &[Event]) -> Result<(), Error> {
        let Some(first) = events.first() else {
            return Ok(());
        };
        if !self.cx.has(TRIPLES) {
            return Ok(());
        }
        let record = Triples {
            metadata: Some(Metadata {
                id: first.id.clone(),
                root: String::new(),
                collection: self.collection.clone(),
            }),
            triples: events
                .iter()
                .flat_map(|event| event.triples.clone())
                .collect(),
        };
        self.cx.record(TRIPLES, &record).await
    }
}

/// Title of a stored answer: `what` names who answered.
pub fn answer_title(what: &str, question: &str) -> String {
    let start: String = question.chars().take(50).collect();
    format!("{what} Answer: {start}...")
}
