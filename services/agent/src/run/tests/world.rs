//! The agent and its surroundings in one process: config, prompts, tools, library and triple store are
//! small fakes that note what they are asked.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tg_mesh::{Ask, Bus, Host, Processor};
use tg_schemas::msg::*;
use tg_schemas::processors;
use tg_schemas::{Class, Error, ErrorCode, Term, Triple};
use tg_testkit::config::Config;
use tg_testkit::fakes::{Library, Play, Played, RecordingConsumer};
pub use tg_testkit::flow::{SOON, topic};
use tg_testkit::place::Place;
use tokio::sync::Barrier;

use crate::engine::compacting::{MERGE, SUMMARISE};
use crate::engine::planning::{CREATE, EXECUTE, SYNTHESISE};
use crate::engine::router::{CLASSIFY, SELECT};
use crate::engine::splitting::{self, DECOMPOSE};
use crate::options::Options;
use crate::processors::processor;
use crate::run::Agent;
use crate::sessions::{InMemory, Sessions};
use crate::store::Ledger;

/// Between two pieces of what the model says.
const PACE: Duration = Duration::from_millis(20);
/// How long a slow model takes.
const SLOW: Duration = Duration::from_millis(100);

/// What the model does when it is asked next.
pub enum Say {
    /// Replies, cut into pieces if it is to stream.
    Text(&'static str),
    /// Replies as a whole after a tenth of a second.
    Slowly(&'static str),
    /// The same, once as many are asked as meet there.
    Meets(Arc<Barrier>, &'static str),
    /// Fails.
    Fail(Error),
    /// Says this much and fails.
    Cut(&'static str, Error),
    /// Says this much and then nothing, until cancelled.
    Hang(&'static str),
    /// Thinks, and then replies.
    Thinks(&'static str, &'static str),
    /// Replies, and says what that cost in dollars, and that most of what it read was kept.
    Costs(&'static str, f64),
    /// Replies, and its provider reports no tokens: those that it wrote are guessed.
    Uncounted(&'static str),
}

/// Prompts by which runs plan, answer from what they found and sum up: the model replies by the script.
const PATTERNS: &[&str] = &[
    SUMMARISE,
    MERGE,
    CREATE,
    EXECUTE,
    SYNTHESISE,
    DECOMPOSE,
    splitting::SYNTHESISE,
];
/// What a server says of its tools.
pub type Listed = Arc<Mutex<Option<Vec<McpTool>>>>;
/// What the model says of questions, and of steps of a plan, that have a script of their own.
pub type Goals = Arc<Mutex<BTreeMap<String, VecDeque<Say>>>>;

pub struct World {
    pub mesh: Host,
    pub agent: Arc<Agent>,
    pub ledger: Ledger,
    pub config: Arc<Config>,
    pub model: Arc<Played<PromptRequest, PromptResponse>>,
    /// Variables of each question that the script answered.
    pub asked: Arc<Mutex<Vec<Terms>>>,
    /// Questions that subagents have.
    pub goals: Goals,
    pub tools: Arc<Played<ToolRequest, ToolResponse>>,
    /// What the server `far` says of its tools; `None`: it cannot be asked.
    pub listed: Listed,
    /// Whether tools hang.
    pub hang: Arc<Mutex<bool>>,
    pub library: Arc<Library>,
    pub store: Arc<RecordingConsumer<Triples>>,
}

impl World {
    pub async fn new(place: &Place, script: impl IntoIterator<Item = Say>) -> Self {
        Self::with(place, script, Options::default()).await
    }

    /// With more rows and processors.
    pub async fn among(
        place: &Place,
        script: impl IntoIterator<Item = Say>,
        config: Config,
        more: Vec<Processor>,
    ) -> Self {
        Self::start(
            place.connect().await,
            script,
            Options::default(),
            config,
            more,
        )
        .await
    }

    /// With sessions that are kept elsewhere.
    pub async fn with_sessions(
        place: &Place,
        script: impl IntoIterator<Item = Say>,
        config: Config,
        sessions: Arc<dyn Sessions>,
    ) -> Self {
        let (bus, settings) = (place.connect().await, Options::default());
        Self::start_with(bus, script, (settings, sessions), config, Vec::new()).await
    }

    pub async fn with(
        place: &Place,
        script: impl IntoIterator<Item = Say>,
        settings: Options,
    ) -> Self {
        Self::over(place.connect().await, script, settings).await
    }

    /// Over a bus of the test's.
    pub async fn over(
        bus: Arc<dyn Bus>,
        script: impl IntoIterator<Item = Say>,
        settings: Options,
    ) -> Self {
        Self::start(bus, script, settings, rows(), Vec::new()).await
    }

    /// With all of that.
    pub async fn start(
        bus: Arc<dyn Bus>,
        script: impl IntoIterator<Item = Say>,
        settings: Options,
        config: Config,
        more: Vec<Processor>,
    ) -> Self {
        let sessions = Arc::new(InMemory::default());
        Self::start_with(bus, script, (settings, sessions), config, more).await
    }

    async fn start_with(
        bus: Arc<dyn Bus>,
        script: impl IntoIterator<Item = Say>,
        (settings, sessions): (Options, Arc<dyn Sessions>),
        config: Config,
        more: Vec<Processor>,
    ) -> Self {
        let mesh = tg_testkit::place::host(bus).await;
        let ledger = Ledger::in_memory().unwrap();
        let own = ledger.clone();
        let agent = Agent::with_sessions(settings, move || Ok(own.clone()), sessions);
        let config = Arc::new(config);
        let (asked, hang, goals) = (Arc::default(), Arc::default(), Goals::default());
        let listed = Listed::default();
        let model = model(script, Arc::clone(&asked), goals.clone());
        let world = Self {
            agent: agent.clone(),
            ledger,
            config: config.clone(),
            model: model.clone(),
            asked,
            goals,
            tools: tools(Arc::clone(&hang), listed.clone()),
            listed,
            hang,
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
        ]
        .into_iter()
        .chain(more)
        {
            mesh.host(hosted).await.unwrap();
        }
        world.ready().await;
        world
    }

    /// How often the model was asked what to do.
    pub fn calls(&self) -> usize {
        self.asked.lock().len()
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
        let ended = |records: &[Triples]| !values(&triples(records), reason).is_empty();
        let records = self.store.until(ended).await;
        values(&triples(&records), reason).join(" ")
    }

    /// The trace, as soon as it is as wanted: its records may be stored in any order.
    pub async fn trace(&self, wanted: impl Fn(&BTreeSet<Triple>) -> bool) -> BTreeSet<Triple> {
        triples(&self.store.until(|records| wanted(&triples(records))).await)
    }

    /// The root of a run's trace, and all that is stored once what was shown of the run is.
    pub async fn told(&self, chunks: &[AgentResponse]) -> (String, BTreeSet<Triple>) {
        let shown = shown(chunks);
        let stored = self.trace(|all| shown.is_subset(all)).await;
        (chunks.last().unwrap().trace.clone(), stored)
    }

    /// The texts in the library, by id, once there are so many.
    pub async fn texts(&self, count: usize) -> BTreeMap<String, String> {
        let documents = self.library.holds(count).await.into_iter();
        documents.map(|(id, (_, text))| (id, text)).collect()
    }
}

/// The triples that an asker is shown.
pub fn shown(chunks: &[AgentResponse]) -> BTreeSet<Triple> {
    let all = chunks
        .iter()
        .flat_map(|chunk| chunk.explain_triples.clone());
    all.collect()
}

/// All triples of some records.
pub fn triples(records: &[Triples]) -> BTreeSet<Triple> {
    let all = records.iter().flat_map(|record| record.triples.clone());
    all.collect()
}

/// Has the agent of these rows ask a processor of its flow under a name.
pub fn ask_for(rows: &Config, name: &str, processor: &str, request: &str) {
    let kind = "processor:agent-manager";
    let row = rows
        .get("default", kind, "default")
        .expect("the agent's row");
    let mut row: Value = serde_json::from_str(&row).expect("JSON");
    row["topics"][name] = request.into();
    rows.put(kind, "default", &row.to_string());
    let flow = json!({"topics": {"request": request}, "parameters": {}, "epoch": 1});
    rows.put(
        &format!("processor:{processor}"),
        "default",
        &flow.to_string(),
    );
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
pub fn rows() -> Config {
    let rows = Config::new();
    let row = |kind: &str, key: &str, value: Value| {
        rows.put(kind, key, &value.to_string());
    };
    let flow = |processor: &str, topics: Value| {
        let value = json!({"topics": topics, "parameters": {}, "epoch": 1});
        row(&format!("processor:{processor}"), "default", value);
    };
    let request = |base: &str| topic(Class::Request, base).to_string();
    let triples = topic(Class::Flow, "triples-store").to_string();
    flow(
        "agent-manager",
        json!({
            "request": request("agent"),
            "prompt-request": request("prompt"),
            "mcp-tool-request": request("mcp-tool"),
            "librarian-request": request("librarian"),
            "explainability": triples,
        }),
    );
    flow("prompt", json!({"request": request("prompt")}));
    flow("mcp-tool", json!({"request": request("mcp-tool")}));
    flow("triples-write", json!({"input": triples}));
    row("tool-native", "calculator", json!({"description": "adds"}));
    row(
        "tool",
        "remote",
        json!({
            "name": "remote", "type": "mcp-tool", "mcp-tool": "far", "state": "moved",
            "arguments": [{"name": "x", "type": "number"}],
        }),
    );
    row("tool", "broken", json!({"type": "nonsense"}));
    row(
        "tool",
        "llm",
        json!({"name": "llm", "type": "text-completion"}),
    );
    rows
}

/// Variables of each `agent-react` question.
type Terms = BTreeMap<String, Value>;

/// What the model says of a question, or of a step of a plan, that has a script of its own.
fn of_its_own(goals: &Goals, terms: &Terms) -> Option<Say> {
    let text = |name: &str| terms.get(name).and_then(Value::as_str);
    // A step may be told more behind its goal.
    let goal = || text("goal").and_then(|goal| goal.lines().next());
    let mut goals = goals.lock();
    goals.get_mut(text("question").or_else(goal)?)?.pop_front()
}

/// The last part of a reply.
fn last(text: &str) -> PromptResponse {
    PromptResponse {
        text: text.to_owned(),
        end_of_stream: true,
        in_token: Some(100),
        out_token: Some(10),
        model: Some("scripted".into()),
        backend: Some("near".into()),
        attempts: Some(2),
        ..PromptResponse::default()
    }
}

/// Plays the prompt service with a model behind it, which notes what it is asked. Templates for JSON have the reply
/// given as an object. The pattern that it selects stands in the scripts of questions, under the prompt's own name.
fn model(
    script: impl IntoIterator<Item = Say>,
    asked: Arc<Mutex<Vec<Terms>>>,
    goals: Goals,
) -> Arc<Played<PromptRequest, PromptResponse>> {
    let script = Mutex::new(script.into_iter().collect::<VecDeque<_>>());
    let pieces = |text: &str| -> Vec<PromptResponse> {
        let chars: Vec<char> = text.chars().collect();
        let pieces = chars.chunks(7).map(|piece| PromptResponse {
            text: piece.iter().collect(),
            ..PromptResponse::default()
        });
        pieces.collect()
    };
    Played::new(move |_, ask: PromptRequest| {
        let terms = ask.terms.iter();
        let terms: Terms = terms
            .map(|(name, text)| (name.clone(), serde_json::from_str(text).expect("JSON")))
            .collect();
        if ask.id == "question" {
            return Ok(last(&format!("You said {}", terms["question"])).into());
        }
        if ask.id == CLASSIFY {
            return Ok(last("\"Risk\"\n").into());
        }
        if ask.id == SELECT {
            let said = goals.lock().get_mut(SELECT).and_then(VecDeque::pop_front);
            let Some(Say::Text(text)) = said else {
                return Err(Error::new(ErrorCode::Provider, "no pattern in the script"));
            };
            return Ok(last(text).into());
        }
        assert!(ask.id == "agent-react" || PATTERNS.contains(&ask.id.as_str()));
        let of_goal = of_its_own(&goals, &terms);
        asked.lock().push(terms);
        let say = of_goal.or_else(|| script.lock().pop_front());
        if [CREATE, EXECUTE, DECOMPOSE].contains(&ask.id.as_str())
            && let Some(Say::Text(text)) = say
        {
            let object = PromptResponse {
                text: String::new(),
                object: text.to_owned(),
                ..last("")
            };
            return Ok(object.into());
        }
        match say.unwrap_or(Say::Text("Final Answer: out of script")) {
            Say::Fail(error) => Err(error),
            Say::Slowly(text) => {
                let first = PromptResponse::default();
                Ok(Play::of(vec![first, last(text)]).paced(SLOW))
            }
            Say::Meets(all, text) => {
                let first = PromptResponse::default();
                let slowly = Play::of(vec![first, last(text)]).paced(SLOW);
                Ok(slowly.meeting(all))
            }
            Say::Text(text) if !ask.streaming => Ok(last(text).into()),
            Say::Text(text) => Ok(Play::of([pieces(text), vec![last("")]].concat()).paced(PACE)),
            Say::Cut(text, error) => {
                let last = PromptResponse {
                    error: Some(error),
                    ..PromptResponse::default()
                };
                Ok(Play::of([pieces(text), vec![last]].concat()).paced(PACE))
            }
            Say::Costs(text, dollars) => Ok(PromptResponse {
                cost: Some(dollars),
                cache_read: Some(60),
                ..last(text)
            }
            .into()),
            Say::Uncounted(text) => Ok(PromptResponse {
                in_token: Some(0),
                ..last(text)
            }
            .into()),
            Say::Hang(text) => Ok(Play::of(pieces(text)).hanging()),
            Say::Thinks(thought, text) => {
                // A service that is not asked for it says nothing of it.
                assert!(ask.thinking);
                let thinks = |thinking: &str| PromptResponse {
                    thinking: thinking.to_owned(),
                    ..PromptResponse::default()
                };
                if !ask.streaming {
                    return Ok(PromptResponse {
                        thinking: thought.to_owned(),
                        ..last(text)
                    }
                    .into());
                }
                let (first, rest) = thought.split_at(thought.len() / 2);
                let thoughts = vec![thinks(first), thinks(rest)];
                Ok(Play::of([thoughts, pieces(text), vec![last("")]].concat()).paced(PACE))
            }
        }
    })
}

/// Plays the tool service, which hangs while it is told to.
fn tools(hang: Arc<Mutex<bool>>, listed: Listed) -> Arc<Played<ToolRequest, ToolResponse>> {
    Played::new(move |_, ask: ToolRequest| {
        if ask.operation == "list-tools" {
            let away = || Error::new(ErrorCode::Tool, "the tool's server cannot be reached");
            assert_eq!(ask.server, "far");
            return Ok(Play::from(ToolResponse {
                tools: listed.lock().clone().ok_or_else(away)?,
                ..ToolResponse::default()
            }));
        }
        let parameters: Value = serde_json::from_str(&ask.parameters).expect("JSON");
        if *hang.lock() {
            return Ok(Play::of(Vec::new()).hanging());
        }
        if parameters["expression"] == "1/0" {
            return Err(Error::new(ErrorCode::Tool, "division by zero"));
        }
        if ask.name == "camera" {
            let pictures = ["Zmlyc3Q=", "c2Vjb25k"].map(|data| ToolPicture {
                data: data.to_owned(),
                mime_type: "image/png".to_owned(),
                at: if data == "Zmlyc3Q=" { 4 } else { 23 },
            });
            return Ok(Play::from(ToolResponse {
                text: "see\n[image, image/png]\n[image, image/png]".to_owned(),
                pictures: pictures.into_iter().filter(|_| ask.pictures).collect(),
                ..ToolResponse::default()
            }));
        }
        let text = format!(" {} says 4\n", ask.name);
        Ok(Play::from(ToolResponse {
            text,
            ..ToolResponse::default()
        }))
    })
}
