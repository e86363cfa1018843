//! The agent and its surroundings in one process: config, prompts, tools, library and triple store are
//! small fakes that note what they are asked.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tg_mesh::embedded::EmbeddedBus;
use tg_mesh::{
    Ask, Bus, ConsumeError, Cx, Host, MeshOptions, Processor, RecordConsumer, RequestHandler,
    Responder,
};
use tg_schemas::msg::*;
use tg_schemas::processors;
use tg_schemas::{Class, Error, ErrorCode, FlowId, Term, Topic, Triple, WorkspaceId};
use tokio::sync::Notify;

use crate::options::Options;
use crate::processors::processor;
use crate::run::Agent;
use crate::store::Ledger;

/// Longest wait for anything.
pub const SOON: Duration = Duration::from_secs(10);

/// What the model does when it is asked next.
pub enum Say {
    /// Replies, cut into pieces if it is to stream.
    Text(&'static str),
    /// Fails.
    Fail(Error),
    /// Says this much and then nothing, until cancelled.
    Hang(&'static str),
}

pub struct World {
    pub mesh: Host,
    pub agent: Arc<Agent>,
    pub ledger: Ledger,
    pub config: Arc<Config>,
    pub model: Arc<Model>,
    pub tools: Arc<Tools>,
    pub library: Arc<Library>,
    pub store: Arc<Store>,
}

impl World {
    pub async fn new(script: impl IntoIterator<Item = Say>) -> Self {
        Self::with(script, Options::default()).await
    }

    pub async fn with(script: impl IntoIterator<Item = Say>, settings: Options) -> Self {
        Self::over(Arc::new(EmbeddedBus::in_memory()), script, settings).await
    }

    pub async fn over(
        bus: Arc<dyn Bus>,
        script: impl IntoIterator<Item = Say>,
        settings: Options,
    ) -> Self {
        let mesh = Host::start(bus, MeshOptions::default()).await.unwrap();
        let ledger = Ledger::in_memory().unwrap();
        let own = ledger.clone();
        let agent = Agent::new(settings, move || Ok(own.clone()));
        let config = Arc::new(Config::default());
        config.tools();
        let model = Arc::new(Model::new(script));
        let world = Self {
            agent: agent.clone(),
            ledger,
            config: config.clone(),
            model: model.clone(),
            tools: Arc::default(),
            library: Arc::default(),
            store: Arc::default(),
            mesh: mesh.clone(),
        };
        for hosted in [
            Processor::new(processors::config_svc::PROCESSOR)
                .serves(processors::config_svc::CONFIG, config),
            Processor::new(processors::librarian::PROCESSOR)
                .reads(processors::librarian::LIBRARY_TEXTS, world.library.clone()),
            Processor::new(processors::prompt::PROCESSOR)
                .serves(processors::prompt::REQUEST, model),
            Processor::new(processors::mcp_tool::PROCESSOR)
                .serves(processors::mcp_tool::REQUEST, world.tools.clone()),
            Processor::new(processors::triples_write::PROCESSOR)
                .reads(processors::triples_write::INPUT, world.store.clone()),
            processor(&agent),
        ] {
            mesh.host(hosted).await.unwrap();
        }
        world.ready().await;
        world
    }

    async fn ready(&self) {
        self.attached(&["prompt", "mcp-tool", "triples-write", "agent-manager"])
            .await;
    }

    /// Waits until these processors are attached to the flow.
    pub async fn attached(&self, ids: &[&str]) {
        let mut changed = self.mesh.presence().changed();
        let mut configured = self.mesh.config().changes();
        let attached = async {
            while !ids
                .iter()
                .all(|id| self.mesh.presence().attached(id, "default", "default", 1))
                || self
                    .mesh
                    .config()
                    .values("default", "tool-native")
                    .is_empty()
                || !self.mesh.presence().hosted("librarian")
            {
                tokio::select! {
                    _ = changed.changed() => {}
                    _ = configured.changed() => {}
                }
            }
        };
        tokio::time::timeout(SOON, attached)
            .await
            .expect("the flow attaches");
    }

    pub fn ask(&self, question: &AgentRequest) -> tg_mesh::Answer<AgentResponse> {
        self.ask_with(question, Ask::default())
    }

    pub fn ask_with(&self, question: &AgentRequest, ask: Ask) -> tg_mesh::Answer<AgentResponse> {
        self.mesh
            .ask(&topic(Class::Request, "agent"), question, ask)
    }

    /// All chunks of a dialog.
    pub async fn run(&self, question: &AgentRequest) -> Vec<AgentResponse> {
        let mut answer = self.ask(question);
        let mut chunks = Vec::new();
        while let Some(part) = tokio::time::timeout(SOON, answer.next())
            .await
            .expect("a chunk in time")
        {
            chunks.push(part.expect("a chunk"));
        }
        chunks
    }

    /// Waits until the trace holds an end of the run, and returns why it ended.
    pub async fn ended(&self) -> String {
        let reason = "https://trustgraph.ai/ns/terminationReason";
        let told = self
            .store
            .wait(|triples| !values(triples, reason).is_empty());
        tokio::time::timeout(SOON, told)
            .await
            .expect("an end in the trace");
        values(&self.store.triples(), reason).join(" ")
    }
}

pub fn topic(class: Class, base: &str) -> Topic {
    let (workspace, flow) = (
        WorkspaceId::new("default").unwrap(),
        FlowId::new("default").unwrap(),
    );
    Topic::flow(class, base, &workspace, &flow)
}

pub fn question(text: &str, streaming: bool) -> AgentRequest {
    AgentRequest {
        question: text.to_owned(),
        streaming,
        ..AgentRequest::default()
    }
}

/// Literals of a predicate.
pub fn values(triples: &BTreeSet<Triple>, predicate: &str) -> Vec<String> {
    let with = |t: &&Triple| t.p == Some(Term::iri(predicate));
    triples
        .iter()
        .filter(with)
        .filter_map(|t| match &t.o {
            Some(Term::Literal { value, .. }) => Some(value.clone()),
            Some(Term::Iri(iri)) => Some(iri.clone()),
            _ => None,
        })
        .collect()
}

/// The rows of a flow `default` with everything in it.
#[derive(Default)]
pub struct Config {
    rows: Mutex<BTreeMap<(String, String), String>>,
    version: AtomicI64,
}

impl Config {
    pub fn set(&self, kind: &str, key: &str, value: &Value) {
        let row = (kind.to_owned(), key.to_owned());
        self.rows.lock().insert(row, value.to_string());
    }

    /// A row.
    pub fn get(&self, kind: &str, key: &str) -> String {
        self.rows.lock()[&(kind.to_owned(), key.to_owned())].clone()
    }

    /// Sets a row of the running flow's workspace, and waits until the agent knows it.
    pub async fn put(&self, mesh: &tg_mesh::Mesh, kind: &str, key: &str, value: &Value) {
        self.set(kind, key, value);
        let version = self.version.fetch_add(1, Ordering::SeqCst) + 1;
        let push = ConfigPush {
            version,
            changes: BTreeMap::from([(kind.to_owned(), vec!["default".to_owned()])]),
            ..ConfigPush::default()
        };
        let notices = Topic::system(Class::Notify, "config");
        mesh.notify(&notices, &push).await.unwrap();
        let mut changes = mesh.config().changes();
        let known = changes.wait_for(|at| *at >= version);
        tokio::time::timeout(SOON, known).await.unwrap().unwrap();
    }

    fn tools(&self) {
        let flow = |topics: Value| json!({"topics": topics, "parameters": {}, "epoch": 1});
        let request = |base: &str| topic(Class::Request, base).to_string();
        self.set(
            "processor:agent-manager",
            "default",
            &flow(json!({
                "request": request("agent"),
                "prompt-request": request("prompt"),
                "mcp-tool-request": request("mcp-tool"),
                "librarian-request": "request:tg:librarian:default",
                "explainability": topic(Class::Flow, "triples-store").to_string(),
            })),
        );
        self.set(
            "processor:prompt",
            "default",
            &flow(json!({"request": request("prompt")})),
        );
        self.set(
            "processor:mcp-tool",
            "default",
            &flow(json!({"request": request("mcp-tool")})),
        );
        self.set(
            "processor:triples-write",
            "default",
            &flow(json!({
                "input": topic(Class::Flow, "triples-store").to_string(),
            })),
        );
        self.set("tool-native", "calculator", &json!({"description": "adds"}));
        self.set(
            "tool",
            "remote",
            &json!({
                "name": "remote", "type": "mcp-tool", "mcp-tool": "far", "state": "moved",
                "arguments": [{"name": "x", "type": "number"}],
            }),
        );
        self.set("tool", "broken", &json!({"type": "nonsense"}));
        self.set(
            "tool",
            "llm",
            &json!({"name": "llm", "type": "text-completion"}),
        );
    }
}

#[async_trait]
impl RequestHandler<ConfigRequest, ConfigResponse> for Config {
    async fn serve(
        &self,
        _: Cx,
        ask: ConfigRequest,
        mut out: Responder<ConfigResponse>,
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
            let rows = self.rows.lock();
            let wanted = rows.iter().filter(|((kind, _), _)| *kind == ask.r#type);
            wanted
                .map(|((kind, key), value)| row("default", kind, key, value))
                .collect()
        };
        out.send(ConfigResponse {
            version: self.version.load(Ordering::SeqCst),
            values,
            ..ConfigResponse::default()
        })
        .await
    }
}

/// Plays the prompt service with a model behind it.
pub struct Model {
    script: Mutex<VecDeque<Say>>,
    /// Variables of each `agent-react` question.
    pub asked: Mutex<Vec<BTreeMap<String, Value>>>,
    pub hanging: Notify,
    pub cancelled: Notify,
}

impl Model {
    fn new(script: impl IntoIterator<Item = Say>) -> Self {
        Self {
            script: Mutex::new(script.into_iter().collect()),
            asked: Mutex::default(),
            hanging: Notify::new(),
            cancelled: Notify::new(),
        }
    }

    pub fn calls(&self) -> usize {
        self.asked.lock().len()
    }
}

#[async_trait]
impl RequestHandler<PromptRequest, PromptResponse> for Model {
    async fn serve(
        &self,
        cx: Cx,
        ask: PromptRequest,
        mut out: Responder<PromptResponse>,
    ) -> Result<(), Error> {
        let last = |text: &str| PromptResponse {
            text: text.to_owned(),
            end_of_stream: true,
            in_token: Some(100),
            out_token: Some(10),
            model: Some("scripted".into()),
            ..PromptResponse::default()
        };
        let terms: BTreeMap<String, Value> = ask
            .terms
            .iter()
            .map(|(name, text)| (name.clone(), serde_json::from_str(text).expect("JSON")))
            .collect();
        if ask.id == "question" {
            return out
                .send(last(&format!("You said {}", terms["question"])))
                .await;
        }
        assert_eq!(ask.id, "agent-react");
        self.asked.lock().push(terms);
        let say = self.script.lock().pop_front();
        let pieces = |text: &str| -> Vec<String> {
            let chars: Vec<char> = text.chars().collect();
            chars
                .chunks(7)
                .map(|piece| piece.iter().collect())
                .collect()
        };
        let part = |text: String| PromptResponse {
            text,
            ..PromptResponse::default()
        };
        match say.unwrap_or(Say::Text("Final Answer: out of script")) {
            Say::Fail(error) => Err(error),
            Say::Text(text) if !ask.streaming => out.send(last(text)).await,
            Say::Text(text) => {
                for piece in pieces(text) {
                    out.send(part(piece)).await?;
                    // Lets the asker take each piece as it comes.
                    tokio::task::yield_now().await;
                }
                out.send(last("")).await
            }
            Say::Hang(text) => {
                for piece in pieces(text) {
                    out.send(part(piece)).await?;
                }
                self.hanging.notify_one();
                cx.cancel.cancelled().await;
                self.cancelled.notify_one();
                Ok(())
            }
        }
    }
}

/// Plays the tool service.
#[derive(Default)]
pub struct Tools {
    pub calls: Mutex<Vec<(String, Value)>>,
    pub hang: Mutex<bool>,
    pub hanging: Notify,
}

#[async_trait]
impl RequestHandler<ToolRequest, ToolResponse> for Tools {
    async fn serve(
        &self,
        cx: Cx,
        ask: ToolRequest,
        mut out: Responder<ToolResponse>,
    ) -> Result<(), Error> {
        let parameters: Value = serde_json::from_str(&ask.parameters).expect("JSON");
        self.calls
            .lock()
            .push((ask.name.clone(), parameters.clone()));
        if *self.hang.lock() {
            self.hanging.notify_one();
            cx.cancel.cancelled().await;
            return Ok(());
        }
        if parameters["expression"] == "1/0" {
            return Err(Error::new(ErrorCode::Tool, "division by zero"));
        }
        out.send(ToolResponse {
            text: format!(" {} says 4\n", ask.name),
            ..ToolResponse::default()
        })
        .await
    }
}

/// Plays the librarian, as far as it takes texts in.
#[derive(Default)]
pub struct Library {
    /// Title and text by document id.
    pub documents: Mutex<BTreeMap<String, (String, String)>>,
    away: Mutex<bool>,
    changed: Notify,
}

impl Library {
    /// From now on it takes nothing in, or again what waits.
    pub fn set_away(&self, away: bool) {
        *self.away.lock() = away;
        self.changed.notify_waiters();
    }

    /// The documents, as soon as there are so many.
    pub async fn holds(&self, count: usize) -> BTreeMap<String, (String, String)> {
        let held = async {
            loop {
                let changed = self.changed.notified();
                let documents = self.documents.lock().clone();
                if documents.len() >= count {
                    return documents;
                }
                changed.await;
            }
        };
        tokio::time::timeout(SOON, held)
            .await
            .expect("the texts come")
    }
}

#[async_trait]
impl RecordConsumer<LibraryTexts> for Library {
    async fn consume(&self, _: Cx, record: LibraryTexts) -> Result<(), ConsumeError> {
        assert_eq!(record.workspace, "default");
        loop {
            let changed = self.changed.notified();
            if !*self.away.lock() {
                break;
            }
            changed.await;
        }
        for text in record.texts {
            self.documents
                .lock()
                .insert(text.id, (text.title, text.text));
        }
        self.changed.notify_waiters();
        Ok(())
    }
}

/// Plays the triple store.
#[derive(Default)]
pub struct Store {
    pub records: Mutex<Vec<Triples>>,
    changed: Notify,
}

impl Store {
    pub fn triples(&self) -> BTreeSet<Triple> {
        let records = self.records.lock();
        records
            .iter()
            .flat_map(|record| record.triples.clone())
            .collect()
    }

    pub async fn wait(&self, enough: impl Fn(&BTreeSet<Triple>) -> bool) {
        loop {
            let changed = self.changed.notified();
            if enough(&self.triples()) {
                return;
            }
            changed.await;
        }
    }
}

#[async_trait]
impl RecordConsumer<Triples> for Store {
    async fn consume(&self, _: Cx, record: Triples) -> Result<(), ConsumeError> {
        self.records.lock().push(record);
        self.changed.notify_waiters();
        Ok(())
    }
}
