//! What an answer leaves behind: its texts with the librarian, the entries of its trace on the flow's triple store.
//! Both are records, so that what a trace links to is there even if the librarian was away (an **outbox**).
//!
//! In interop mode the library may be a foreign one, which is asked; one that fails costs a link, never an answer.

use std::time::Duration;

use base64::Engine;
use tg_mesh::{Cx, Mode};
use tg_provenance::Event;
use tg_schemas::Error;
use tg_schemas::msg::{DocumentMetadata, LibraryText, LibraryTexts, Metadata, Triples};
use tg_schemas::processors::shared;

use crate::library::{BASE64, Library};

/// Longest that a foreign library may take for one text.
const LIBRARY: Duration = Duration::from_secs(10);

/// A text to store; none if it is empty.
#[derive(Debug)]
pub struct Text<'a> {
    /// Id in the trace.
    pub id: String,
    /// Title in the library.
    pub title: String,
    /// The text.
    pub text: &'a str,
}

/// Writes the trace of one answer.
pub struct TraceWriter {
    cx: Cx,
    collection: String,
}

impl TraceWriter {
    /// Writes for a collection, as long as the message is worked on.
    pub fn new(cx: &Cx, collection: &str) -> Self {
        Self {
            cx: cx.clone(),
            collection: collection.to_owned(),
        }
    }

    /// Writes for a collection also when nobody waits for the answer any more.
    pub fn outliving(cx: &Cx, collection: &str) -> Self {
        let mut writer = Self::new(cx, collection);
        writer.cx.cancel = cx.mesh.shutdown().child_token();
        writer
    }

    /// Whether the flow has a library, so that a link to a text can be promised.
    pub fn has_library(&self) -> bool {
        self.cx.has(shared::LIBRARIAN)
    }

    /// Stores texts under ids of the trace, and the entries that link to them: which ones follows from which texts
    /// are there. Durable when `Ok`.
    ///
    /// # Errors
    /// When a record cannot be written.
    pub async fn store<const N: usize>(
        &self,
        texts: [Text<'_>; N],
        entries: impl FnOnce([bool; N]) -> Vec<Event>,
    ) -> Result<(), Error> {
        let library = self.has_library();
        let wanted = texts
            .each_ref()
            .map(|text| library && !text.text.is_empty());
        if !wanted.contains(&true) {
            return self.publish(&entries(wanted)).await;
        }
        if self.cx.mesh.bus().mode() == Mode::Native {
            let events = entries(wanted);
            let (sent, published) = futures::join!(self.send(&texts), self.publish(&events));
            return sent.and(published);
        }
        let mut stored = [false; N];
        for (text, stored) in texts.iter().zip(&mut stored) {
            *stored = self.save(text).await;
        }
        self.publish(&entries(stored)).await
    }

    /// Stores one text. `true` once it is there, or safely on its way.
    pub async fn save(&self, text: &Text<'_>) -> bool {
        if text.text.is_empty() || !self.has_library() {
            return false;
        }
        let stored = match self.cx.mesh.bus().mode() {
            Mode::Native => self.send(std::slice::from_ref(text)).await,
            Mode::Interop => self.add_document(text).await,
        };
        match stored {
            Ok(()) => true,
            Err(error) => {
                metrics::counter!("tg_trace_texts_lost_total").increment(1);
                tracing::warn!(%error, "a text of a trace was not stored");
                false
            }
        }
    }

    /// Gives texts to the library of this workspace as one record.
    async fn send(&self, texts: &[Text<'_>]) -> Result<(), Error> {
        let time = chrono::Utc::now().timestamp();
        let texts = texts.iter().filter(|text| !text.text.is_empty());
        let texts = texts.map(|text| LibraryText {
            id: text.id.clone(),
            title: text.title.clone(),
            time,
            text: text.text.to_owned(),
        });
        let record = LibraryTexts {
            workspace: self.cx.workspace().to_owned(),
            texts: texts.collect(),
        };
        self.cx.record(shared::LIBRARY_TEXTS, &record).await
    }

    /// The one operation for this that a foreign librarian has, too.
    async fn add_document(&self, text: &Text<'_>) -> Result<(), Error> {
        let document = DocumentMetadata {
            id: text.id.clone(),
            time: chrono::Utc::now().timestamp(),
            kind: "text/plain".to_owned(),
            title: text.title.clone(),
            document_type: "answer".to_owned(),
            ..DocumentMetadata::default()
        };
        let library = Library::of_flow(&self.cx).patient(LIBRARY);
        library.add(document, BASE64.encode(text.text)).await
    }

    /// Writes entries of the trace as one record; durable when `Ok`.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub async fn publish(&self, events: &[Event]) -> Result<(), Error> {
        let Some(first) = events.first() else {
            return Ok(());
        };
        if !self.cx.has(shared::EXPLAINABILITY) {
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
        self.cx.record(shared::EXPLAINABILITY, &record).await
    }
}

/// Title of a stored answer: `what` names who answered.
pub fn answer_title(what: &str, question: &str) -> String {
    let start: String = question.chars().take(50).collect();
    format!("{what} Answer: {start}...")
}
