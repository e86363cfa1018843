//! Stores what a step leaves behind: texts with the librarian, trace entries on the flow's triple store. Both are
//! records, so that what a trace links to is there even if the librarian was away.
//!
//! In interop mode the library may be a foreign one, which is asked; one that fails costs a link, never an answer.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tg_mesh::{Cx, Deadline, Mode};
use tg_provenance::Event;
use tg_schemas::Error;
use tg_schemas::msg::{
    DocumentMetadata, LibrarianRequest, LibrarianResponse, LibraryText, Metadata, Triples,
};

/// Longest that the library may take for one text.
const LIBRARY: Duration = Duration::from_secs(10);
const LIBRARIAN: &str = "librarian-request";
const TRIPLES: &str = "explainability";

/// A text to store; none if it is empty.
pub(super) struct Text<'a> {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) text: &'a str,
}

/// See the module.
pub(super) struct Keeper {
    /// Outlives the asker's patience: what happened is stored also when nobody waits.
    cx: Cx,
    collection: String,
}

impl Keeper {
    pub(super) fn new(cx: &Cx, collection: &str) -> Self {
        let mut own = cx.clone();
        own.cancel = cx.mesh.shutdown().child_token();
        Self {
            cx: own,
            collection: collection.to_owned(),
        }
    }

    /// Whether the flow has a library, so that a link to a text can be promised.
    pub(super) fn has_library(&self) -> bool {
        self.cx.has(LIBRARIAN)
    }

    /// Stores texts under ids of the trace, and the entries that link to them: which ones follows from which texts
    /// are there. Durable when `Ok`.
    pub(super) async fn store<const N: usize>(
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
            let (sent, published) = tokio::join!(self.send_texts(texts), self.publish(&events));
            return sent.and(published);
        }
        let stored = match self.add_documents(texts).await {
            // What a step that is taken up again has stored before is there too.
            Ok(()) => wanted,
            Err(error) => {
                metrics::counter!("tg_agent_texts_lost_total").increment(1);
                tracing::warn!(%error, "texts of a trace were not stored");
                [false; N]
            }
        };
        self.publish(&entries(stored)).await
    }

    async fn send_texts<const N: usize>(&self, texts: [Text<'_>; N]) -> Result<(), Error> {
        let time = chrono::Utc::now().timestamp();
        let texts = texts.into_iter().filter(|text| !text.text.is_empty());
        let texts = texts.map(|text| LibraryText {
            id: text.id,
            title: text.title,
            time,
            text: text.text.to_owned(),
        });
        self.cx.store_texts(texts.collect()).await
    }

    async fn add_documents<const N: usize>(&self, texts: [Text<'_>; N]) -> Result<(), Error> {
        let time = chrono::Utc::now().timestamp();
        let texts = texts.into_iter().filter(|text| !text.text.is_empty());
        let (contents, document_metadatas) = texts
            .map(|text| {
                let document = DocumentMetadata {
                    id: text.id,
                    time,
                    kind: "text/plain".to_owned(),
                    title: text.title,
                    document_type: "answer".to_owned(),
                    ..DocumentMetadata::default()
                };
                (STANDARD.encode(text.text), document)
            })
            .unzip();
        let request = LibrarianRequest {
            operation: "add-documents".to_owned(),
            document_metadatas,
            contents,
            ..LibrarianRequest::default()
        };
        let mut cx = self.cx.clone();
        cx.deadline = Deadline::after(LIBRARY);
        let answer = cx.ask::<_, LibrarianResponse>(LIBRARIAN, &request)?;
        answer.last().await.map(drop)
    }

    /// Writes entries of the trace as one record; durable when `Ok`.
    async fn publish(&self, events: &[Event]) -> Result<(), Error> {
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

/// Title of a stored thought.
pub(super) fn thought_title(action: &str) -> String {
    format!("Agent Thought: {action}")
}

/// Title of a stored observation.
pub(super) const OBSERVATION_TITLE: &str = "Agent Observation";

/// Title of a stored answer.
pub(super) fn answer_title(question: &str) -> String {
    let start: String = question.chars().take(50).collect();
    format!("Agent Answer: {start}...")
}
