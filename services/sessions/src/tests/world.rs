//! A system with agents in files, and a flow whose agent is played.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tg_mesh::{Answer, Ask, Bus, Cx, Deadline, Processor};
use tg_schemas::msg::{
    AgentRequest, AgentResponse, AnswerCost, ChatCompletionRequest, ChatUsage, OperationRequest,
    OperationResponse,
};
use tg_schemas::operations::{
    Chat, CreateSession, Empty, Failure, ListMessages, ListNamedAgents, NewSession, Object,
    OneSession, Operation, Question, SESSIONS, SendMessage, SentMessage, Session, SessionMessage,
    TurnResult, WhichMessages, read, write,
};
use tg_schemas::processors::agent_manager;
use tg_schemas::{Class, Error, ErrorCode, Topic, WorkspaceId};
use tg_testkit::config::Config;
use tg_testkit::fakes::{Play, Played};
use tg_testkit::flow::{SOON, TestFlow, Wiring};
use tg_testkit::place::Place;

use super::around::{self, Chunks, Model, Sums};
use crate::options::Options;
use crate::processors::processors;

/// What the played agent does with a question.
type Answers = Arc<Mutex<Box<dyn Fn(&AgentRequest) -> Result<String, Error> + Send>>>;

/// What the played agent plays instead of one answer.
type Script = Box<dyn Fn(&AgentRequest) -> Play<AgentResponse> + Send>;

/// One system.
pub(super) struct World {
    pub(super) flow: TestFlow,
    pub(super) agent: Arc<Played<AgentRequest, AgentResponse>>,
    pub(super) model: Model,
    pub(super) chunks: Chunks,
    answers: Answers,
    script: Arc<Mutex<Option<Script>>>,
    sums: Sums,
    pub(super) dir: TempDir,
}

const FILES: [(&str, &str); 3] = [
    (
        "b.yaml",
        "name: zoe\nmodel: m1\nsystem_prompt: Be brief.\ntools: [calculator]\nrag_index: docs\n",
    ),
    ("a.yaml", "name: ann\nmodel: m2\ndescription: Answers.\n"),
    ("c.yaml", "name: mia\nmodel: m3\nflow: other\n"),
];

/// File below the data directory that holds a credential which the workspace may name.
pub(super) const KEY: &str = "key";

/// What explains an answer.
pub(super) const TRACE: &str = "urn:trustgraph:agent:7d0c3c58-0000-4000-8000-000000000000";

/// The last part of an answer.
pub(super) fn answer(text: &str) -> AgentResponse {
    AgentResponse {
        message_type: "answer".to_owned(),
        content: text.to_owned(),
        end_of_message: true,
        end_of_dialog: true,
        finish_reason: "stop".to_owned(),
        trace: TRACE.to_owned(),
        model: Some("played".to_owned()),
        usage: Some(ChatUsage {
            input: 5,
            output: 2,
            total: 7,
            ..ChatUsage::default()
        }),
        cost: Some(AnswerCost {
            usd: Some(0.5),
            source: "upstream".to_owned(),
            sub_calls: 1,
            ..AnswerCost::default()
        }),
        ..AgentResponse::default()
    }
}

/// A directory with the files of the agents.
fn described() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let agents = dir.path().join("agents");
    fs::create_dir(&agents).unwrap();
    for (name, text) in FILES {
        fs::write(agents.join(name), text).unwrap();
    }
    dir
}

impl World {
    /// Whose agent answers with what it was asked.
    pub(super) async fn start(place: &Place) -> Self {
        Self::start_with(place, |_| {}).await
    }

    /// The same with more files below the data directory.
    pub(super) async fn start_with(place: &Place, more: impl FnOnce(&Path)) -> Self {
        Self::start_as(place, more, false).await
    }

    /// The same with a flow that finds passages.
    pub(super) async fn start_as(
        place: &Place,
        files: impl FnOnce(&Path),
        retrieves: bool,
    ) -> Self {
        let dir = described();
        files(dir.path());
        Self::over(place.connect().await, dir, retrieves, |_| {}).await
    }

    /// The same with other options.
    pub(super) async fn start_bounded(place: &Place, more: impl FnOnce(&mut Options)) -> Self {
        Self::over(place.connect().await, described(), false, more).await
    }

    /// The same as [`World::start`] over a bus.
    pub(super) async fn start_over(bus: Arc<dyn Bus>) -> Self {
        Self::over(bus, described(), false, |_| {}).await
    }

    /// The same system after its process ended and another one began: what is kept is there, and no answer that was sent.
    pub(super) async fn again(self, place: &Place) -> Self {
        let Self { flow, dir, .. } = self;
        flow.mesh.stop(Duration::from_secs(1)).await;
        drop(flow);
        let place = place.another().await;
        Self::over(place.connect().await, dir, false, |_| {}).await
    }

    async fn over(
        bus: Arc<dyn Bus>,
        dir: TempDir,
        retrieves: bool,
        more: impl FnOnce(&mut Options),
    ) -> Self {
        let answers: Answers = Arc::new(Mutex::new(Box::new(|asked| {
            Ok(format!("re {}", asked.question))
        })));
        let said = answers.clone();
        let script: Arc<Mutex<Option<Script>>> = Arc::default();
        let played_script = script.clone();
        let sums: Sums = Arc::new(Mutex::new(Box::new(|_| Ok("in short".to_owned()))));
        let (model, chunks) = (around::model(&sums), around::chunks());
        let agent = Played::new(move |_: &Cx, asked: AgentRequest| {
            if let Some(script) = &*played_script.lock() {
                return Ok(script(&asked));
            }
            let with = said.lock();
            let said = (**with)(&asked)?;
            Ok(Play::of(vec![answer(&said)]).yielding())
        });
        let config = Config::new();
        config.put("flow", "default", &around::record(retrieves).to_string());
        for (name, generation) in [("k1", 1), ("k2", 2), ("bad", 3)] {
            config.collection(name, generation);
        }
        config.put("llm-model", "m2", r#"{"context_window": 16000}"#);
        config.register("other");
        let key = dir.path().join(KEY);
        fs::write(&key, "sk-played").unwrap();
        let credentials = json!(format!("default=file:{}", key.display()));
        let mut options = Options {
            data_dir: dir.path().to_owned(),
            credentials: Some(serde_json::from_value(credentials).unwrap()),
            ..Options::default()
        };
        more(&mut options);
        let played =
            Processor::new(agent_manager::PROCESSOR).serves(agent_manager::REQUEST, agent.clone());
        let around = around::processors(&model, &chunks);
        let host = |mesh: &_| {
            let mut all = processors(mesh, options).expect("the files can be used");
            all.push(played);
            all.extend(around);
            all
        };
        let mut wiring: Vec<Wiring> = around::WIRING.to_vec();
        wiring.push(("agent-manager", &[("request", Class::Request, "agent")]));
        let flow = TestFlow::start_on(bus, config, &wiring, json!({}), host).await;
        let world = Self {
            flow,
            agent,
            model,
            chunks,
            answers,
            script,
            sums,
            dir,
        };
        // The store is opened once the process has its lease.
        let serves = async || world.call::<ListNamedAgents>(&Empty {}).await.is_ok();
        world.flow.until(serves).await;
        world
    }

    /// The agent answers so from now on.
    pub(super) fn answers(
        &self,
        with: impl Fn(&AgentRequest) -> Result<String, Error> + Send + 'static,
    ) {
        *self.answers.lock() = Box::new(with);
    }

    /// The agent plays so from now on.
    pub(super) fn plays(
        &self,
        with: impl Fn(&AgentRequest) -> Play<AgentResponse> + Send + 'static,
    ) {
        *self.script.lock() = Some(Box::new(with));
    }

    /// The model says so from now on.
    pub(super) fn sums_up(
        &self,
        with: impl Fn(&ChatCompletionRequest) -> Result<String, Error> + Send + 'static,
    ) {
        *self.sums.lock() = Box::new(with);
    }

    /// What the agent was asked so far.
    pub(super) fn asked(&self) -> Vec<AgentRequest> {
        self.agent.asked.lock().clone()
    }

    /// Calls an operation of the workspace.
    pub(super) async fn call<O: Operation>(&self, request: &O::Request) -> Result<O::Reply, Value> {
        self.call_as::<O>(None, request).await
    }

    /// The same under an id.
    pub(super) async fn call_as<O: Operation>(
        &self,
        id: Option<&str>,
        request: &O::Request,
    ) -> Result<O::Reply, Value> {
        let request = write(request).unwrap();
        let told = self.told("default", id, O::META.name, request).await?;
        let (_, last) = told.last().expect("a reply");
        Ok(read(last).unwrap())
    }

    /// What is reported of an operation, with the names of the events.
    pub(super) async fn events<O: Operation>(
        &self,
        request: &O::Request,
    ) -> Result<Vec<(String, Object)>, Value> {
        let request = write(request).unwrap();
        self.told("default", None, O::META.name, request).await
    }

    /// The answer of an operation of a workspace, under way.
    pub(super) fn ask(
        &self,
        workspace: &str,
        id: Option<&str>,
        operation: &str,
        request: Object,
    ) -> Answer<OperationResponse> {
        let workspace = WorkspaceId::new(workspace).unwrap();
        let topic = Topic::workspace(Class::Request, SESSIONS, &workspace);
        let question = OperationRequest {
            operation: operation.to_owned(),
            request,
        };
        let ask = Ask {
            deadline: Some(Deadline::after(SOON)),
            id: id.map(str::to_owned),
            ..Ask::default()
        };
        self.flow.mesh.ask(&topic, &question, ask)
    }

    /// Calls an operation for somebody who has these roles in the workspace.
    pub(super) async fn call_with_roles<O: Operation>(&self, roles: &str, request: &O::Request) {
        let workspace = WorkspaceId::new("default").unwrap();
        let topic = Topic::workspace(Class::Request, SESSIONS, &workspace);
        let question = OperationRequest {
            operation: O::META.name.to_owned(),
            request: write(request).unwrap(),
        };
        let ask = Ask {
            deadline: Some(Deadline::after(SOON)),
            roles: Some(roles.to_owned()),
            ..Ask::default()
        };
        let peer = &self.flow.mesh;
        let answer = peer.ask::<_, OperationResponse>(&topic, &question, ask);
        answer.last().await.unwrap();
    }

    /// All parts of it.
    pub(super) async fn told(
        &self,
        workspace: &str,
        id: Option<&str>,
        operation: &str,
        request: Object,
    ) -> Result<Vec<(String, Object)>, Value> {
        let mut answer = self.ask(workspace, id, operation, request);
        let mut told = Vec::new();
        loop {
            let part = answer.next().await.expect("an answer");
            let part = part.map_err(|error| json!({"code": error.kind}))?;
            if let Some(error) = part.error {
                return Err(match part.failure.is_empty() {
                    true => json!({"code": error.kind}),
                    false => Value::Object(part.failure),
                });
            }
            told.push((part.event, part.data));
            if part.last {
                return Ok(told);
            }
        }
    }

    /// So many turns of a session, each with these texts.
    pub(super) async fn fill(&self, session: &Session, turns: usize, text: &str) {
        for at in 0..turns {
            self.send(session, &format!("{text} {at}")).await.unwrap();
        }
    }

    /// A session of a user.
    pub(super) async fn session(&self, agent: &str, user: &str) -> Session {
        let new = NewSession {
            name: agent.to_owned(),
            user_id: user.to_owned(),
            ..NewSession::default()
        };
        self.call::<CreateSession>(&new).await.unwrap()
    }

    /// A message in a session.
    pub(super) async fn send(&self, session: &Session, text: &str) -> Result<TurnResult, Value> {
        self.call::<SendMessage>(&sent(session, text)).await
    }

    /// A question outside of sessions.
    pub(super) async fn chat(&self, agent: &str, text: &str) -> Result<TurnResult, Value> {
        let question = Question {
            name: agent.to_owned(),
            message: Some(text.to_owned()),
            ..Question::default()
        };
        self.call::<Chat>(&question).await
    }
}

/// A message of a session's own user to its own agent.
pub(super) fn sent(session: &Session, text: &str) -> SentMessage {
    SentMessage {
        name: session.agent.clone(),
        session_id: session.id.clone(),
        user_id: session.user_id.clone(),
        message: text.to_owned(),
        ..SentMessage::default()
    }
}

/// Names a session for its own user.
pub(super) fn one(session: &Session) -> OneSession {
    OneSession {
        name: session.agent.clone(),
        session_id: session.id.clone(),
        user_id: session.user_id.clone(),
    }
}

/// What was said in a session.
pub(super) async fn said(world: &World, session: &Session) -> Vec<SessionMessage> {
    let which = WhichMessages {
        name: session.agent.clone(),
        session_id: session.id.clone(),
        user_id: session.user_id.clone(),
        limit: Some(200),
        ..WhichMessages::default()
    };
    let all = world.call::<ListMessages>(&which).await.unwrap();
    assert_eq!(all.next_cursor, None);
    all.messages
}

/// A part of an agent's answer.
pub(super) fn part(kind: &str, text: &str) -> AgentResponse {
    AgentResponse {
        message_type: kind.to_owned(),
        content: text.to_owned(),
        ..AgentResponse::default()
    }
}

/// An agent that calls a tool so often, and answers then.
pub(super) fn with_tools(times: usize) -> Play<AgentResponse> {
    with_results(times, "found")
}

/// The same of a tool that returns this.
pub(super) fn with_results(times: usize, found: &str) -> Play<AgentResponse> {
    let mut parts = vec![part("answer", "let me see")];
    for at in 0..times {
        let call = AgentResponse {
            call_id: format!("c{at}"),
            tool_name: "search".to_owned(),
            args: [("q".to_owned(), json!("frask"))].into_iter().collect(),
            end_of_message: true,
            ..part("action", "")
        };
        let result = AgentResponse {
            call_id: format!("c{at}"),
            tool_name: "search".to_owned(),
            end_of_message: true,
            ..part("observation", found)
        };
        parts.extend([call, result]);
    }
    parts.extend([part("answer", "it is "), answer("there")]);
    Play::of(parts)
}

/// The code of a failure.
pub(super) fn code<T: std::fmt::Debug>(result: Result<T, Value>) -> String {
    let failure = result.expect_err("it is refused");
    let own = serde_json::from_value::<Failure>(failure.clone());
    match own {
        Ok(failure) => failure.code.as_str().to_owned(),
        Err(_) => failure["code"].as_str().unwrap_or_default().to_owned(),
    }
}

/// An agent that fails.
pub(super) fn fails(code: ErrorCode) -> Result<String, Error> {
    Err(Error::new(code, "at http://10.0.0.1/v1"))
}
