//! A flow with the extractors, a scripted prompt service, and stores that only remember.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tg_extract::Options;
use tg_mesh::Processor;
use tg_schemas::msg::{
    AgentRequest, AgentResponse, Chunk, EntityContexts, ExtractedObject, Metadata, PromptRequest,
    PromptResponse, Triples, ViolationsRequest, ViolationsResponse,
};
use tg_schemas::processors;
use tg_schemas::{Class, Error, Term, Triple, WorkspaceId};
use tg_testkit::config::Config;
use tg_testkit::fakes::{Embeddings, Library, Play, Played, RecordingConsumer};
use tg_testkit::flow::{TestFlow, Wiring};
use tg_testkit::place::Place;

pub(crate) const TEXT: &str = "The Old Bridge is a bridge over the Sell. It was built in 1429.";

const EXTRACTOR: &[(&str, Class, &str)] = &[
    ("input", Class::Flow, "chunk-load"),
    ("triples", Class::Flow, "triples-store"),
    ("entity-contexts", Class::Flow, "entity-contexts-load"),
    ("output", Class::Flow, "rows-store"),
    ("prompt-request", Class::Request, "prompt"),
    ("embeddings-request", Class::Request, "embeddings"),
    ("agent-request", Class::Request, "agent"),
];
const SERVICES: &[Wiring] = &[
    ("prompt", &[("request", Class::Request, "prompt")]),
    ("embeddings", &[("request", Class::Request, "embeddings")]),
    ("agent-manager", &[("request", Class::Request, "agent")]),
    ("triples-write", &[("input", Class::Flow, "triples-store")]),
    (
        "graph-embeddings",
        &[("input", Class::Flow, "entity-contexts-load")],
    ),
    ("rows-write", &[("input", Class::Flow, "rows-store")]),
];

/// Replies in the order they are played, then the last one again.
type Replies = Arc<Mutex<VecDeque<Result<Reply, Error>>>>;

#[derive(Clone)]
pub(crate) struct Reply {
    pub(crate) items: Value,
    pub(crate) dropped: i64,
}

pub(crate) fn items(items: Value) -> Result<Reply, Error> {
    Ok(Reply { items, dropped: 0 })
}

fn next(replies: &Replies) -> Result<Reply, Error> {
    let mut replies = replies.lock();
    match replies.len() {
        0 => items(json!([])),
        1 => replies[0].clone(),
        _ => replies.pop_front().unwrap_or_else(|| items(json!([]))),
    }
}

fn prompts(replies: Replies) -> Arc<Played<PromptRequest, PromptResponse>> {
    Played::new(move |_, _| {
        let reply = next(&replies)?;
        // Others get the chance to ask meanwhile.
        Ok(Play::from(PromptResponse {
            object: reply.items.to_string(),
            dropped: reply.dropped,
            model: Some("m-1".to_owned()),
            end_of_stream: true,
            ..PromptResponse::default()
        })
        .yielding())
    })
}

fn agent(replies: Replies) -> Arc<Played<AgentRequest, AgentResponse>> {
    Played::new(move |_, _| {
        let content = match next(&replies)?.items {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let thought = AgentResponse {
            message_type: "thought".to_owned(),
            content: "{\"entity\": \"no\", \"definition\": \"answer\"}".to_owned(),
            end_of_message: true,
            ..AgentResponse::default()
        };
        let answer = AgentResponse {
            message_type: "answer".to_owned(),
            content,
            end_of_message: true,
            end_of_dialog: true,
            model: Some("m-2".to_owned()),
            ..AgentResponse::default()
        };
        Ok(vec![thought, answer])
    })
}

/// One dimension for each of a few words.
fn vector(text: &str) -> Vec<f32> {
    let text = text.to_lowercase();
    ["bridge", "person", "river", "book"]
        .map(|word| if text.contains(word) { 1.0 } else { 0.0 })
        .to_vec()
}

pub(crate) struct World {
    pub(crate) flow: TestFlow,
    pub(crate) prompts: Arc<Played<PromptRequest, PromptResponse>>,
    pub(crate) agent: Arc<Played<AgentRequest, AgentResponse>>,
    pub(crate) embeddings: Arc<Embeddings>,
    pub(crate) triples: Arc<RecordingConsumer<Triples>>,
    pub(crate) contexts: Arc<RecordingConsumer<EntityContexts>>,
    pub(crate) rows: Arc<RecordingConsumer<ExtractedObject>>,
    pub(crate) library: Arc<Library>,
    _dir: TempDir,
}

impl World {
    /// A flow with one extractor.
    pub(crate) async fn start(
        place: &Place,
        extractor: &'static str,
        rows: Config,
        replies: impl IntoIterator<Item = Result<Reply, Error>>,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let replies = Arc::new(Mutex::new(replies.into_iter().collect()));
        let (prompts, agent) = (prompts(Arc::clone(&replies)), agent(replies));
        let (triples, contexts, objects) = (Arc::default(), Arc::default(), Arc::default());
        let embeddings = Embeddings::new("e-1", vector);
        let library = Arc::<Library>::default();
        let input = |base: &str| {
            let topic = tg_testkit::flow::topic(Class::Flow, base);
            json!({"flow": topic.to_string()})
        };
        let record = json!({
            "blueprint-name": "b", "status": "running", "epoch": 1,
            "interfaces": {
                "triples-store": input("triples-store"),
                "entity-contexts-load": input("entity-contexts-load"),
            },
        });
        rows.put("flow", "default", &record.to_string());
        let mut wiring = SERVICES.to_vec();
        wiring.push((extractor, EXTRACTOR));
        let flow = TestFlow::start(place, rows, &wiring, |mesh| {
            let options = Options {
                data_dir: dir.path().to_owned(),
                ..Options::default()
            };
            let all = tg_extract::processors(mesh, options);
            let mut hosted: Vec<Processor> = all;
            let kept: &Arc<RecordingConsumer<Triples>> = &triples;
            hosted.push(
                Processor::new(processors::triples_write::PROCESSOR)
                    .reads(processors::triples_write::INPUT, kept.clone()),
            );
            let kept: &Arc<RecordingConsumer<EntityContexts>> = &contexts;
            hosted.push(
                Processor::new(processors::graph_embeddings::PROCESSOR)
                    .reads(processors::graph_embeddings::INPUT, kept.clone()),
            );
            let kept: &Arc<RecordingConsumer<ExtractedObject>> = &objects;
            hosted.push(
                Processor::new(processors::rows_write::PROCESSOR)
                    .reads(processors::rows_write::INPUT, kept.clone()),
            );
            hosted.push(
                Processor::new(processors::ProcessorSpec::unlisted("library"))
                    .serves(processors::librarian::LIBRARIAN, library.clone()),
            );
            hosted.push(
                Processor::new(processors::prompt::PROCESSOR)
                    .serves(processors::prompt::REQUEST, prompts.clone()),
            );
            hosted.push(
                Processor::new(processors::agent_manager::PROCESSOR)
                    .serves(processors::agent_manager::REQUEST, agent.clone()),
            );
            hosted.push(
                Processor::new(processors::embeddings::PROCESSOR)
                    .serves(processors::embeddings::REQUEST, embeddings.clone()),
            );
            hosted
        })
        .await;
        Self {
            flow,
            prompts,
            agent,
            embeddings,
            triples,
            contexts,
            rows: objects,
            library,
            _dir: dir,
        }
    }

    /// Asks about what did not fit.
    pub(crate) async fn violations(
        &self,
        operation: &str,
        id: &str,
    ) -> Result<ViolationsResponse, Error> {
        let workspace = WorkspaceId::new("default").unwrap();
        let to = processors::violations::VIOLATIONS.of_workspace(&workspace);
        let question = ViolationsRequest {
            operation: operation.to_owned(),
            id: id.to_owned(),
            ..ViolationsRequest::default()
        };
        let answer = self.flow.mesh.ask(&to, &question, self.flow.options());
        answer.last().await
    }

    /// A page of the violations: which of them, and where the next begins.
    pub(crate) async fn page_of_violations(
        &self,
        limit: i64,
        after: &str,
    ) -> (Vec<String>, String) {
        let workspace = WorkspaceId::new("default").unwrap();
        let to = processors::violations::VIOLATIONS.of_workspace(&workspace);
        let question = ViolationsRequest {
            operation: "list-violations".to_owned(),
            limit,
            after: after.to_owned(),
            ..ViolationsRequest::default()
        };
        let answer = self.flow.mesh.ask(&to, &question, self.flow.options());
        let page: ViolationsResponse = answer.last().await.unwrap();
        (
            page.violations.into_iter().map(|one| one.id).collect(),
            page.next,
        )
    }

    /// How often something was asked of a model.
    pub(crate) fn calls(&self) -> usize {
        self.prompts.asked.lock().len() + self.agent.asked.lock().len()
    }

    /// Processes a chunk to the end; what the tally was told of it.
    pub(crate) async fn process(&self, chunk: &Chunk, id: &str) -> tg_schemas::msg::RunTallyEntry {
        let run = tg_runs::JobId::new(0, "default", "p");
        self.flow.write_in("chunk-load", chunk, &run, id).await;
        self.flow.tallied(id).await
    }
}

pub(crate) fn chunk(id: &str, text: &str) -> Chunk {
    Chunk {
        metadata: Some(Metadata {
            id: "urn:page:1".to_owned(),
            root: "urn:doc:1".to_owned(),
            collection: "c".to_owned(),
        }),
        chunk: text.to_owned(),
        document_id: id.to_owned(),
        ..Chunk::default()
    }
}

/// What was done of a record, but for how much was handed on.
pub(crate) fn work(entry: &tg_schemas::msg::RunTallyEntry) -> BTreeMap<String, i64> {
    let mut effects = entry.effects.clone();
    effects.retain(|kind, _| !["triples", "rows"].contains(&kind.as_str()));
    effects
}

/// Objects of triples with a predicate.
pub(crate) fn objects(triples: &[Triple], predicate: &str) -> Vec<Term> {
    let wanted = Some(Term::iri(predicate));
    let matching = triples.iter().filter(|triple| triple.p == wanted);
    matching.filter_map(|triple| triple.o.clone()).collect()
}

pub(crate) fn effects(pairs: &[(&str, i64)]) -> BTreeMap<String, i64> {
    pairs
        .iter()
        .map(|(kind, count)| ((*kind).to_owned(), *count))
        .collect()
}
