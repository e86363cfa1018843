//! What an answer leaves behind: its texts with the librarian, the entries of its trace on the flow's triple store.
//! They are one record, so that what a trace links to is there even if the librarian was away (an **outbox**), and
//! with it may come what its writer goes on with ([`TraceWriter::store_with`]).
//!
//! In interop mode the library may be a foreign one, which is asked; one that fails costs a link, never an answer.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use tg_mesh::{Cx, Relay, clock};
use tg_provenance::Event;
use tg_schemas::msg::{AgentRun, DocumentMetadata, LibraryText, LibraryTexts, Metadata, Triples};
use tg_schemas::processors::{Spec, Writes, shared};
use tg_schemas::sections::Sections;
use tg_schemas::{Error, ErrorCode, Message, Topic};
use tokio::sync::oneshot;

use crate::library::{BASE64, Library};
use crate::neighbours::Neighbours;

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

/// What a writer goes on with once its trace is stored.
pub struct Next<'a, M> {
    /// Where it is read.
    pub spec: Spec<Writes<M>>,
    /// What.
    pub message: &'a Arc<M>,
    /// Told once it is known whether it is durable.
    pub written: Option<oneshot::Sender<bool>>,
}

impl<M> Next<'_, M> {
    fn tell(&mut self, written: bool) {
        if let Some(told) = self.written.take() {
            // Whoever does not wait does not need it.
            let _ = told.send(written);
        }
    }
}

/// Writes the trace of one answer.
pub struct TraceWriter {
    cx: Cx,
    collection: String,
    /// Nothing is written; whether there is a library is said.
    silent: Option<bool>,
}

impl TraceWriter {
    /// Writes for a collection, as long as the message is worked on.
    pub fn new(cx: &Cx, collection: &str) -> Self {
        Self {
            cx: cx.clone(),
            collection: collection.to_owned(),
            silent: None,
        }
    }

    /// Writes nothing: for what was written before. `library`: as if there was one.
    pub fn silent(cx: &Cx, library: bool) -> Self {
        Self {
            silent: Some(library),
            ..Self::new(cx, "")
        }
    }

    /// Writes for a collection also when nobody waits for the answer any more.
    pub fn outliving(cx: &Cx, collection: &str) -> Self {
        let mut writer = Self::new(&cx.outliving(), collection);
        writer.cx.cancel = cx.mesh.shutdown().child_token();
        writer
    }

    /// Whether the flow has a library, so that a link to a text can be promised.
    pub fn has_library(&self) -> bool {
        self.silent
            .unwrap_or_else(|| self.cx.has(shared::LIBRARIAN))
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
        if self.silent.is_some() {
            return Ok(());
        }
        if !Neighbours::of(&self.cx.mesh).take_library_records() {
            return self.store_apart(texts, entries).await;
        }
        let events = entries(self.wanted(&texts));
        self.together(None::<Next<'_, AgentRun>>, &texts, events)
            .await
    }

    /// As [`TraceWriter::store`], and with it what the writer goes on with: one record, where no foreign processor
    /// reads it and nothing counts the records.
    ///
    /// # Errors
    /// When a record cannot be written.
    pub async fn store_with<M: Message, const N: usize>(
        &self,
        texts: [Text<'_>; N],
        entries: impl FnOnce([bool; N]) -> Vec<Event>,
        mut next: Next<'_, M>,
    ) -> Result<(), Error> {
        if self.silent.is_some() {
            return Ok(());
        }
        if !Neighbours::of(&self.cx.mesh).take_library_records() {
            let write = async {
                let went = self.cx.record(next.spec, &**next.message).await;
                next.tell(went.is_ok());
                went
            };
            let (went, stored) = futures::join!(write, self.store_apart(texts, entries));
            return went.and(stored);
        }
        let events = entries(self.wanted(&texts));
        self.together(Some(next), &texts, events).await
    }

    /// Which texts are to be stored.
    fn wanted<const N: usize>(&self, texts: &[Text<'_>; N]) -> [bool; N] {
        let library = self.has_library();
        texts
            .each_ref()
            .map(|text| library && !text.text.is_empty())
    }

    /// Text by text with a library that may be foreign, then the entries.
    async fn store_apart<const N: usize>(
        &self,
        texts: [Text<'_>; N],
        entries: impl FnOnce([bool; N]) -> Vec<Event>,
    ) -> Result<(), Error> {
        let mut stored = [false; N];
        for (text, stored) in texts.iter().zip(&mut stored) {
            *stored = self.save(text).await;
        }
        self.write(self.triples(entries(stored))).await
    }

    /// Writes all as one record; apart where that is too much for one, where each record is counted, and in a flow that
    /// was started before there were topics for it.
    async fn together<M: Message>(
        &self,
        mut next: Option<Next<'_, M>>,
        texts: &[Text<'_>],
        events: Vec<Event>,
    ) -> Result<(), Error> {
        let texts = Arc::new(self.texts(texts));
        let triples = Arc::new(self.triples(events));
        let nothing = texts.texts.is_empty() && triples.triples.is_empty();
        if self.cx.follow().is_none() && !nothing {
            match self.as_one(next.as_ref(), &texts, &triples).await {
                Err(error)
                    if matches!(error.code(), ErrorCode::TooLarge | ErrorCode::NobodyServes) => {}
                outcome => {
                    if let Some(next) = &mut next {
                        next.tell(outcome.is_ok());
                    }
                    return outcome;
                }
            }
        }
        self.send(Arc::unwrap_or_clone(texts)).await?;
        self.write(Arc::unwrap_or_clone(triples)).await?;
        match next {
            Some(mut next) => {
                let went = self.cx.record(next.spec, &**next.message).await;
                next.tell(went.is_ok());
                went
            }
            None => Ok(()),
        }
    }

    /// One record for all readers that the flow has, so that each of them finds its own in it.
    async fn as_one<M: Message>(
        &self,
        next: Option<&Next<'_, M>>,
        texts: &Arc<LibraryTexts>,
        triples: &Arc<Triples>,
    ) -> Result<(), Error> {
        let mut sections = Sections::default();
        let mut readers = Vec::new();
        if self.has_library() {
            sections.share(texts)?;
            readers.push(shared::LIBRARY_TEXTS.of_system());
        }
        if let Some(topic) = self.read_triples() {
            sections.share(triples)?;
            readers.push(topic);
        }
        let trace = Relay {
            from: self.cx.topic(shared::TRACE)?,
            to: readers,
        };
        let about = triples.metadata.as_ref();
        let Some(next) = next else {
            return self.cx.record_together(&[trace], sections, about).await;
        };
        sections.share(next.message)?;
        let both = Relay {
            from: self.cx.topic(shared::STEP_AND_TRACE)?,
            to: vec![self.cx.topic(next.spec)?, trace.from.clone()],
        };
        let relays = [both, trace];
        self.cx.record_together(&relays, sections, about).await
    }

    /// Stores one text. `true` once it is there, or safely on its way.
    pub async fn save(&self, text: &Text<'_>) -> bool {
        if text.text.is_empty() || !self.has_library() {
            return false;
        }
        if self.silent.is_some() {
            return true;
        }
        let stored = match Neighbours::of(&self.cx.mesh).take_library_records() {
            true => self.send(self.texts(std::slice::from_ref(text))).await,
            false => self.add_document(text).await,
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

    /// Those to store, for the library of this workspace.
    fn texts(&self, texts: &[Text<'_>]) -> LibraryTexts {
        let library = self.has_library();
        let time = clock::seconds();
        let texts = texts.iter().filter(|text| library && !text.text.is_empty());
        let texts = texts.map(|text| LibraryText {
            id: text.id.clone(),
            title: text.title.clone(),
            time,
            text: text.text.to_owned(),
        });
        LibraryTexts {
            workspace: self.cx.workspace().to_owned(),
            texts: texts.collect(),
        }
    }

    /// Gives texts to the library as one record.
    async fn send(&self, texts: LibraryTexts) -> Result<(), Error> {
        if texts.texts.is_empty() {
            return Ok(());
        }
        self.cx.record(shared::LIBRARY_TEXTS, &texts).await
    }

    /// The one operation for this that a foreign librarian has, too.
    async fn add_document(&self, text: &Text<'_>) -> Result<(), Error> {
        let document = DocumentMetadata {
            id: text.id.clone(),
            time: clock::seconds(),
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
        if self.silent.is_some() {
            return Ok(());
        }
        self.write(self.triples(events.to_vec())).await
    }

    async fn write(&self, triples: Triples) -> Result<(), Error> {
        if triples.metadata.is_none() || !self.cx.has(shared::EXPLAINABILITY) {
            return Ok(());
        }
        self.cx.record(shared::EXPLAINABILITY, &triples).await
    }

    /// Where the flow's triples go, if anybody reads them.
    fn read_triples(&self) -> Option<Topic> {
        let topic = self.cx.topic(shared::EXPLAINABILITY).ok()?;
        self.cx.is_read(&topic).then_some(topic)
    }

    /// Entries as triples, under the id of the first.
    fn triples(&self, events: Vec<Event>) -> Triples {
        Triples {
            metadata: events.first().map(|first| Metadata {
                id: first.id.clone(),
                root: String::new(),
                collection: self.collection.clone(),
            }),
            triples: events.into_iter().flat_map(|event| event.triples).collect(),
        }
    }
}

/// Title of a stored answer: `what` names who answered.
pub fn answer_title(what: &str, question: &str) -> String {
    let start: String = question.chars().take(50).collect();
    format!("{what} Answer: {start}...")
}
