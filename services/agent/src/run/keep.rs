//! Stores what a step leaves behind: texts with the librarian, trace entries on the flow's triple store.
//! Works apart from the dialog: a library that fails costs a link, never an answer.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tg_mesh::Cx;
use tg_mesh::Deadline;
use tg_provenance::Event;
use tg_schemas::msg::{DocumentMetadata, LibrarianRequest, LibrarianResponse, Metadata, Triples};
use tg_schemas::{Error, ErrorCode};

/// Longest that the library may take for one text.
const LIBRARY: Duration = Duration::from_secs(10);
const LIBRARIAN: &str = "librarian-request";
const TRIPLES: &str = "explainability";

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

    /// Stores a text under an id of the trace. `true` once it is there.
    pub(super) async fn save(&self, id: &str, title: String, text: &str) -> bool {
        if text.is_empty() || !self.has_library() {
            return false;
        }
        match self.add_document(id, title, text).await {
            Ok(()) => true,
            // A step that is taken up again has stored the same text before.
            Err(error) if error.code() == ErrorCode::Conflict => true,
            Err(error) => {
                metrics::counter!("tg_agent_texts_lost_total").increment(1);
                tracing::warn!(%error, "a text of a trace was not stored");
                false
            }
        }
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
        cx.deadline = Deadline::after(LIBRARY);
        let answer = cx.ask::<_, LibrarianResponse>(LIBRARIAN, &request)?;
        answer.last().await.map(drop)
    }

    /// Writes entries of the trace as one record; durable when `Ok`.
    pub(super) async fn publish(&self, events: &[Event]) -> Result<(), Error> {
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
