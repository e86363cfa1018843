//! A flow with this service, and stores and a library that remember what they were told.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;
use tg_mesh::{Ask, ConsumeError, Deadline, Processor};
use tg_schemas::msg::{
    DocumentEmbeddings, EntityEmbeddings, GraphEmbeddings, KnowledgeRequest, KnowledgeResponse,
    Metadata, Retract, Triples,
};
use tg_schemas::processors::{self, ProcessorSpec};
use tg_schemas::{Class, Error, ErrorCode, Term, Topic, Triple, WorkspaceId};
use tg_testkit::config::Config;
use tg_testkit::fakes::{Library, RecordingConsumer};
use tg_testkit::flow::{TestFlow, Wiring, topic};
use tg_testkit::place::Place;

const SOON: Duration = Duration::from_secs(60);

const WIRING: &[Wiring] = &[
    (
        "kg-store",
        &[
            ("triples-input", Class::Flow, "triples-store"),
            (
                "graph-embeddings-input",
                Class::Flow,
                "graph-embeddings-store",
            ),
        ],
    ),
    ("triples-write", &[("input", Class::Flow, "triples-store")]),
    (
        "graph-embeddings-write",
        &[("input", Class::Flow, "graph-embeddings-store")],
    ),
    (
        "doc-embeddings-write",
        &[("input", Class::Flow, "document-embeddings-store")],
    ),
];

/// What the stores were told.
pub struct Stores {
    pub triples: Arc<RecordingConsumer<Triples>>,
    pub entities: Arc<RecordingConsumer<GraphEmbeddings>>,
    pub chunks: Arc<RecordingConsumer<DocumentEmbeddings>>,
    /// By the graph: both stores hear all of it.
    pub retracted: Arc<RecordingConsumer<Retract>>,
}

/// A subject that the graph refuses.
pub const REFUSED: &str = "urn:e:bad";

impl Stores {
    fn new() -> Self {
        let refuse = |record: &Triples| {
            let mut triples = record.triples.iter();
            match triples.any(|triple| triple.s == Some(Term::iri(REFUSED))) {
                true => {
                    let error = Error::new(ErrorCode::BadRequest, "triples[0].s: is refused");
                    Err(ConsumeError::Dead(error))
                }
                false => Ok(()),
            }
        };
        Self {
            triples: RecordingConsumer::checked(move |_, record| refuse(record)),
            entities: RecordingConsumer::new(),
            chunks: RecordingConsumer::new(),
            retracted: RecordingConsumer::new(),
        }
    }
}

/// The running system.
pub struct World {
    pub flow: TestFlow,
    pub stores: Stores,
    pub library: Arc<Library>,
    _dir: TempDir,
}

impl World {
    pub async fn start(place: &Place) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let rows = Config::new();
        rows.collection("default", 0).collection("facts", 3);
        let store = |base| json!({"flow": topic(Class::Flow, base).to_string()});
        let flow = json!({
            "blueprint-name": "b", "status": "running", "epoch": 1,
            "interfaces": {
                "triples-store": store("triples-store"),
                "graph-embeddings-store": store("graph-embeddings-store"),
                "document-embeddings-store": store("document-embeddings-store"),
            },
        });
        rows.put("flow", "default", &flow.to_string());
        let (stores, library) = (Stores::new(), Arc::<Library>::default());
        let asked = library.clone();
        let (triples, entities) = (stores.triples.clone(), stores.entities.clone());
        let (chunks, retracted) = (stores.chunks.clone(), stores.retracted.clone());
        let path = dir.path().to_owned();
        let flow = TestFlow::start(place, rows, WIRING, move |mesh| {
            let mut all = vec![
                Processor::new(processors::triples_write::PROCESSOR)
                    .reads(processors::triples_write::INPUT, triples)
                    .reads(processors::triples_write::RETRACT, retracted),
                Processor::new(processors::graph_embeddings_write::PROCESSOR)
                    .reads(processors::graph_embeddings_write::INPUT, entities)
                    .reads(
                        processors::graph_embeddings_write::RETRACT,
                        RecordingConsumer::new(),
                    ),
                Processor::new(processors::doc_embeddings_write::PROCESSOR)
                    .reads(processors::doc_embeddings_write::INPUT, chunks),
                Processor::new(ProcessorSpec::unlisted("library"))
                    .serves(processors::librarian::LIBRARIAN, asked),
            ];
            let options = tg_knowledge::Options {
                data_dir: path,
                ..tg_knowledge::Options::default()
            };
            all.extend(tg_knowledge::processors(mesh, options));
            all
        })
        .await;
        Self {
            flow,
            stores,
            library,
            _dir: dir,
        }
    }

    /// All parts of an answer; the last may be an error.
    pub async fn ask(&self, ask: KnowledgeRequest) -> Result<Vec<KnowledgeResponse>, Error> {
        let workspace = WorkspaceId::new("default").unwrap();
        let to = Topic::workspace(Class::Request, "knowledge", &workspace);
        let options = Ask {
            deadline: Some(Deadline::after(SOON)),
            ..Ask::default()
        };
        let mut answer = self.flow.mesh.ask(&to, &ask, options);
        let mut parts: Vec<KnowledgeResponse> = Vec::new();
        while let Some(part) = answer.next().await {
            let part: KnowledgeResponse = part?;
            match part.error {
                Some(error) => return Err(error),
                None => parts.push(part),
            }
        }
        Ok(parts)
    }

    /// The one part of an answer.
    pub async fn one(&self, ask: KnowledgeRequest) -> KnowledgeResponse {
        let mut parts = self.ask(ask).await.expect("answered");
        assert_eq!(parts.len(), 1);
        parts.remove(0)
    }

    /// The parts of a core, without the end.
    pub async fn get(&self, operation: &str, id: &str) -> Vec<KnowledgeResponse> {
        let mut parts = self.ask(about(operation, id)).await.expect("answered");
        let end = parts.pop().expect("an end");
        assert!(end.eos);
        parts
    }

    /// Triples of a core.
    pub async fn triples(&self, id: &str) -> Vec<Triple> {
        match self.ask(about("get-kg-core", id)).await {
            Ok(parts) => {
                let records = parts.into_iter().filter_map(|part| part.triples);
                records.flat_map(|record| record.triples).collect()
            }
            Err(error) => {
                assert_eq!(error.code(), ErrorCode::NotFound, "{error}");
                Vec::new()
            }
        }
    }
}

/// A question about a core.
pub fn about(operation: &str, id: &str) -> KnowledgeRequest {
    KnowledgeRequest {
        operation: operation.to_owned(),
        id: id.to_owned(),
        ..KnowledgeRequest::default()
    }
}

/// A question to load or unload.
pub fn into(operation: &str, id: &str, collection: &str) -> KnowledgeRequest {
    KnowledgeRequest {
        flow: "default".to_owned(),
        collection: collection.to_owned(),
        ..about(operation, id)
    }
}

pub fn metadata(id: &str, root: &str) -> Option<Metadata> {
    Some(Metadata {
        id: id.to_owned(),
        root: root.to_owned(),
        collection: "default".to_owned(),
    })
}

/// Triples with everything that is easily lost.
pub fn facts(subject: &str) -> Vec<Triple> {
    let typed = Term::Literal {
        value: "1".into(),
        datatype: "http://www.w3.org/2001/XMLSchema#integer".into(),
        language: String::new(),
    };
    let tagged = Term::Literal {
        value: "Turm".into(),
        datatype: String::new(),
        language: "de".into(),
    };
    let fact = Triple::new(Term::iri(subject), Term::iri("urn:p:height"), typed);
    let quoted = Term::Quoted(Box::new(fact.clone()));
    vec![
        fact,
        Triple::new(Term::iri(subject), Term::iri("urn:p:label"), tagged),
        Triple::new(Term::iri("urn:sub"), Term::iri("urn:contains"), quoted)
            .in_graph("urn:graph:source"),
    ]
}

pub fn entity(name: &str, chunk: &str) -> EntityEmbeddings {
    EntityEmbeddings {
        entity: Some(Term::iri(name)),
        vector: vec![0.25, -1.5],
        chunk_id: chunk.to_owned(),
        rdf_type: vec!["urn:T".into()],
        ..EntityEmbeddings::default()
    }
}

/// A record of triples that is put.
pub fn put(id: &str, triples: Vec<Triple>) -> KnowledgeRequest {
    KnowledgeRequest {
        triples: Some(Triples {
            metadata: metadata(id, ""),
            triples,
        }),
        ..about("put-kg-core", id)
    }
}

/// A record of vectors of entities that is put.
pub fn put_entities(id: &str, entities: Vec<EntityEmbeddings>) -> KnowledgeRequest {
    KnowledgeRequest {
        graph_embeddings: Some(GraphEmbeddings {
            metadata: metadata(id, ""),
            entities,
            model: "m".into(),
        }),
        ..about("put-kg-core", id)
    }
}
