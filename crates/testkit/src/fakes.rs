//! What stands around the service under test: readers that keep what they read, embeddings that can be foreseen, a
//! library of documents.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tg_mesh::{ConsumeError, Cx, RecordConsumer, RequestHandler, Responder};
use tg_schemas::msg::{
    DocumentMetadata, EmbeddingsRequest, EmbeddingsResponse, LibrarianRequest, LibrarianResponse,
    LibraryTexts,
};
use tg_schemas::{Error, ErrorCode, Message, Reply};
use tokio::sync::{Barrier, Notify, watch};

use crate::bus::BOUND;
use crate::flow::SOON;

/// What a reader says to a record before it keeps it.
type Check<M> = Box<dyn Fn(&Cx, &M) -> Result<(), ConsumeError> + Send + Sync>;

/// Keeps the records of a topic.
pub struct RecordingConsumer<M> {
    kept: watch::Sender<Vec<M>>,
    /// How many of them [`Self::next`] has given.
    given: AtomicUsize,
    check: Check<M>,
}

impl<M> Default for RecordingConsumer<M> {
    fn default() -> Self {
        Self::of(|_, _| Ok(()))
    }
}

impl<M> RecordingConsumer<M> {
    fn of(check: impl Fn(&Cx, &M) -> Result<(), ConsumeError> + Send + Sync + 'static) -> Self {
        Self {
            kept: watch::channel(Vec::new()).0,
            given: AtomicUsize::new(0),
            check: Box::new(check),
        }
    }

    /// A reader that has nothing yet.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// One that does with each record what a function of the test says, and keeps those it takes.
    pub fn checked(
        check: impl Fn(&Cx, &M) -> Result<(), ConsumeError> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self::of(check))
    }
}

impl<M: Clone> RecordingConsumer<M> {
    /// What came so far, in the order it came.
    pub fn all(&self) -> Vec<M> {
        self.kept.borrow().clone()
    }

    /// How many came so far.
    pub fn count(&self) -> usize {
        self.kept.borrow().len()
    }

    /// What came, as soon as it is as wanted. Panics when it does not become so.
    pub async fn until(&self, wanted: impl Fn(&[M]) -> bool) -> Vec<M> {
        let mut kept = self.kept.subscribe();
        let waited = tokio::time::timeout(BOUND, kept.wait_for(|all| wanted(all))).await;
        let all = waited.expect("the records come").expect("it is kept");
        all.clone()
    }

    /// The record after the one that was given last. Panics when none comes.
    pub async fn next(&self) -> M {
        let at = self.given.fetch_add(1, Ordering::SeqCst);
        self.until(|all| all.len() > at).await.swap_remove(at)
    }
}

#[async_trait]
impl<M: Message + Clone + Sync> RecordConsumer<M> for RecordingConsumer<M> {
    async fn consume(&self, cx: Cx, record: M) -> Result<(), ConsumeError> {
        (self.check)(&cx, &record)?;
        self.kept.send_modify(|all| all.push(record));
        Ok(())
    }
}

/// What a played service says to a question.
pub struct Play<R> {
    parts: Vec<R>,
    pace: Duration,
    yields: usize,
    hangs: bool,
    holds: bool,
    meets: Option<Arc<Barrier>>,
}

impl<R> Play<R> {
    /// These parts, one after the other.
    pub fn of(parts: Vec<R>) -> Self {
        Self {
            parts,
            pace: Duration::ZERO,
            yields: 0,
            hangs: false,
            holds: false,
            meets: None,
        }
    }

    /// Pauses after each part: who asks takes one after the other.
    pub fn paced(mut self, pace: Duration) -> Self {
        self.pace = pace;
        self
    }

    /// Lets others go on before it answers.
    pub fn yielding(mut self) -> Self {
        self.yields = 50;
        self
    }

    /// Answers once as many are asked as meet there.
    pub fn meeting(mut self, all: Arc<Barrier>) -> Self {
        self.meets = Some(all);
        self
    }

    /// Says nothing more after these parts, until it is cancelled.
    pub fn hanging(mut self) -> Self {
        self.hangs = true;
        self
    }

    /// Holds its last part back until the test [resumes](Played::resume) it, or it is cancelled.
    pub fn holding(mut self) -> Self {
        self.holds = true;
        self
    }
}

impl<R> From<Vec<R>> for Play<R> {
    fn from(parts: Vec<R>) -> Self {
        Self::of(parts)
    }
}

impl<R> From<R> for Play<R> {
    fn from(part: R) -> Self {
        Self::of(vec![part])
    }
}

type Script<Q, R> = Box<dyn Fn(&Cx, Q) -> Result<Play<R>, Error> + Send + Sync>;

/// Any service, played by a function of the test.
pub struct Played<Q, R> {
    play: Script<Q, R>,
    /// What it was asked, in order.
    pub asked: Mutex<Vec<Q>>,
    /// The ids of these questions.
    pub ids: Mutex<Vec<Arc<str>>>,
    /// The roles that came with them.
    pub roles: Mutex<Vec<Option<String>>>,
    /// Told when it hangs.
    pub hanging: Notify,
    /// Told when a question that hung was cancelled.
    pub cancelled: Notify,
    /// Lets a play that holds its last part back go on.
    pub resume: Notify,
}

impl<Q, R> Played<Q, R> {
    /// Played by this function.
    pub fn new<P: Into<Play<R>>>(
        play: impl Fn(&Cx, Q) -> Result<P, Error> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            play: Box::new(move |cx, ask| play(cx, ask).map(Into::into)),
            asked: Mutex::default(),
            ids: Mutex::default(),
            roles: Mutex::default(),
            hanging: Notify::new(),
            cancelled: Notify::new(),
            resume: Notify::new(),
        })
    }
}

#[async_trait]
impl<Q: Message + Clone, R: Reply> RequestHandler<Q, R> for Played<Q, R> {
    async fn serve(&self, cx: Cx, ask: Q, mut out: Responder<R>) -> Result<(), Error> {
        self.asked.lock().push(ask.clone());
        self.ids.lock().push(cx.id.clone());
        self.roles.lock().push(cx.headers.roles.clone());
        let play = (self.play)(&cx, ask)?;
        if let Some(all) = &play.meets {
            all.wait().await;
        }
        for _ in 0..play.yields {
            tokio::task::yield_now().await;
        }
        let held = play.parts.len().checked_sub(1).filter(|_| play.holds);
        for (at, part) in play.parts.into_iter().enumerate() {
            if held == Some(at) {
                tokio::select! {
                    () = self.resume.notified() => {}
                    () = cx.cancel.cancelled() => {
                        self.cancelled.notify_one();
                        return Ok(());
                    }
                }
            }
            out.send(part).await?;
            if !play.pace.is_zero() {
                tokio::time::sleep(play.pace).await;
            }
        }
        if play.hangs {
            self.hanging.notify_one();
            cx.cancel.cancelled().await;
            self.cancelled.notify_one();
        }
        Ok(())
    }
}

/// Plays the embeddings service; the text `poison` is refused, and `molasses` takes until it [may go on](Embeddings::hurry).
pub struct Embeddings {
    vector: fn(&str) -> Vec<f32>,
    model: &'static str,
    /// Questions so far.
    pub questions: AtomicUsize,
    /// Their texts.
    pub texts: Mutex<Vec<Vec<String>>>,
    /// It fails.
    pub down: AtomicBool,
    slow: watch::Sender<bool>,
}

impl Embeddings {
    /// With this vector of each text, of this model.
    pub fn new(model: &'static str, vector: fn(&str) -> Vec<f32>) -> Arc<Self> {
        Arc::new(Self {
            vector,
            model,
            questions: AtomicUsize::default(),
            texts: Mutex::default(),
            down: AtomicBool::default(),
            slow: watch::Sender::new(true),
        })
    }

    /// What is slow goes on.
    pub fn hurry(&self) {
        self.slow.send_replace(false);
    }
}

#[async_trait]
impl RequestHandler<EmbeddingsRequest, EmbeddingsResponse> for Embeddings {
    async fn serve(
        &self,
        _: Cx,
        ask: EmbeddingsRequest,
        mut out: Responder<EmbeddingsResponse>,
    ) -> Result<(), Error> {
        self.questions.fetch_add(1, Ordering::SeqCst);
        if self.down.load(Ordering::SeqCst) {
            return Err(Error::typed("embeddings-error", "out of order"));
        }
        if ask.texts.iter().any(|text| text == "poison") {
            return Err(Error::new(ErrorCode::TooLarge, "texts: too long"));
        }
        if ask.texts.iter().any(|text| text == "molasses") {
            // It is there as long as this is.
            let _ = self.slow.subscribe().wait_for(|slow| !slow).await;
        }
        let vectors: Vec<_> = ask.texts.iter().map(|text| (self.vector)(text)).collect();
        self.texts.lock().push(ask.texts);
        let answer = EmbeddingsResponse::new(&vectors, self.model.to_owned(), ask.packed);
        out.send(answer).await
    }
}

/// A document of the library: what is said of it, and its content in base64.
pub type Shelved = (DocumentMetadata, String);

/// What an upload is to become, and its parts by number.
type Upload = (DocumentMetadata, BTreeMap<i64, String>);

/// Documents, and uploads in progress.
#[derive(Default)]
pub struct Library {
    /// The documents by id.
    pub documents: Mutex<BTreeMap<String, Shelved>>,
    uploads: Mutex<BTreeMap<String, Upload>>,
    /// Children of a complete processing.
    complete: Mutex<BTreeSet<String>>,
    /// Texts that others gave it: title and text by id.
    pub texts: Mutex<BTreeMap<String, (String, String)>>,
    away: Mutex<bool>,
    changed: Notify,
}

fn missing() -> Error {
    Error::new(ErrorCode::NotFound, "Document does not exist")
}

impl Library {
    /// Puts a document on the shelf.
    pub fn put(&self, id: &str, kind: &str, content: String) {
        let metadata = DocumentMetadata {
            id: id.to_owned(),
            kind: kind.to_owned(),
            ..DocumentMetadata::default()
        };
        let mut documents = self.documents.lock();
        documents.insert(id.to_owned(), (metadata, content));
    }

    /// From now on it takes no texts in, or again what waits.
    pub fn set_away(&self, away: bool) {
        *self.away.lock() = away;
        self.changed.notify_waiters();
    }

    /// The texts that others gave it, as soon as there are so many.
    ///
    /// # Panics
    /// If they do not come.
    pub async fn holds(&self, count: usize) -> BTreeMap<String, (String, String)> {
        let held = async {
            loop {
                let changed = self.changed.notified();
                let texts = self.texts.lock().clone();
                if texts.len() >= count {
                    return texts;
                }
                changed.await;
            }
        };
        tokio::time::timeout(SOON, held)
            .await
            .expect("the texts come")
    }

    /// What is said of a document.
    pub fn about(&self, id: &str) -> Option<DocumentMetadata> {
        let documents = self.documents.lock();
        documents.get(id).map(|(metadata, _)| metadata.clone())
    }

    /// Gives a document a title.
    pub fn entitle(&self, id: &str, title: &str) {
        if let Some((document, _)) = self.documents.lock().get_mut(id) {
            document.title = title.to_owned();
        }
    }

    /// From now on every child counts as stored by a complete processing.
    pub fn complete(&self) {
        let documents = self.documents.lock();
        let children = documents
            .values()
            .filter(|(one, _)| !one.parent_id.is_empty());
        let children = children.map(|(one, _)| one.id.clone());
        self.complete.lock().extend(children);
    }

    fn add(&self, document: DocumentMetadata, content: String) -> Result<(), Error> {
        let mut documents = self.documents.lock();
        if documents.contains_key(&document.id) {
            return Err(Error::new(ErrorCode::Conflict, "Document already exists"));
        }
        if !document.parent_id.is_empty() && !documents.contains_key(&document.parent_id) {
            return Err(Error::new(ErrorCode::NotFound, "the parent does not exist"));
        }
        documents.insert(document.id.clone(), (document, content));
        Ok(())
    }

    fn add_children(&self, ask: LibrarianRequest) -> Result<Vec<DocumentMetadata>, Error> {
        assert!(ask.document_metadatas.len() <= 100);
        let mut unchanged = Vec::new();
        let mut documents = self.documents.lock();
        for (metadata, content) in ask.document_metadatas.into_iter().zip(ask.contents) {
            if !documents.contains_key(&metadata.parent_id) {
                return Err(missing());
            }
            if self.complete.lock().contains(&metadata.id) {
                unchanged.push(metadata.clone());
            }
            documents.insert(metadata.id.clone(), (metadata, content));
        }
        Ok(unchanged)
    }

    fn upload(&self, ask: LibrarianRequest, document: DocumentMetadata) -> Result<String, Error> {
        let mut uploads = self.uploads.lock();
        match ask.operation.as_str() {
            "begin-upload" => {
                let id = format!("upload of {}", document.id);
                uploads.insert(id.clone(), (document, BTreeMap::new()));
                return Ok(id);
            }
            "upload-chunk" => {
                let upload = uploads.get_mut(&ask.upload_id).ok_or_else(missing)?;
                upload.1.insert(ask.chunk_index, ask.content);
            }
            _ => {
                let (document, parts) = uploads.remove(&ask.upload_id).ok_or_else(missing)?;
                self.add(document, parts.into_values().collect())?;
            }
        }
        Ok(String::new())
    }

    fn answer(&self, ask: LibrarianRequest) -> Result<LibrarianResponse, Error> {
        let mut reply = LibrarianResponse {
            is_final: true,
            ..LibrarianResponse::default()
        };
        let found = |id: &str| self.documents.lock().get(id).cloned().ok_or_else(missing);
        let document = ask.document_metadata.clone().unwrap_or_default();
        match ask.operation.as_str() {
            "get-document-metadata" => reply.document_metadata = Some(found(&ask.document_id)?.0),
            "list-children" => {
                let documents = self.documents.lock();
                let children = documents
                    .values()
                    .filter(|(one, _)| one.parent_id == ask.document_id);
                reply.document_metadatas = children.map(|(one, _)| one.clone()).collect();
            }
            "add-document" | "add-child-document" => self.add(document, ask.content)?,
            "add-children" => reply.document_metadatas = self.add_children(ask)?,
            "ensure-document" => {
                let mut document = document;
                if document.id.is_empty() {
                    document.id = "urn:hashed".to_owned();
                }
                reply.document_id = document.id.clone();
                let mut documents = self.documents.lock();
                documents.insert(document.id.clone(), (document, ask.content));
            }
            "begin-upload" | "upload-chunk" | "complete-upload" => {
                reply.upload_id = self.upload(ask, document)?;
            }
            other => panic!("'{other}' is asked"),
        }
        Ok(reply)
    }

    /// The content in parts of so many bytes, each in base64 of its own.
    async fn stream(
        &self,
        ask: &LibrarianRequest,
        out: &mut Responder<LibrarianResponse>,
    ) -> Result<(), Error> {
        let (_, content) = {
            let documents = self.documents.lock();
            documents
                .get(&ask.document_id)
                .cloned()
                .ok_or_else(missing)?
        };
        // Four characters are three bytes: cut at a multiple of both.
        let bytes = usize::try_from(ask.chunk_size).unwrap_or(0).max(3);
        let parts: Vec<&[u8]> = content.as_bytes().chunks(bytes / 3 * 4).collect();
        let parts = if parts.is_empty() {
            vec![&b""[..]]
        } else {
            parts
        };
        for (at, part) in parts.iter().enumerate() {
            out.send(LibrarianResponse {
                content: String::from_utf8_lossy(part).into_owned(),
                total_bytes: 1,
                is_final: at + 1 == parts.len(),
                ..LibrarianResponse::default()
            })
            .await?;
        }
        Ok(())
    }
}

#[async_trait]
impl RequestHandler<LibrarianRequest, LibrarianResponse> for Library {
    async fn serve(
        &self,
        _: Cx,
        ask: LibrarianRequest,
        mut out: Responder<LibrarianResponse>,
    ) -> Result<(), Error> {
        if ask.operation == "stream-document" {
            return self.stream(&ask, &mut out).await;
        }
        out.send(self.answer(ask)?).await
    }
}

#[async_trait]
impl RecordConsumer<LibraryTexts> for Library {
    async fn consume(&self, _: Cx, record: LibraryTexts) -> Result<(), ConsumeError> {
        assert_eq!(record.workspace, "default", "flows of tests are in it");
        loop {
            let changed = self.changed.notified();
            if !*self.away.lock() {
                break;
            }
            changed.await;
        }
        let texts = record.texts.into_iter();
        let texts = texts.map(|text| (text.id, (text.title, text.text)));
        self.texts.lock().extend(texts);
        self.changed.notify_waiters();
        Ok(())
    }
}
