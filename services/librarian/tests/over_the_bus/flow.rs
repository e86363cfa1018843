//! A small flow: a chunker that cuts at blanks (each word is a page), an index of words, a store of triples, and a flow service
//! that keeps what they dead-lettered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tg_mesh::bus::{PublishMode, Target};
use tg_mesh::{ConsumeError, Cx, Envelope, Processor, RecordConsumer, RequestHandler, Responder};
use tg_runs::RunContext;
use tg_schemas::codec::ContentType;
use tg_schemas::msg::{
    Chunk, CollectionDrop, CollectionDropped, DeadLetter, DocumentMetadata, FlowRequest,
    FlowResponse, LibrarianRequest, Retract, TextDocument, Triples,
};
use tg_schemas::processors;
use tg_schemas::{Error, ErrorCode, Headers, Subscription, Topic, Triple};
use tg_testkit::fakes::Played;

use crate::world::{World, about, soon};

/// What happened in the flow.
#[derive(Default)]
pub struct Stores {
    /// Chunks in the index, by collection.
    pub words: Mutex<BTreeSet<(String, String)>>,
    /// How often each chunk was sent.
    pub sent: Mutex<BTreeMap<String, u32>>,
    pub triples: Mutex<Vec<(String, Triple)>>,
    pub retracted: Mutex<Vec<Retract>>,
    pub dropped: Mutex<Vec<(String, CollectionDrop)>>,
    /// The index cannot take words that begin with `bad`.
    pub picky: AtomicBool,
    /// The graph does not drop anything.
    pub stubborn: AtomicBool,
    /// The index waits with everything.
    pub held: tokio::sync::Mutex<()>,
    aside: Mutex<BTreeMap<i64, DeadLetter>>,
    numbers: AtomicI64,
}

struct Chunker(Arc<Stores>);

#[async_trait]
impl RecordConsumer<TextDocument> for Chunker {
    async fn consume(&self, cx: Cx, record: TextDocument) -> Result<(), ConsumeError> {
        let metadata = record.metadata.unwrap();
        let ask = about("get-document-content", &record.document_id);
        let asked = cx.ask(processors::chunker::LIBRARIAN, &ask)?;
        let content = STANDARD.decode(asked.last().await?.content).unwrap();
        let text = String::from_utf8(content).unwrap();
        let words: Vec<&str> = text.split_whitespace().collect();
        let ask = LibrarianRequest {
            document_metadatas: words
                .iter()
                .zip(1..)
                .map(|(word, page)| DocumentMetadata {
                    id: format!("urn:chunk:{word}"),
                    comments: format!("page {page}"),
                    kind: "text/plain".into(),
                    parent_id: record.document_id.clone(),
                    document_type: "chunk".into(),
                    ..DocumentMetadata::default()
                })
                .collect(),
            contents: words.iter().map(|word| STANDARD.encode(word)).collect(),
            ..about("add-children", &metadata.root)
        };
        let asked = cx.ask(processors::chunker::LIBRARIAN, &ask)?;
        let unchanged = asked.last().await?.document_metadatas;
        for word in words {
            let id = format!("urn:chunk:{word}");
            if unchanged.iter().any(|child| child.id == id) {
                continue;
            }
            let chunk = Chunk {
                metadata: Some(metadata.clone()),
                chunk: word.to_owned(),
                document_id: id.clone(),
                ..Chunk::default()
            };
            cx.record(processors::chunker::OUTPUT, &chunk).await?;
            *self.0.sent.lock().entry(id).or_default() += 1;
            cx.effect("chunks", 1);
        }
        Ok(())
    }
}

struct Index(Arc<Stores>);

#[async_trait]
impl RecordConsumer<Chunk> for Index {
    async fn consume(&self, cx: Cx, record: Chunk) -> Result<(), ConsumeError> {
        cx.subject(&record.document_id);
        let _free = self.0.held.lock().await;
        if record.chunk.starts_with("bad") && self.0.picky.load(Ordering::SeqCst) {
            let text = format!("cannot take {}", record.chunk);
            return Err(ConsumeError::Dead(Error::new(ErrorCode::BadRequest, text)));
        }
        let collection = record.metadata.unwrap().collection;
        self.0.words.lock().insert((collection, record.document_id));
        cx.effect("keywords", 1);
        Ok(())
    }
}

#[async_trait]
impl RecordConsumer<Retract> for Index {
    async fn consume(&self, _: Cx, record: Retract) -> Result<(), ConsumeError> {
        let collection = record.metadata.as_ref().unwrap().collection.clone();
        self.0
            .words
            .lock()
            .retain(|(of, chunk)| *of != collection || !record.chunks.contains(chunk));
        self.0.retracted.lock().push(record);
        Ok(())
    }
}

struct Graph(Arc<Stores>);

#[async_trait]
impl RecordConsumer<Triples> for Graph {
    async fn consume(&self, cx: Cx, record: Triples) -> Result<(), ConsumeError> {
        let collection = record.metadata.unwrap().collection;
        cx.effect("triples", record.triples.len() as i64);
        let mut triples = self.0.triples.lock();
        triples.extend(
            record
                .triples
                .into_iter()
                .map(|one| (collection.clone(), one)),
        );
        Ok(())
    }
}

/// What a store says when it is to drop a collection.
fn drops(
    store: &'static str,
    stores: &Arc<Stores>,
) -> Arc<Played<CollectionDrop, CollectionDropped>> {
    let stores = stores.clone();
    Played::new(move |_, ask: CollectionDrop| {
        if store == "graph" && stores.stubborn.load(Ordering::SeqCst) {
            return Err(Error::new(ErrorCode::Storage, "the disk is full"));
        }
        stores.dropped.lock().push((store.to_owned(), ask));
        Ok(CollectionDropped::default())
    })
}

/// Plays the flow service, as far as dead letters go.
struct Flows(Arc<Stores>);

#[async_trait]
impl RecordConsumer<DeadLetter> for Flows {
    async fn consume(&self, _: Cx, record: DeadLetter) -> Result<(), ConsumeError> {
        let number = self.0.numbers.fetch_add(1, Ordering::SeqCst);
        self.0.aside.lock().insert(number, record);
        Ok(())
    }
}

#[async_trait]
impl RequestHandler<FlowRequest, FlowResponse> for Flows {
    async fn serve(
        &self,
        cx: Cx,
        ask: FlowRequest,
        mut out: Responder<FlowResponse>,
    ) -> Result<(), Error> {
        let id = || -> i64 { ask.parameters["put-aside-id"].parse().unwrap() };
        let line = |id: &i64, one: &DeadLetter| {
            json!({"id": id.to_string(), "flow-id": one.flow, "subscription": one.subscription,
                   "reason": one.reason})
        };
        let shown: Value = match ask.operation.as_str() {
            "list-put-aside" => {
                let aside = self.0.aside.lock();
                let chosen = aside.iter().filter(|(_, one)| {
                    one.reason == ask.parameters["reason"] && one.flow == ask.flow_id
                });
                chosen.map(|(id, one)| line(id, one)).collect()
            }
            "show-put-aside" => {
                let aside = self.0.aside.lock();
                let one = &aside[&id()];
                let mut shown = line(&id(), one);
                shown["headers"] = serde_json::from_str(&one.headers).unwrap();
                shown
            }
            "replay-put-aside" => {
                let one = self.0.aside.lock().remove(&id()).unwrap();
                let headers: Headers = serde_json::from_str(&one.headers).unwrap();
                let target = Target::Subscription(Subscription {
                    topic: Topic::parse(&one.topic).unwrap(),
                    name: one.subscription.clone(),
                });
                let envelope = Envelope {
                    headers: Arc::new(headers),
                    content_type: ContentType::parse(&one.content_type),
                    body: one.into_body().unwrap(),
                    ..Envelope::default()
                };
                let bus = cx.mesh.bus();
                bus.publish(&target, envelope, PublishMode::Confirmed)
                    .await
                    .unwrap();
                json!([])
            }
            other => panic!("{other}"),
        };
        out.send(FlowResponse {
            flow: json!({"put-aside": shown}).to_string(),
            ..FlowResponse::default()
        })
        .await
    }
}

impl Stores {
    /// How many chunks of a collection are in the index.
    pub fn count(&self, collection: &str) -> usize {
        let words = self.words.lock();
        words.iter().filter(|(of, _)| of == collection).count()
    }
}

/// Starts flow `f` in workspace `default`.
pub async fn start(world: &World) -> Arc<Stores> {
    let stores = Arc::new(Stores::default());
    start_over(world, &stores).await;
    stores
}

/// As [`start`], over stores that were there before.
pub async fn start_over(world: &World, s: &Arc<Stores>) {
    let processors = [
        Processor::new(processors::chunker::PROCESSOR)
            .reads(processors::chunker::INPUT, Arc::new(Chunker(s.clone()))),
        Processor::new(processors::kw_index::PROCESSOR)
            .reads(processors::kw_index::INPUT, Arc::new(Index(s.clone())))
            .reads(processors::kw_index::RETRACT, Arc::new(Index(s.clone())))
            .serves(processors::kw_index::DROP, drops("keywords", s)),
        Processor::new(processors::triples_write::PROCESSOR)
            .reads(processors::triples_write::INPUT, Arc::new(Graph(s.clone())))
            .serves(processors::triples_write::DROP, drops("graph", s)),
        Processor::new(processors::flow_svc::PROCESSOR)
            .serves(processors::flow_svc::FLOW, Arc::new(Flows(s.clone())))
            .reads(
                processors::flow_svc::DEAD_LETTERS,
                Arc::new(Flows(s.clone())),
            ),
    ];
    for processor in processors {
        world.mesh.host(processor).await.unwrap();
    }
    run(world, 1).await;
}

/// Writes the rows of a start.
pub async fn run(world: &World, epoch: u64) {
    let topic = |base: &str| format!("flow:tg:{base}:default:f");
    let queue = |base: &str, name: &str| json!({"topic": topic(base), "name": name});
    let flow = json!({
        "blueprint-name": "b", "epoch": epoch, "parameters": {"chunk-size": "10"},
        "interfaces": {"text-load": {"flow": topic("text-document-load")},
                       "document-load": {"flow": topic("document-load")},
                       "triples-store": {"flow": topic("triples-store")}},
        "plan": {"queues": [queue("retract", "kw-index--default--f--retract")]},
    });
    let row = |topics: Value| json!({"topics": topics, "epoch": epoch}).to_string();
    let chunker = row(json!({
        "input": topic("text-document-load"), "output": topic("chunk-load"),
        "librarian-request": "request:tg:librarian:default",
    }));
    let index = row(json!({"input": topic("chunk-load")}));
    let graph = row(json!({"input": topic("triples-store")}));
    let flow = flow.to_string();
    let rows = [
        ("processor:chunker", "f", Some(chunker.as_str())),
        ("processor:kw-index", "f", Some(index.as_str())),
        ("processor:triples-write", "f", Some(graph.as_str())),
        ("flow", "f", Some(flow.as_str())),
    ];
    world.config.change(&world.mesh, "default", &rows).await;
    soon("the flow is attached", || {
        let ids = ["chunker", "kw-index", "triples-write"];
        let view = world.mesh.presence();
        ids.iter()
            .all(|id| view.attached(id, "default", "f", epoch))
    })
    .await;
}
