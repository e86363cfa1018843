//! Services that say what a test wants to hear.

mod iam;

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use tg_mesh::{ConsumeError, Cx, RequestHandler, Responder};
use tg_schemas::msg::*;
use tg_schemas::vocabulary::POLICY_GRAPH;
use tg_schemas::{Error, ErrorCode, Message, Term, Triple};
use tg_testkit::config::Config;
use tg_testkit::fakes::{Play, Played, RecordingConsumer};
use tokio::sync::watch;

pub use self::iam::{FakeAudit, FakeIam};

/// The config service of a workspace, as it is asked through the gateway: says which workspace's this is, at version 7.
/// A write makes the version that its first value says, else none.
pub fn config_of_workspace() -> Arc<Played<ConfigRequest, ConfigResponse>> {
    Played::new(|cx, ask: ConfigRequest| {
        let value = ask.values.first();
        let version = match ask.operation.as_str() {
            "put" => value.and_then(|row| row.value.parse().ok()).unwrap_or(0),
            _ => 7,
        };
        Ok(ConfigResponse {
            version,
            directory: vec![cx.workspace().to_owned()],
            ..ConfigResponse::default()
        })
    })
}

/// A store of rows with two pages, and an empty last one.
pub fn pages_of_rows() -> Arc<Played<RowsQueryRequest, RowsQueryResponse>> {
    Played::new(|_, ask: RowsQueryRequest| {
        let rows = |ids: &[&str]| {
            let row = |id: &&str| [("id".to_owned(), (*id).to_owned())].into();
            ids.iter().map(row).collect()
        };
        let (schema_name, rows, next) = match ask.after.as_str() {
            "" => ("cities", rows(&["1", "2"]), "2:cities"),
            "2:cities" => ("towns", rows(&["3"]), "3:towns"),
            _ => ("", rows(&[]), ""),
        };
        Ok(RowsQueryResponse {
            schema_name: schema_name.to_owned(),
            rows,
            next: next.to_owned(),
            ..RowsQueryResponse::default()
        })
    })
}

/// Bytes of a text that is larger than what a connection may have for itself.
pub const LONG: usize = 300_000;

/// Answers every query with one solution, a long text.
pub fn long_solution() -> Arc<Played<SparqlQueryRequest, SparqlQueryResponse>> {
    Played::new(|_, _| {
        Ok(SparqlQueryResponse {
            query_type: "select".into(),
            variables: vec!["x".into()],
            bindings: vec![SparqlBinding {
                values: vec![Some(Term::literal("x".repeat(LONG)))],
            }],
            is_final: true,
            ..SparqlQueryResponse::default()
        })
    })
}

/// A store of vectors that says by which model it was asked. It has two pages of them, and is of another release for
/// the collection `foreign`.
pub fn entities_near() -> Arc<Played<GraphEmbeddingsRequest, GraphEmbeddingsResponse>> {
    Played::new(|_, ask: GraphEmbeddingsRequest| {
        if ask.export && ask.collection != "foreign" {
            let entity = |id: &str| EntityEmbeddings {
                entity: Some(Term::iri(id)),
                vector: vec![0.5, 1.0],
                chunk_id: "k".into(),
                rdf_type: vec!["urn:T".into()],
                text: "words".into(),
                ..EntityEmbeddings::default()
            };
            let (stored, next) = match ask.after.as_str() {
                "" => (vec![entity("urn:a"), entity("urn:b")], "2"),
                _ => (vec![entity("urn:c")], ""),
            };
            return Ok(GraphEmbeddingsResponse {
                page: true,
                model: "m".into(),
                stored,
                next: next.into(),
                ..GraphEmbeddingsResponse::default()
            });
        }
        let entities = vec![EntityMatch {
            entity: Some(Term::literal(ask.model)),
            ..EntityMatch::default()
        }];
        Ok(GraphEmbeddingsResponse {
            entities,
            ..GraphEmbeddingsResponse::default()
        })
    })
}

/// An agent that plays by the question: `hang` waits to be cancelled, `flood` streams without end,
/// `fail:<text>` fails with that text, anything else is echoed in a full dialog.
pub struct FakeAgent {
    /// Dialogs that were cancelled.
    pub cancelled: watch::Sender<usize>,
    /// Dialogs that were begun.
    pub begun: watch::Sender<usize>,
    /// Parts that `flood` has sent.
    pub flooded: watch::Sender<usize>,
    /// Seen questions.
    pub seen: Mutex<Vec<AgentRequest>>,
    /// The trace that each of them belonged to.
    pub traced: Mutex<Vec<Option<String>>>,
    /// By what whoever asked is known, and who it is.
    pub known: Mutex<Vec<(Option<String>, Option<String>)>>,
}

impl Default for FakeAgent {
    fn default() -> Self {
        Self {
            cancelled: watch::channel(0).0,
            begun: watch::channel(0).0,
            flooded: watch::channel(0).0,
            seen: Mutex::default(),
            traced: Mutex::default(),
            known: Mutex::default(),
        }
    }
}

fn chunk(kind: &str, content: &str, end: bool, last: bool) -> AgentResponse {
    AgentResponse {
        message_type: kind.into(),
        content: content.into(),
        end_of_message: end,
        end_of_dialog: last,
        ..AgentResponse::default()
    }
}

#[async_trait]
impl RequestHandler<AgentRequest, AgentResponse> for FakeAgent {
    async fn serve(
        &self,
        cx: Cx,
        ask: AgentRequest,
        mut out: Responder<AgentResponse>,
    ) -> Result<(), Error> {
        self.seen.lock().push(ask.clone());
        self.traced.lock().push(cx.headers.traceparent.clone());
        let known = (cx.headers.credential.clone(), cx.headers.user_id.clone());
        self.known.lock().push(known);
        self.begun.send_modify(|n| *n += 1);
        if let Some(text) = ask.question.strip_prefix("fail:") {
            return Err(Error::typed("agent-error", text));
        }
        match ask.question.as_str() {
            "hang" => {
                // Cancelled before the first part counts, too.
                let _ = out.send(chunk("thought", "hm", true, false)).await;
                cx.cancel.cancelled().await;
                self.cancelled.send_modify(|n| *n += 1);
                return Err(Error::new(ErrorCode::Cancelled, "cancelled"));
            }
            "flood" => {
                let text = "x".repeat(16 << 10);
                while out
                    .send(chunk("thought", &text, false, false))
                    .await
                    .is_ok()
                {
                    self.flooded.send_modify(|n| *n += 1);
                }
                self.cancelled.send_modify(|n| *n += 1);
                return Ok(());
            }
            _ => {}
        }
        out.send(chunk("thought", "let me ", false, false)).await?;
        out.send(chunk("thought", "see", true, false)).await?;
        out.send(chunk("observation", "seen", true, false)).await?;
        out.send(chunk("answer", &ask.question, false, false))
            .await?;
        out.send(chunk("answer", "", true, true)).await
    }
}

/// Pattern queries: as many batches as `limit` says, one triple each. The predicate `urn:generation` asks which one the
/// question was sent in. The collection `long` has one triple, with a long text. None has policies.
pub fn triples() -> Arc<Played<TriplesQueryRequest, TriplesQueryResponse>> {
    Played::new(|cx, ask: TriplesQueryRequest| {
        if ask.g.as_deref() == Some(POLICY_GRAPH) {
            let none = TriplesQueryResponse {
                is_final: true,
                ..TriplesQueryResponse::default()
            };
            return Ok(vec![none]);
        }
        let long = ask.collection == "long";
        let batches = match (ask.streaming, ask.limit) {
            _ if long => 1,
            (true, 0) => 5,
            (true, limit) => limit.min(5),
            _ => 1,
        };
        let generation = cx.headers.generation;
        let said = match ask.p == Some(Term::iri("urn:generation")) {
            _ if long => "x".repeat(LONG),
            true => generation.map_or_else(String::new, |n| n.to_string()),
            false => cx.workspace().to_owned(),
        };
        let (subject, is) = (Term::iri("urn:workspace"), Term::iri("urn:is"));
        let triple = Triple::new(subject, is, Term::literal(&said));
        let batch = |at| TriplesQueryResponse {
            triples: vec![triple.clone()],
            is_final: at == batches,
            error: None,
        };
        Ok((1..=batches).map(batch).collect::<Vec<_>>())
    })
}

/// GraphRAG: an explain frame, two chunks, the end; the query `fail` fails, and so does one that names the origin of its trace.
/// Streamed, `hang` says no more after the first chunk, and `long` has seven chunks of 3 MiB.
pub fn graph_rag() -> Arc<Played<GraphRagQuery, GraphRagResponse>> {
    Played::new(|_, ask: GraphRagQuery| {
        if ask.query == "fail" {
            return Err(Error::typed("graph-rag-error", "no such thing"));
        }
        if !ask.parent_uri.is_empty() {
            return Err(Error::typed("graph-rag-error", "a caller named an origin"));
        }
        let explain = GraphRagResponse {
            message_type: "explain".into(),
            explain_id: Some("urn:trustgraph:question:1".into()),
            ..GraphRagResponse::default()
        };
        let chunk = |text: &str, end: bool| GraphRagResponse {
            message_type: "chunk".into(),
            response: text.into(),
            end_of_stream: end,
            end_of_session: end && !ask.streaming,
            ..GraphRagResponse::default()
        };
        if !ask.streaming {
            return Ok(Play::of(vec![explain, chunk("forty-two", true)]));
        }
        let end = GraphRagResponse {
            end_of_session: true,
            ..chunk("", true)
        };
        let mut parts = vec![explain];
        match ask.query.as_str() {
            "hang" => {
                parts.push(chunk("forty", false));
                return Ok(Play::of(parts).hanging());
            }
            "long" => parts.extend(vec![chunk(&"x".repeat(3 << 20), false); 7]),
            _ => parts.extend([chunk("forty", false), chunk("-two", true)]),
        }
        parts.push(end);
        Ok(Play::of(parts))
    })
}

/// Listeners that answer whatever they are sent in two pieces.
pub fn listeners() -> Arc<Played<ThreadsRequest, ThreadsResponse>> {
    Played::new(|_, ask: ThreadsRequest| {
        let piece = |text: &str| ThreadsResponse {
            source: ask.to.clone(),
            chunk: text.into(),
            ..ThreadsResponse::default()
        };
        let last = ThreadsResponse {
            thread: "t".into(),
            end_of_stream: true,
            ..ThreadsResponse::default()
        };
        Ok(vec![piece("forty"), piece("-two"), last])
    })
}

/// Bytes of the document of the core.
pub const LARGE: usize = 7 << 20;
/// Bytes of a part.
pub const PART: usize = 3 << 20;

/// A knowledge service with one core, `core`, of one triple and one document of 7 MiB; keeps what is put.
pub fn knowledge(put: Given<KnowledgeRequest>) -> Arc<Played<KnowledgeRequest, KnowledgeResponse>> {
    Played::new(move |cx, ask: KnowledgeRequest| {
        let workspace = cx.workspace().to_owned();
        match ask.operation.as_str() {
            "list-kg-cores" => Ok(vec![KnowledgeResponse {
                ids: Some(vec![workspace]),
                ..KnowledgeResponse::default()
            }]),
            "get-kg-core" if ask.id == "core" => Ok(core()),
            "get-kg-core" => Err(Error::typed("load-error", "id: there is no such core")),
            _ => {
                put.lock().push((workspace, ask));
                Ok(vec![KnowledgeResponse::default()])
            }
        }
    })
}

fn core() -> Vec<KnowledgeResponse> {
    let triple = Triple::new(Term::iri("urn:a"), Term::iri("urn:b"), Term::literal("c"));
    let triples = KnowledgeResponse {
        triples: Some(Triples {
            metadata: None,
            triples: vec![triple],
        }),
        ..KnowledgeResponse::default()
    };
    let document = KnowledgeResponse {
        library_metadata: Some(LibraryMetadata {
            id: "core".into(),
            kind: "text/plain".into(),
            ..LibraryMetadata::default()
        }),
        ..KnowledgeResponse::default()
    };
    let content = vec![b'x'; LARGE];
    let blob = |(at, part): (usize, &[u8])| KnowledgeResponse {
        library_blob: Some(LibraryBlob {
            id: "core".into(),
            data: STANDARD.encode(part),
            offset: (at * PART) as i64,
            total: LARGE as i64,
        }),
        ..KnowledgeResponse::default()
    };
    let end = KnowledgeResponse {
        eos: true,
        ..KnowledgeResponse::default()
    };
    let blobs = content.chunks(PART).enumerate().map(blob);
    [triples, document]
        .into_iter()
        .chain(blobs)
        .chain([end])
        .collect()
}

/// What a service was given, with the workspace.
pub type Given<Q> = Arc<Mutex<Vec<(String, Q)>>>;

/// A passage: a heading, and a sentence.
const PASSAGE: &str = "IyBTa2FnZW4KSXQgaXMgZ3JleS4=";

/// A library with two documents, `doc` of 11 bytes and `long`, which is so, and a passage; keeps what is loaded.
pub fn library(
    loaded: Given<LibrarianRequest>,
) -> Arc<Played<LibrarianRequest, LibrarianResponse>> {
    Played::new(move |cx, ask: LibrarianRequest| {
        if ask.operation == "load-document" {
            loaded.lock().push((cx.workspace().to_owned(), ask));
            return Ok(vec![LibrarianResponse::default()]);
        }
        if ask.operation == "list-documents" {
            return Ok(vec![LibrarianResponse::default()]);
        }
        if ask.operation == "get-contents" || ask.document_id == "passage" {
            return Ok(vec![LibrarianResponse {
                content: PASSAGE.into(),
                contents: ask.document_ids.iter().map(|_| PASSAGE.into()).collect(),
                ..LibrarianResponse::default()
            }]);
        }
        if ask.operation == "stream-document" && ask.document_id == "long" {
            return Ok(vec![LibrarianResponse {
                content: "eHh4".repeat(LONG / 3),
                total_chunks: 1,
                is_final: true,
                ..LibrarianResponse::default()
            }]);
        }
        if ask.operation != "stream-document" || ask.document_id != "doc" {
            return Err(Error::typed("request-error", "Document not found"));
        }
        let part = |(at, content): (usize, &str)| LibrarianResponse {
            content: content.into(),
            chunk_index: at as i64,
            total_chunks: 3,
            is_final: at == 2,
            ..LibrarianResponse::default()
        };
        let parts = ["aGVs", "bG8g", "d29ybGQ="].into_iter().enumerate();
        Ok(parts.map(part).collect())
    })
}

/// Subject of a triple that the store refuses.
pub const REFUSED: &str = "urn:refused";
/// Subject of a triple that the store takes later.
pub const LATER: &str = "urn:later";

/// A store of triples that takes all but those, and nothing that is not said to be loaded by somebody.
pub fn store() -> Arc<RecordingConsumer<Triples>> {
    RecordingConsumer::checked(|cx, record: &Triples| {
        if !cx.headers.by_hand {
            let error = Error::new(ErrorCode::BadRequest, "nobody is said to load it");
            return Err(ConsumeError::Dead(error));
        }
        let has = |subject| {
            record
                .triples
                .iter()
                .any(|one| one.s == Some(Term::iri(subject)))
        };
        if has(REFUSED) {
            let error = Error::new(ErrorCode::TooLarge, "at most so many");
            return Err(ConsumeError::Dead(error));
        }
        match has(LATER) {
            true => Err(Error::new(ErrorCode::Storage, "not now").into()),
            false => Ok(()),
        }
    })
}

/// What is for this collection the other stores refuse.
pub const REFUSED_COLLECTION: &str = "refused";

/// Keeps records, but those of one collection.
pub fn picky<M: Message>() -> Arc<RecordingConsumer<M>> {
    RecordingConsumer::checked(|_, record: &M| match record.for_collection() {
        Some(REFUSED_COLLECTION) => {
            let error = Error::new(ErrorCode::TooLarge, "at most so many");
            Err(ConsumeError::Dead(error))
        }
        _ => Ok(()),
    })
}

/// Everything a test may look at.
#[derive(Default)]
pub struct Fakes {
    pub config: Arc<Config>,
    pub agent: Arc<FakeAgent>,
    pub store: Arc<RecordingConsumer<Triples>>,
    pub entities: Arc<RecordingConsumer<GraphEmbeddings>>,
    pub chunks: Arc<RecordingConsumer<DocumentEmbeddings>>,
    pub contexts: Arc<RecordingConsumer<EntityContexts>>,
    pub rows: Arc<RecordingConsumer<ExtractedObject>>,
    pub loaded: Given<LibrarianRequest>,
    pub put: Given<KnowledgeRequest>,
    /// Runs that were cancelled, and those whose askers were said to be gone.
    pub runs_cancelled: Arc<Mutex<Vec<String>>>,
    pub runs_left: Arc<Mutex<Vec<String>>>,
    /// So many more cancels of runs find none.
    pub runs_unheard: Arc<AtomicUsize>,
    pub chats: Given<ChatCompletionRequest>,
    /// Turns of sessions that were ended.
    pub turns_ended: Arc<watch::Sender<usize>>,
    pub iam: Arc<FakeIam>,
    pub audit: Arc<FakeAudit>,
}
