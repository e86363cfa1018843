//! Asking the agent of a flow, and putting its answer together.

use std::time::Duration;

use serde_json::json;
use tg_clients::flow_records::ReadyFlows;
use tg_clients::listeners::Listening;
use tg_mesh::{Answer, Cx, warn_of};
use tg_schemas::msg::{AgentRequest, AgentResponse, AnswerCall, LoopRecord};
use tg_schemas::operations::{Cost, Object, ToolCall, Usage};
use tg_schemas::{Class, Error, ErrorCode, FlowId, WorkspaceId, limits};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::engine::definition::Definition;
use crate::error::SessionsError;
use crate::store::Step;

/// How long an agent may take for a whole turn.
const TURN: Duration = Duration::from_secs(3_600);
/// How long it may say nothing.
const SILENCE: Duration = Duration::from_secs(600);
/// How the agent works: step by step, and not as a router chooses.
const PATTERN: &str = "react";
/// Interface of a flow that is its agent.
const INTERFACE: &str = "agent";

/// What an agent is asked.
pub(super) struct Asking<'a> {
    /// The agent.
    pub(super) agent: &'a Definition,
    /// The question.
    pub(super) question: &'a str,
    /// Its instructions and what was said before.
    pub(super) framing: String,
    /// Its session, by which usage is counted; empty: none.
    pub(super) session: &'a str,
    /// The last calls of tools of the session: JSON in text.
    pub(super) window: &'a str,
    /// The flow that answers.
    pub(super) flow: FlowId,
    /// How many agents called each other before this question.
    pub(super) depth: i64,
}

/// Events of a turn, for whoever reads them as they come.
pub(super) type Events = mpsc::Sender<(&'static str, Object)>;

/// How an answer is listened to.
pub(super) struct Hearing {
    /// Who reads what happens as it comes; `None`: nobody.
    pub(super) events: Option<Events>,
    /// Cancelled when a later turn takes the place of this one.
    pub(super) interrupted: CancellationToken,
    /// Cancelled when the reader has gone, where the turn ends with its reader.
    pub(super) left: CancellationToken,
    /// Most calls of tools.
    pub(super) calls: usize,
}

impl Hearing {
    /// To the end, for nobody.
    pub(super) fn whole() -> Self {
        Self {
            events: None,
            interrupted: CancellationToken::new(),
            left: CancellationToken::new(),
            calls: usize::MAX,
        }
    }

    /// Reports an event. Nobody may read it any more: the turn goes on.
    pub(super) async fn tell(&self, event: &'static str, data: serde_json::Value) {
        if let (Some(events), serde_json::Value::Object(data)) = (&self.events, data) {
            let _ = events.send((event, data)).await;
        }
    }
}

/// What an agent answered.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Answered {
    pub(super) content: String,
    pub(super) model: String,
    pub(super) finish_reason: String,
    pub(super) stopped: bool,
    pub(super) tool_calls: i64,
    pub(super) usage: Usage,
    pub(super) cost: Cost,
    pub(super) window: Vec<LoopRecord>,
    /// IRI of its trace.
    pub(super) trace: String,
    /// The tools that were called, with what they returned.
    pub(super) steps: Vec<Step>,
    /// Why there is no answer.
    pub(super) fault: Option<String>,
}

/// How a turn ends whose agent failed.
pub(super) const FAILED: &str = "error";
/// How the agent says that a guard stopped it.
const CIRCLES: &str = "loop";

/// The flow that answers for an agent, which runs and has one.
///
/// # Errors
/// There is no such flow.
pub(super) fn flow_of(
    flows: &ReadyFlows,
    cx: &Cx,
    agent: &Definition,
    usual: &str,
) -> Result<FlowId, SessionsError> {
    let flow = agent.flow.as_deref().unwrap_or(usual);
    let record = flows.get(cx.config(), cx.workspace(), flow);
    let record = record.filter(|one| one.runs());
    let record = record.filter(|one| one.topic(INTERFACE, Class::Request).is_some());
    record.ok_or(SessionsError::NoFlow)?;
    FlowId::new(flow).map_err(|_| SessionsError::NoFlow)
}

impl Asking<'_> {
    /// The request to the agent service.
    fn request(&self, streaming: bool) -> AgentRequest {
        let group = match self.agent.tools.is_empty() {
            true => Vec::new(),
            false => vec!["*".to_owned()],
        };
        let settings = self.agent.settings();
        let mut request = AgentRequest {
            model: settings.model,
            models: settings.models,
            max_tokens: settings.max_tokens,
            temperature: settings.temperature,
            service: settings.service,
            top_k: self.agent.rag_top_k,
            caller_depth: self.depth + 1,
            max_iterations: self.agent.max_iterations.unwrap_or_default(),
            question: self.question.to_owned(),
            group: Some(group),
            pattern: PATTERN.to_owned(),
            framing: self.framing.clone(),
            conversation_id: self.session.to_owned(),
            agent: self.agent.name.clone(),
            loop_window: serde_json::from_slice(self.window.as_bytes()).unwrap_or_default(),
            // Naming a tool in the file is the permission to use it.
            grant: self.agent.tools.clone(),
            tool_names: Some(self.agent.tools.clone()),
            collections: self.agent.knowledge.clone(),
            loop_detection: self.agent.loop_detection.clone().unwrap_or_default(),
            streaming,
            ..AgentRequest::default()
        };
        if let Some(collection) = &self.agent.rag_index {
            collection.clone_into(&mut request.collection);
        }
        request
    }

    /// Asks, and waits for the answer. `made` gets the calls of models that the agent lists, also where it failed.
    ///
    /// # Errors
    /// No flow runs that could answer, or the agent did not.
    pub(super) async fn ask(
        &self,
        cx: &Cx,
        hearing: &Hearing,
        made: &mut Vec<AnswerCall>,
    ) -> Result<Answered, SessionsError> {
        self.ask_as(cx, "turn", hearing, made).await
    }

    /// The same under another name. Whoever asks again under the same name is answered the same.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub(super) async fn ask_as(
        &self,
        cx: &Cx,
        name: &str,
        hearing: &Hearing,
        made: &mut Vec<AnswerCall>,
    ) -> Result<Answered, SessionsError> {
        let workspace = WorkspaceId::new(cx.workspace())?;
        let listening = Listening {
            cx,
            workspace: &workspace,
            flow: &self.flow,
            patience: TURN,
        };
        let streaming = hearing.events.is_some();
        let answer = listening.agent(format!("{}/{name}", cx.id), &self.request(streaming))?;
        let heard = heard(answer, hearing, made).await;
        heard.map_err(|fault| match fault {
            NotHeard::Interrupted => SessionsError::Interrupted,
            NotHeard::Error(error) => {
                warn_of!(cx, agent = self.agent.name, %error, "an agent did not answer");
                SessionsError::Unanswered(error)
            }
        })
    }
}

/// Why there is no answer.
enum NotHeard {
    Interrupted,
    Error(Error),
}

impl From<Error> for NotHeard {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// Puts the parts of an answer together.
async fn heard(
    mut answer: Answer<AgentResponse>,
    hearing: &Hearing,
    made: &mut Vec<AnswerCall>,
) -> Result<Answered, NotHeard> {
    let mut heard = Answered::default();
    loop {
        let part = tokio::select! {
            biased;
            () = hearing.interrupted.cancelled() => return Err(NotHeard::Interrupted),
            () = hearing.left.cancelled() => {
                // What was said so far is the answer.
                heard.finish_reason = "stop".to_owned();
                return Ok(heard);
            }
            part = tokio::time::timeout(SILENCE, answer.next()) => part,
        };
        let part = part.map_err(|_| Error::new(ErrorCode::Timeout, "the agent says nothing"))?;
        let Some(part) = part else {
            let text = "the answer is incomplete";
            return Err(Error::new(ErrorCode::Interrupted, text).into());
        };
        let mut part = part?;
        made.append(&mut part.calls);
        if let Some(error) = part.error {
            return Err(error.into());
        }
        let last = part.end_of_dialog;
        heard.add(part, hearing).await?;
        if heard.steps.len() > hearing.calls {
            return Ok(heard.too_many(hearing.calls));
        }
        if last {
            return Ok(heard);
        }
    }
}

impl Answered {
    /// The agent called more tools than it may.
    fn too_many(mut self, most: usize) -> Self {
        self.steps.truncate(most);
        self.content = "The agent called too many tools without coming to an answer.".to_owned();
        self.finish_reason = FAILED.to_owned();
        self.fault = Some(format!("a turn may call tools {most} times"));
        self
    }

    /// A run that was stopped because it went in circles counts as one that failed. What it said stays.
    pub(super) fn without_circles(mut self) -> Self {
        if self.finish_reason == CIRCLES {
            self.finish_reason = FAILED.to_owned();
            self.fault = self.content.lines().next().map(str::to_owned);
        }
        self
    }

    /// A tool is called. What was said before was no answer yet.
    async fn call(&mut self, part: &AgentResponse, hearing: &Hearing) {
        self.tool_calls += 1;
        self.content.clear();
        let id = match part.call_id.as_str() {
            "" => format!("call-{}", self.tool_calls),
            id => id.to_owned(),
        };
        let name = match part.tool_name.as_str() {
            "" => part.content.clone(),
            name => name.to_owned(),
        };
        let step = Step {
            call: ToolCall {
                id,
                name,
                arguments: serde_json::Value::Object(part.args.clone()).to_string(),
            },
            result: String::new(),
            ids: [(); 2].map(|()| Uuid::now_v7().to_string()),
        };
        if self.steps.len() < hearing.calls {
            hearing.tell("token-reset", json!({})).await;
            let told =
                json!({"toolName": step.call.name, "args": part.args, "callId": step.call.id});
            hearing.tell("tool-call", told).await;
        }
        self.steps.push(step);
    }

    /// A tool returned.
    async fn observe(&mut self, part: &AgentResponse, hearing: &Hearing) {
        let Some(step) = self.steps.last_mut() else {
            return;
        };
        step.result.push_str(&part.content);
        if part.end_of_message {
            let told =
                json!({"toolName": step.call.name, "callId": step.call.id, "result": step.result});
            hearing.tell("tool-result", told).await;
        }
    }

    /// Takes a part in.
    async fn add(&mut self, part: AgentResponse, hearing: &Hearing) -> Result<(), Error> {
        match part.message_type.as_str() {
            "answer" | "final-answer" if !part.content.is_empty() => {
                self.content.push_str(&part.content);
                hearing.tell("token", json!({"delta": part.content})).await;
            }
            "action" if part.end_of_message => self.call(&part, hearing).await,
            "observation" => self.observe(&part, hearing).await,
            _ => {}
        }
        if self.content.len() > limits::AGENT_REPLY {
            return Err(Error::new(ErrorCode::TooLarge, "the answer is too long"));
        }
        if let Some(model) = part.model {
            self.model = model;
        }
        if !part.end_of_dialog {
            return Ok(());
        }
        self.finish_reason = match part.finish_reason.as_str() {
            "" => "stop".to_owned(),
            reason => reason.to_owned(),
        };
        self.stopped = part.stopped;
        self.window = part.loop_window;
        self.trace = part.trace;
        if let Some(used) = part.usage {
            self.usage = Usage {
                input: used.input,
                output: used.output,
                cache_read: used.cache_read,
                cache_write: used.cache_write,
                total: used.total,
            };
        }
        if let Some(cost) = part.cost {
            self.cost = Cost {
                eur: cost.eur,
                usd: cost.usd,
                source: cost.source,
                sub_calls: cost.sub_calls,
            };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tg_schemas::msg::{AnswerCost, ChatUsage};

    use super::*;

    fn asking(agent: &Definition) -> AgentRequest {
        let asking = Asking {
            agent,
            question: "q",
            framing: "f".to_owned(),
            session: "s",
            window: "[]",
            flow: FlowId::new("default").unwrap(),
            depth: 0,
        };
        asking.request(false)
    }

    #[test]
    fn an_agent_has_the_tools_that_its_file_names_and_no_others() {
        let mut agent = Definition {
            rag_index: Some("c".to_owned()),
            ..Definition::default()
        };
        let asked = asking(&agent);
        assert_eq!(asked.group, Some(Vec::new()));
        assert_eq!(
            (asked.collection.as_str(), asked.pattern.as_str()),
            ("c", "react")
        );
        agent.tools = vec!["calculator".to_owned()];
        let asked = asking(&agent);
        assert_eq!(asked.group, Some(vec!["*".to_owned()]));
        assert_eq!(asked.tool_names, Some(agent.tools.clone()));
        assert_eq!(asked.grant, agent.tools);
    }

    #[tokio::test]
    async fn an_answer_is_put_together_from_its_parts() {
        let hearing = Hearing::whole();
        let part = |kind: &str, text: &str| AgentResponse {
            message_type: kind.to_owned(),
            content: text.to_owned(),
            end_of_message: true,
            ..AgentResponse::default()
        };
        let mut heard = Answered::default();
        for one in [
            part("thought", "hm"),
            part("action", "x"),
            part("observation", "y"),
            part("answer", "h"),
        ] {
            heard.add(one, &hearing).await.unwrap();
        }
        let last = AgentResponse {
            end_of_dialog: true,
            model: Some("m".to_owned()),
            usage: Some(ChatUsage {
                input: 2,
                total: 3,
                ..ChatUsage::default()
            }),
            cost: Some(AnswerCost {
                source: "table".to_owned(),
                sub_calls: 2,
                ..AnswerCost::default()
            }),
            trace: "urn:t".to_owned(),
            ..part("answer", "i")
        };
        heard.add(last, &hearing).await.unwrap();
        assert_eq!((heard.content.as_str(), heard.tool_calls), ("hi", 1));
        assert_eq!(
            (heard.model.as_str(), heard.finish_reason.as_str()),
            ("m", "stop")
        );
        assert_eq!((heard.usage.input, heard.cost.sub_calls), (2, 2));
        assert_eq!(heard.trace, "urn:t");
    }
}
