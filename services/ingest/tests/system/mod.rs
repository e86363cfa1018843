//! A flow with the two processors, a library of this test's own, and readers that keep what arrives.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use tg_ingest::IngestSettings;
use tg_mesh::embedded::EmbeddedBus;
use tg_mesh::{
    Ask, Cx, Deadline, Host, MeshOptions, Out, Processor, Read, ReadFault, Serve, put_aside,
};
use tg_schemas::msg::{
    Chunk, ConfigRequest, ConfigResponse, ConfigValue, Document, DocumentMetadata,
    LibrarianRequest, LibrarianResponse, Metadata, PutAside, TextDocument, Triples,
};
use tg_schemas::{Class, Error, ErrorCode, FlowId, Term, Topic, Triple, WorkspaceId};
use tokio::sync::Notify;

const SOON: Duration = Duration::from_secs(60);

struct Config(Vec<(String, String)>);

#[async_trait]
impl Serve<ConfigRequest, ConfigResponse> for Config {
    async fn serve(
        &self,
        _: Cx,
        ask: ConfigRequest,
        mut out: Out<ConfigResponse>,
    ) -> Result<(), Error> {
        let row = |workspace: &str, kind: &str, key: &str, value: &str| ConfigValue {
            workspace: workspace.into(),
            r#type: kind.into(),
            key: key.into(),
            value: value.into(),
        };
        let values = match ask.r#type.as_str() {
            "workspace" => vec![row("__workspaces__", "workspace", "default", "{}")],
            kind => {
                let rows = self.0.iter().filter(|(of, _)| of == kind);
                rows.map(|(_, value)| row("default", kind, "default", value))
                    .collect()
            }
        };
        out.send(ConfigResponse {
            version: 1,
            values,
            ..ConfigResponse::default()
        })
        .await
    }
}

#[derive(Default)]
struct Shelf {
    documents: BTreeMap<String, (DocumentMetadata, Vec<u8>)>,
    /// Children of a complete processing.
    complete: BTreeSet<String>,
}

#[derive(Default)]
struct Library(Mutex<Shelf>);

impl Library {
    fn answer(&self, ask: LibrarianRequest) -> Result<LibrarianResponse, Error> {
        let mut shelf = self.0.lock();
        let mut reply = LibrarianResponse::default();
        let missing = || Error::new(ErrorCode::NotFound, "no such document");
        match ask.operation.as_str() {
            "get-document-metadata" => {
                let found = shelf.documents.get(&ask.document_id).ok_or_else(missing)?;
                reply.document_metadata = Some(found.0.clone());
            }
            "ensure-document" => {
                let mut metadata = ask.document_metadata.unwrap();
                if metadata.id.is_empty() {
                    metadata.id = "urn:hashed".to_owned();
                }
                reply.document_id = metadata.id.clone();
                let content = STANDARD.decode(ask.content).unwrap();
                shelf
                    .documents
                    .insert(metadata.id.clone(), (metadata, content));
            }
            "add-children" => {
                assert!(ask.document_metadatas.len() <= 100);
                assert_eq!(ask.processing_metadata.unwrap().flow, "default");
                for (metadata, content) in ask.document_metadatas.into_iter().zip(ask.contents) {
                    if !shelf.documents.contains_key(&metadata.parent_id) {
                        return Err(missing());
                    }
                    if shelf.complete.contains(&metadata.id) {
                        reply.document_metadatas.push(metadata.clone());
                    }
                    let content = STANDARD.decode(content).unwrap();
                    shelf
                        .documents
                        .insert(metadata.id.clone(), (metadata, content));
                }
            }
            other => panic!("'{other}' is asked"),
        }
        Ok(reply)
    }
}

#[async_trait]
impl Serve<LibrarianRequest, LibrarianResponse> for Library {
    async fn serve(
        &self,
        _: Cx,
        ask: LibrarianRequest,
        mut out: Out<LibrarianResponse>,
    ) -> Result<(), Error> {
        if ask.operation != "stream-document" {
            return out.send(self.answer(ask)?).await;
        }
        let found = self.0.lock().documents.get(&ask.document_id).cloned();
        let (_, content) =
            found.ok_or_else(|| Error::new(ErrorCode::NotFound, "no such document"))?;
        let size = usize::try_from(ask.chunk_size).unwrap();
        let count = content.len().div_ceil(size).max(1);
        for at in 0..count {
            let piece = &content[at * size..content.len().min((at + 1) * size)];
            out.send(LibrarianResponse {
                content: STANDARD.encode(piece),
                is_final: at + 1 == count,
                ..LibrarianResponse::default()
            })
            .await?;
        }
        Ok(())
    }
}

/// Keeps the records of a topic.
struct Kept<M> {
    records: Mutex<Vec<M>>,
    more: Notify,
}

impl<M> Kept<M> {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            records: Mutex::new(Vec::new()),
            more: Notify::new(),
        })
    }
}

#[async_trait]
impl<M: tg_schemas::Message> Read<M> for Kept<M> {
    async fn read(&self, _: Cx, record: M) -> Result<(), ReadFault> {
        self.records.lock().push(record);
        self.more.notify_waiters();
        Ok(())
    }
}

pub struct System {
    mesh: Host,
    library: Arc<Library>,
    triples: Arc<Kept<Triples>>,
    chunks: Arc<Kept<Chunk>>,
}

fn topic(base: &str) -> Topic {
    let (workspace, flow) = (WorkspaceId::new("default"), FlowId::new("default"));
    Topic::flow(Class::Flow, base, &workspace.unwrap(), &flow.unwrap())
}

impl System {
    pub async fn start(parameters: &[(&str, &str)]) -> Self {
        let bus = Arc::new(EmbeddedBus::in_memory());
        let mesh = tg_runs::start(bus, MeshOptions::default()).await.unwrap();
        let (library, triples, chunks) = (Arc::new(Library::default()), Kept::new(), Kept::new());
        let parameters: BTreeMap<&str, &str> = parameters.iter().copied().collect();
        let parameters = serde_json::to_string(&parameters).unwrap();
        let [document, text, chunk, store] = [
            "document-load",
            "text-document-load",
            "chunk-load",
            "triples-store",
        ]
        .map(|base| topic(base).to_string());
        let asks = r#""librarian-request":"request:tg:librarian:default","librarian-response":"response:tg:librarian:default""#;
        let row = |topics: String| {
            format!(r#"{{"topics":{{{topics}}},"parameters":{parameters},"epoch":1}}"#)
        };
        let of = |processor: &str, topics: String| (format!("processor:{processor}"), row(topics));
        let config = Config(vec![
            of(
                "document-decoder",
                format!(r#""input":"{document}","output":"{text}","triples":"{store}",{asks}"#),
            ),
            of(
                "chunker",
                format!(r#""input":"{text}","output":"{chunk}","triples":"{store}",{asks}"#),
            ),
            of("triples-write", format!(r#""input":"{store}""#)),
            of("kw-index", format!(r#""input":"{chunk}""#)),
        ]);
        let settings = IngestSettings {
            program: PathBuf::from(env!("CARGO_BIN_EXE_ingest-decode")),
            args: Vec::new(),
            ..IngestSettings::of_this_program("")
        };
        let mut hosted = vec![
            Processor::new("config-svc").serves_system("config", Arc::new(config)),
            Processor::new("librarian").serves_workspace("librarian", library.clone()),
            Processor::new("triples-write").reads("input", triples.clone()),
            Processor::new("kw-index").reads("input", chunks.clone()),
        ];
        hosted.extend(tg_ingest::processors(settings));
        for processor in hosted {
            mesh.host(processor).await.unwrap();
        }
        let attached = mesh.presence().until(SOON, |view| {
            let ids = ["document-decoder", "chunker", "triples-write", "kw-index"];
            ids.iter()
                .all(|id| view.attached(id, "default", "default", 1))
        });
        assert!(attached.await, "the flow attaches");
        Self {
            mesh,
            library,
            triples,
            chunks,
        }
    }

    /// Puts a document into the library.
    pub fn put(&self, id: &str, kind: &str, content: &[u8]) {
        let metadata = DocumentMetadata {
            id: id.to_owned(),
            kind: kind.to_owned(),
            ..DocumentMetadata::default()
        };
        let mut shelf = self.library.0.lock();
        shelf
            .documents
            .insert(id.to_owned(), (metadata, content.to_vec()));
    }

    /// From now on every child counts as stored by a complete processing.
    pub fn complete(&self) {
        let mut shelf = self.library.0.lock();
        let children = shelf
            .documents
            .iter()
            .filter(|(_, (metadata, _))| !metadata.parent_id.is_empty());
        let children: Vec<String> = children.map(|(id, _)| id.clone()).collect();
        shelf.complete.extend(children);
    }

    pub fn child(&self, id: &str) -> Option<DocumentMetadata> {
        self.library
            .0
            .lock()
            .documents
            .get(id)
            .map(|(metadata, _)| metadata.clone())
    }

    fn metadata(id: &str) -> Option<Metadata> {
        Some(Metadata {
            id: id.to_owned(),
            root: id.to_owned(),
            collection: "c".to_owned(),
        })
    }

    fn options() -> Ask {
        Ask {
            deadline: Some(Deadline::after(SOON)),
            epoch: Some(1),
            ..Ask::default()
        }
    }

    pub async fn load_text(&self, id: &str, text: &str) {
        let by_itself = !text.is_empty();
        let record = TextDocument {
            metadata: Self::metadata(id),
            text: text.to_owned(),
            document_id: if by_itself {
                String::new()
            } else {
                id.to_owned()
            },
        };
        let to = topic("text-document-load");
        let sent = self.mesh.record(&to, &record, Self::options());
        sent.await.unwrap();
    }

    pub async fn load_document(&self, id: &str, data: &str) {
        let record = Document {
            metadata: Self::metadata(id),
            data: data.to_owned(),
            document_id: if data.is_empty() {
                id.to_owned()
            } else {
                String::new()
            },
        };
        let to = topic("document-load");
        let sent = self.mesh.record(&to, &record, Self::options());
        sent.await.unwrap();
    }

    async fn chunks_when(&self, enough: impl Fn(&[Chunk]) -> bool) -> Vec<Chunk> {
        let arrived = async {
            loop {
                let more = self.chunks.more.notified();
                {
                    let records = self.chunks.records.lock();
                    if enough(&records) {
                        return records.clone();
                    }
                }
                more.await;
            }
        };
        let arrived = tokio::time::timeout(SOON, arrived).await;
        arrived.expect("the chunks arrive")
    }

    /// Waits for so many chunks, in the order they came.
    pub async fn chunks(&self, count: usize) -> Vec<Chunk> {
        let chunks = self.chunks_when(|chunks| chunks.len() >= count).await;
        assert_eq!(chunks.len(), count);
        chunks
    }

    /// Waits for chunks that have so many characters, without what overlaps.
    pub async fn chunks_of(&self, characters: usize) -> Vec<Chunk> {
        let enough = |chunks: &[Chunk]| {
            let lengths = chunks.iter().map(|chunk| chunk.chunk.chars().count());
            lengths.sum::<usize>() + 100 > characters + chunks.len().saturating_sub(2) * 900
        };
        self.chunks_when(enough).await
    }

    /// The ids of the chunks, once so many came.
    pub async fn ids(&self, count: usize) -> BTreeSet<String> {
        let chunks = self.chunks(count).await;
        chunks.into_iter().map(|chunk| chunk.document_id).collect()
    }

    pub fn triples_records(&self) -> usize {
        self.triples.records.lock().len()
    }

    /// What was said of a thing.
    pub fn object(&self, subject: &str, predicate: &str) -> Option<Term> {
        let (subject, predicate) = (Term::iri(subject), Term::iri(predicate));
        let is = |triple: &&Triple| {
            triple.s.as_ref() == Some(&subject) && triple.p.as_ref() == Some(&predicate)
        };
        let records = self.triples.records.lock();
        let mut all = records.iter().flat_map(|record| &record.triples);
        all.find(is).and_then(|triple| triple.o.clone())
    }

    /// Waits for a record that is put aside and returns its text.
    pub async fn put_aside(&self) -> String {
        let taken = async {
            loop {
                let taken = self.mesh.bus().take(&put_aside::subscription()).await;
                if let Some(delivery) = taken.unwrap() {
                    return delivery;
                }
                tokio::task::yield_now().await;
            }
        };
        let delivery = tokio::time::timeout(SOON, taken)
            .await
            .expect("a record is put aside");
        let record: PutAside = delivery.envelope.read().expect("a record");
        let told = serde_json::to_string(&record).expect("a record is JSON");
        delivery.ack();
        told
    }
}
