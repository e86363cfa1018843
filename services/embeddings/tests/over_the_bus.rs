//! The processors as others meet them: texts in, vectors out, many records to a question; a failure is
//! tried again, and what is wrong holds up nobody else.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tg_runs::RunId;

use async_trait::async_trait;
use tg_embeddings::EmbeddingSettings;
use tg_mesh::embedded::EmbeddedBus;
use tg_mesh::{
    Ask, Cx, Deadline, Host, MeshOptions, Out, Processor, Read, ReadFault, Serve, put_aside,
};
use tg_schemas::msg::{
    Chunk, ConfigRequest, ConfigResponse, ConfigValue, DocumentEmbeddings, EmbeddingsRequest,
    EmbeddingsResponse, EntityContext, EntityContexts, ExtractedObject, GraphEmbeddings, Metadata,
    PutAside, RUN_TALLY, RowEmbeddings, RunTally, RunTallyEntry,
};
use tg_schemas::{Class, Error, ErrorCode, FlowId, Message, Term, Topic, WorkspaceId};
use tokio::sync::watch;

const SOON: Duration = Duration::from_secs(20);

fn topic(class: Class, base: &str) -> Topic {
    let workspace = WorkspaceId::new("default").unwrap();
    let flow = FlowId::new("default").unwrap();
    Topic::flow(class, base, &workspace, &flow)
}

/// Plays the config service for workspace and flow `default`.
struct Config(Vec<(String, String, String)>);

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
        let values = if ask.r#type == "workspace" {
            vec![row("__workspaces__", "workspace", "default", "{}")]
        } else {
            let wanted = self.0.iter().filter(|(kind, _, _)| *kind == ask.r#type);
            wanted
                .map(|(kind, key, value)| row("default", kind, key, value))
                .collect()
        };
        out.send(ConfigResponse {
            values,
            ..ConfigResponse::default()
        })
        .await
    }
}

/// Plays the embeddings service: the vector of a text is its length.
#[derive(Default)]
struct Lengths {
    questions: AtomicUsize,
    texts: AtomicUsize,
    down: AtomicBool,
}

#[async_trait]
impl Serve<EmbeddingsRequest, EmbeddingsResponse> for Lengths {
    async fn serve(
        &self,
        _: Cx,
        ask: EmbeddingsRequest,
        mut out: Out<EmbeddingsResponse>,
    ) -> Result<(), Error> {
        self.questions.fetch_add(1, Ordering::SeqCst);
        self.texts.fetch_add(ask.texts.len(), Ordering::SeqCst);
        if self.down.load(Ordering::SeqCst) {
            return Err(Error::typed("embeddings-error", "out of order"));
        }
        if ask.texts.iter().any(|text| text == "poison") {
            return Err(Error::new(ErrorCode::TooLarge, "texts: too long"));
        }
        let vectors = ask.texts.iter().map(|text| vec![text.len() as f32]);
        let vectors: Vec<_> = vectors.collect();
        let answer = EmbeddingsResponse::new(&vectors, "lengths/1".into(), ask.packed);
        out.send(answer).await
    }
}

/// Keeps what it reads.
struct Kept<M>(watch::Sender<Vec<M>>);

#[async_trait]
impl<M: Message + Clone> Read<M> for Kept<M> {
    async fn read(&self, _: Cx, record: M) -> Result<(), ReadFault> {
        self.0.send_modify(|all| all.push(record));
        Ok(())
    }
}

fn kept<M: Message + Clone>() -> (Arc<Kept<M>>, watch::Receiver<Vec<M>>) {
    let (sender, receiver) = watch::channel(Vec::new());
    (Arc::new(Kept(sender)), receiver)
}

async fn until<M: Clone>(of: &watch::Receiver<Vec<M>>, so: impl Fn(&[M]) -> bool) -> Vec<M> {
    let mut of = of.clone();
    let waited = tokio::time::timeout(SOON, of.wait_for(|all| so(all))).await;
    waited.expect("it becomes so").unwrap().clone()
}

struct System {
    mesh: Host,
    chunks: watch::Receiver<Vec<DocumentEmbeddings>>,
    entities: watch::Receiver<Vec<GraphEmbeddings>>,
    rows: watch::Receiver<Vec<RowEmbeddings>>,
    tally: watch::Receiver<Vec<RunTally>>,
}

impl System {
    /// With the service's own `embeddings`, or one that plays it.
    async fn start(played: Option<Arc<Lengths>>, parameters: &str) -> Self {
        let bus = Arc::new(EmbeddedBus::in_memory());
        let mesh = tg_runs::start(bus, MeshOptions::default()).await.unwrap();
        let asks = ("embeddings-request", topic(Class::Request, "embeddings"));
        let flow = |spec, base| (spec, topic(Class::Flow, base));
        let stages = [
            (
                "document-embeddings",
                "chunk-load",
                "document-embeddings-store",
                "keep-chunks",
            ),
            (
                "graph-embeddings",
                "entity-contexts-load",
                "graph-embeddings-store",
                "keep-entities",
            ),
            (
                "row-embeddings",
                "rows-store",
                "row-embeddings-store",
                "keep-rows",
            ),
        ];
        let mut wanted = vec![("embeddings", vec![("request", asks.1.clone())])];
        for (id, input, output, reader) in stages {
            wanted.push((
                id,
                vec![flow("input", input), flow("output", output), asks.clone()],
            ));
            wanted.push((reader, vec![flow("input", output)]));
        }
        let mut rows = vec![(
            "schema".to_owned(),
            "people".to_owned(),
            r#"{"vector-indexes":["name","city"],"fields":[]}"#.to_owned(),
        )];
        for (id, topics) in &wanted {
            let topics: BTreeMap<_, _> = topics
                .iter()
                .map(|(spec, at)| (*spec, at.to_string()))
                .collect();
            let parameters: serde_json::Value = serde_json::from_str(parameters).unwrap();
            let row = serde_json::json!({"topics": topics, "parameters": parameters, "epoch": 1});
            rows.push((format!("processor:{id}"), "default".into(), row.to_string()));
        }
        let service = Processor::new("config-svc").serves_system("config", Arc::new(Config(rows)));
        mesh.host(service).await.unwrap();
        let embedder = EmbeddingSettings::default().build().unwrap();
        // The last one is `embeddings`.
        let mut own = tg_embeddings::processors(embedder);
        if let Some(played) = played {
            own.pop();
            own.push(Processor::new("embeddings").serves("request", played));
        }
        let ((one, chunks), (two, entities)) = (kept(), kept());
        let ((three, rows), (four, tally)) = (kept(), kept());
        own.push(Processor::new("keep-chunks").reads("input", one));
        own.push(Processor::new("keep-entities").reads("input", two));
        own.push(Processor::new("keep-rows").reads("input", three));
        own.push(Processor::new("librarian").reads_system(RUN_TALLY, four));
        for processor in own {
            mesh.host(processor).await.unwrap();
        }
        let attached = mesh.presence().until(SOON, |view| {
            wanted
                .iter()
                .all(|(id, _)| view.attached(id, "default", "default", 1))
        });
        assert!(attached.await, "the flow attaches");
        Self {
            mesh,
            chunks,
            entities,
            rows,
            tally,
        }
    }

    fn options(&self) -> Ask {
        Ask {
            deadline: Some(Deadline::after(SOON)),
            epoch: Some(1),
            ..Ask::default()
        }
    }

    async fn write<M: Message>(&self, base: &str, record: &M) {
        let to = topic(Class::Flow, base);
        self.mesh.record(&to, record, self.options()).await.unwrap();
    }

    async fn embed(&self, texts: &[&str]) -> Result<EmbeddingsResponse, Error> {
        let question = EmbeddingsRequest {
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
            packed: false,
        };
        let to = topic(Class::Request, "embeddings");
        self.mesh.ask(&to, &question, self.options()).last().await
    }

    async fn put_aside(&self) -> PutAside {
        let aside = async {
            loop {
                let taken = self.mesh.bus().take(&put_aside::subscription()).await;
                if let Some(delivery) = taken.unwrap() {
                    let envelope = &delivery.envelope;
                    let record: PutAside = envelope.read().unwrap();
                    delivery.ack();
                    return record;
                }
                tokio::task::yield_now().await;
            }
        };
        let aside = tokio::time::timeout(SOON, aside).await;
        aside.expect("the record is put aside")
    }
}

fn metadata(id: &str) -> Option<Metadata> {
    Some(Metadata {
        id: id.to_owned(),
        root: "urn:doc".to_owned(),
        collection: "c".to_owned(),
    })
}

fn chunk(id: &str, text: &str) -> Chunk {
    Chunk {
        metadata: metadata(id),
        chunk: text.to_owned(),
        document_id: id.to_owned(),
        ..Chunk::default()
    }
}

/// Chunk ids with the first number of their vectors.
fn pairs(records: &[DocumentEmbeddings]) -> BTreeMap<String, f32> {
    let chunks = records.iter().flat_map(|record| &record.chunks);
    chunks
        .map(|chunk| (chunk.chunk_id.clone(), chunk.vector[0]))
        .collect()
}

#[tokio::test]
async fn questions_are_answered_with_the_model() {
    let system = System::start(None, "{}").await;
    let answer = system.embed(&["a pump", "a boiler"]).await.unwrap();
    assert_eq!(
        (answer.model.as_str(), answer.vectors.len()),
        ("lexical/1024", 2)
    );
    let none = system.embed(&[]).await.unwrap();
    assert_eq!(
        (none.model.as_str(), none.vectors.len()),
        ("lexical/1024", 0)
    );
    let other = System::start(None, r#"{"model": "elsewhere"}"#).await;
    let refused = other.embed(&["x"]).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::BadRequest);
}

#[tokio::test]
async fn many_chunks_share_questions_and_records() {
    let played = Arc::new(Lengths::default());
    let system = System::start(Some(played.clone()), "{}").await;
    let to = topic(Class::Flow, "chunk-load");
    let run = RunId::new(0, "default", "p");
    let mut writes = Vec::new();
    for n in 0..200 {
        let record = chunk(&format!("k{n}"), &"x".repeat(n % 150 + 1));
        let options = Ask {
            id: Some(format!("r{n}")),
            thread: Some(run.to_string()),
            ..system.options()
        };
        let (mesh, to) = (system.mesh.clone(), to.clone());
        writes.push(async move { mesh.record(&to, &record, options).await.unwrap() });
    }
    futures::future::join_all(writes).await;
    let done = |records: &[DocumentEmbeddings]| pairs(records).len() == 200;
    let records = until(&system.chunks, done).await;
    let found = pairs(&records);
    assert!((0..200).all(|n| found[&format!("k{n}")] == (n % 150 + 1) as f32));
    assert!(
        records.len() < 50,
        "{} records for 200 chunks",
        records.len()
    );
    assert!(records.iter().all(|record| record.model == "lengths/1"));
    let questions = played.questions.load(Ordering::SeqCst);
    assert!(questions < 50, "{questions} questions for 200 chunks");
    // Of the run, every chunk is told of once, and every record of outcome by one of them.
    let told = until(&system.tally, |told| of_stage(told).len() == 200).await;
    let entries = of_stage(&told);
    assert!(
        entries
            .iter()
            .all(|entry| entry.outcome == "ok" && entry.subject.starts_with('k'))
    );
    let written: usize = entries.iter().map(|entry| entry.written.len()).sum();
    assert_eq!(written, records.len());
}

fn of_stage(told: &[RunTally]) -> Vec<&RunTallyEntry> {
    let entries = told.iter().flat_map(|tally| &tally.entries);
    let own = entries.filter(|entry| entry.subscription.starts_with("document-embeddings--"));
    own.collect()
}

#[tokio::test]
async fn a_failure_is_tried_again_and_never_an_empty_vector() {
    let played = Arc::new(Lengths::default());
    played.down.store(true, Ordering::SeqCst);
    let system = System::start(Some(played.clone()), "{}").await;
    system.write("chunk-load", &chunk("k", "text")).await;
    let aside = system.put_aside().await;
    assert_eq!(
        (aside.reason.as_str(), aside.detail.as_str()),
        ("retry", "out of order")
    );
    assert!(system.chunks.borrow().is_empty());
    played.down.store(false, Ordering::SeqCst);
    system.write("chunk-load", &chunk("k", "text")).await;
    until(&system.chunks, |records| {
        pairs(records).get("k") == Some(&4.0)
    })
    .await;
}

#[tokio::test]
async fn a_bad_text_holds_up_nobody_else() {
    let played = Arc::new(Lengths::default());
    let system = System::start(Some(played), "{}").await;
    let to = topic(Class::Flow, "chunk-load");
    let records = (0..20).map(|n| match n {
        7 => chunk("bad", "poison"),
        8 => chunk("blank", " \n"),
        _ => chunk(&format!("k{n}"), "text"),
    });
    let records: Vec<Chunk> = records.collect();
    let writes = records
        .iter()
        .map(|record| system.mesh.record(&to, record, system.options()));
    for written in futures::future::join_all(writes).await {
        written.unwrap();
    }
    let records = until(&system.chunks, |records| pairs(records).len() == 18).await;
    assert!(!pairs(&records).contains_key("bad") && !pairs(&records).contains_key("blank"));
    let aside = system.put_aside().await;
    assert_eq!(
        (aside.reason.as_str(), aside.detail.as_str()),
        ("dead", "texts: too long")
    );
}

#[tokio::test]
async fn entities_keep_what_is_known_of_them() {
    let system = System::start(Some(Arc::default()), "{}").await;
    let context = |entity: Option<Term>, context: &str| EntityContext {
        entity,
        context: context.to_owned(),
        rdf_type: vec!["urn:T".to_owned()],
        ..EntityContext::default()
    };
    let record = EntityContexts {
        metadata: metadata("urn:chunk:1"),
        entities: vec![
            context(Some(Term::iri("urn:e")), "said"),
            context(None, "of nobody"),
            context(Some(Term::literal("e")), ""),
            context(Some(Term::literal("e")), "said"),
        ],
    };
    system.write("entity-contexts-load", &record).await;
    let records = until(&system.entities, |records| !records.is_empty()).await;
    let entities = &records[0].entities;
    assert_eq!(entities.len(), 2);
    assert_eq!(entities[0].entity, Some(Term::iri("urn:e")));
    assert_eq!(entities[1].entity, Some(Term::literal("e")));
    assert!(
        entities
            .iter()
            .all(|one| one.vector == [4.0] && one.chunk_id == "urn:chunk:1")
    );
    assert_eq!(entities[0].rdf_type, ["urn:T"]);
    let aside = system.put_aside().await;
    assert_eq!(aside.detail, "entities[1].entity: is required");
}

#[tokio::test]
async fn rows_are_embedded_by_the_indexes_of_their_schema() {
    let system = System::start(Some(Arc::default()), "{}").await;
    let row = |name: &str, city: &str| {
        let pairs = [("name", name), ("city", city)];
        pairs
            .map(|(field, value)| (field.to_owned(), value.to_owned()))
            .into()
    };
    let record = |schema: &str| ExtractedObject {
        metadata: metadata("urn:chunk:1"),
        schema_name: schema.to_owned(),
        values: vec![
            row("Vienna", "Vienna"),
            row("Ann", "Vienna"),
            row("", "Graz"),
        ],
        ..ExtractedObject::default()
    };
    system.write("rows-store", &record("people")).await;
    let records = until(&system.rows, |records| !records.is_empty()).await;
    let found: Vec<_> = records[0]
        .embeddings
        .iter()
        .map(|one| (one.index_name.as_str(), one.text.as_str(), one.vector[0]))
        .collect();
    let wanted = [
        ("name", "Vienna", 6.0),
        ("name", "Ann", 3.0),
        ("city", "Vienna", 6.0),
        ("city", "Graz", 4.0),
    ];
    assert_eq!(found, wanted);
    assert_eq!(records[0].schema_name, "people");
    system.write("rows-store", &record("nobody")).await;
    let aside = system.put_aside().await;
    assert_eq!(aside.reason, "retry");
    assert!(
        aside
            .detail
            .starts_with("schema_name: this workspace has no such schema")
    );
}
