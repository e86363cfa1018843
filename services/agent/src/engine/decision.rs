//! What a step decided, saw, or how it ended: the rows that are stored before anything follows from them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tg_compaction::Tier;
use tg_provenance::Reason;
use tg_schemas::msg::{
    AgentRun, AgentRunStep, AnswerCall, Citation, LoopRecord, PlanStep, PollRecord,
};
use tg_schemas::{Error, ErrorCode, Triple};

use super::bounds::PARSE_ERROR;
use super::confirmation::Confirmed;
use super::cost::Cost;
use super::guards::Climbed;

/// Calls of models that a run lists at most; those beyond are counted and not listed.
const LISTED: usize = 200;

/// What model calls took.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Input tokens, where the model reported them.
    pub in_token: i64,
    /// Output tokens, where the model reported them.
    pub out_token: i64,
    /// Model that answered last; empty if unknown.
    pub model: String,
    /// How long it took.
    pub duration_ms: u64,
    /// Of the input tokens, what providers had kept.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_read: i64,
    /// Tokens that providers keep since then.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write: i64,
    /// Tokens that calls of a tool are likely to have taken whose provider reported none. Budgets and reports of usage count them; no
    /// answer shows them.
    #[serde(skip_serializing_if = "is_zero")]
    pub guess: i64,
    /// What it cost.
    #[serde(skip_serializing_if = "Cost::is_none")]
    pub cost: Cost,
    /// Of one call: the backend that answered; empty: not known, or there is one only.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub backend: String,
    /// Of one call: how often a backend was asked for it; 0: not known.
    #[serde(skip_serializing_if = "is_zero")]
    pub attempts: i64,
    /// The calls one by one, where who asked keeps a trail of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<AnswerCall>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_zero(count: &i64) -> bool {
    *count == 0
}

impl Usage {
    /// Adds another call.
    pub fn add(&mut self, other: &Self) {
        self.in_token = self.in_token.saturating_add(other.in_token);
        self.out_token = self.out_token.saturating_add(other.out_token);
        self.duration_ms = self.duration_ms.saturating_add(other.duration_ms);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.guess = self.guess.saturating_add(other.guess);
        self.cost = self.cost.and(&other.cost);
        if !other.model.is_empty() {
            self.model.clone_from(&other.model);
        }
        let room = LISTED.saturating_sub(self.calls.len());
        self.calls.extend(other.calls.iter().take(room).cloned());
    }

    /// Lists itself as one call, of a model of this name.
    pub fn list(&mut self, model: &str, failed: bool) {
        self.calls = vec![AnswerCall {
            model: model.to_owned(),
            in_token: self.in_token,
            out_token: self.out_token,
            cache_read: self.cache_read,
            cache_write: self.cache_write,
            nanodollars: self.cost.known(),
            failed,
            backend: self.backend.clone(),
            attempts: Some(self.attempts).filter(|attempts| *attempts > 0),
            source: self.cost.source().to_owned(),
            duration_ms: i64::try_from(self.duration_ms).unwrap_or(i64::MAX),
        }];
    }
}

/// What the model chose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Taken {
    /// A tool.
    Action {
        /// Name as the model wrote it.
        name: String,
        /// Arguments as the model wrote them.
        arguments: Map<String, Value>,
    },
    /// Several tools side by side, or one for a step of the plan that is not the first of those that could be taken.
    Actions {
        /// In the order in which the model wrote them.
        calls: Vec<Chosen>,
    },
    /// To go about it in steps.
    Plan {
        /// The steps.
        steps: Vec<PlanStep>,
        /// How often they may be revised yet.
        revisions_left: i64,
    },
    /// To have subagents go about parts of it.
    Goals {
        /// What each is to find out.
        goals: Vec<String>,
    },
    /// To answer.
    Answer {
        /// The answer.
        text: String,
    },
    /// Nothing that can be read, also when asked again.
    Unreadable {
        /// Why, for the model.
        detail: String,
    },
}

/// One of several tools that are used side by side.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Chosen {
    /// Name as the model wrote it.
    pub name: String,
    /// Arguments as the model wrote them.
    pub arguments: Map<String, Value>,
    /// What a guard did about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<Climbed>,
    /// The step of the plan that it takes, by its place there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<usize>,
}

/// What stands for the first steps of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compacted {
    /// How good it is.
    pub tier: Tier,
    /// What the model is shown; empty: nothing.
    pub text: String,
    /// How many steps it stands for.
    pub steps: i64,
    /// Tokens, about, of question and steps before.
    pub before: u64,
    /// The same now.
    pub after: u64,
    /// What it took; it is part of what the decision took.
    pub usage: Usage,
    /// How often the model was asked for it.
    pub calls: u64,
    /// How often the prompt had been too long for the model by then.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub recoveries: i64,
    /// Of the steps that it stands for those that came with the question, and that no summary before stood for: no row of the
    /// ledger has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given: Vec<AgentRunStep>,
}

impl Compacted {
    /// The run as the model is shown it from now on.
    pub fn apply(&self, run: &mut AgentRun) {
        run.summary.clone_from(&self.text);
        run.summarised = self.steps;
        run.recoveries = run.recoveries.max(self.recoveries);
    }
}

/// A decided step, with its pieces as the asker got them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// Pieces of the thought; the last one, which may be empty, ended it.
    pub thought: Vec<String>,
    /// Pieces of the answer that were sent before it was whole.
    pub answer: Vec<String>,
    /// The thought that its reply states, where the pieces show what the model thought before as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stated: Option<String>,
    /// The choice.
    pub taken: Taken,
    /// What it took.
    pub usage: Usage,
    /// Tools that could be chosen.
    pub candidates: Vec<String>,
    /// What the numbers of the answer name.
    #[serde(default)]
    pub citations: Vec<Citation>,
    /// The answer is that there is none.
    #[serde(default)]
    pub refused: bool,
    /// What a guard did about the choice.
    #[serde(default)]
    pub guard: Option<Climbed>,
    /// What the model was shown instead of earlier steps, from this one on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacted: Option<Compacted>,
    /// The step of the plan that it takes, of one of several that are taken together. It stands with that call.
    #[serde(skip)]
    pub place: Option<usize>,
}

/// Each call of a decision with what came of it, by number; a call that is put off is left out.
pub fn outcomes<'a>(
    decision: &'a Decision,
    seen: &'a Observation,
) -> Vec<(u32, Cow<'a, Decision>, &'a Observation)> {
    let apart = decision.apart();
    if apart.is_empty() {
        return vec![(0, Cow::Borrowed(decision), seen)];
    }
    let calls = (0..).zip(apart).zip(&seen.calls);
    calls
        .filter(|(_, seen)| !seen.put_off)
        .map(|((nth, one), seen)| (nth, Cow::Owned(one), seen))
        .collect()
}

impl Decision {
    /// Whether it answers the question.
    pub fn is_answer(&self) -> bool {
        matches!(self.taken, Taken::Answer { .. })
    }

    /// Whether nothing could be read.
    pub fn is_unreadable(&self) -> bool {
        matches!(self.taken, Taken::Unreadable { .. })
    }

    /// What it took without the summaries.
    pub fn asked(&self) -> Usage {
        let summed = self.compacted.as_ref().map(|compacted| &compacted.usage);
        let mut usage = self.usage.clone();
        if let Some(summed) = summed {
            usage.in_token = usage.in_token.saturating_sub(summed.in_token);
            usage.out_token = usage.out_token.saturating_sub(summed.out_token);
            usage.duration_ms = usage.duration_ms.saturating_sub(summed.duration_ms);
            usage.cache_read = usage.cache_read.saturating_sub(summed.cache_read);
            usage.cache_write = usage.cache_write.saturating_sub(summed.cache_write);
            usage.cost = usage.cost.without(&summed.cost);
        }
        usage
    }

    /// The whole thought of the reply.
    pub fn thought_text(&self) -> String {
        match &self.stated {
            Some(stated) => stated.clone(),
            None => self.thought.concat(),
        }
    }

    /// Name of the tool, of all of several, or of what there is instead.
    pub fn action_name(&self) -> Cow<'_, str> {
        Cow::Borrowed(match &self.taken {
            Taken::Action { name, .. } => name,
            Taken::Actions { calls } => {
                let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
                return Cow::Owned(names.join(", "));
            }
            Taken::Answer { .. } | Taken::Plan { .. } | Taken::Goals { .. } => "",
            Taken::Unreadable { .. } => PARSE_ERROR,
        })
    }

    /// The tool as the trace and the next prompt name it, with its arguments as JSON text. Those of several are one object, by
    /// the number of the call and its tool.
    pub fn action(&self) -> (Cow<'_, str>, String) {
        let arguments = match &self.taken {
            Taken::Action { arguments, .. } => json_text(arguments),
            Taken::Actions { calls } => {
                let calls = (1..).zip(calls).map(|(number, call)| {
                    let given = Value::Object(call.arguments.clone());
                    (format!("{number} {}", call.name), given)
                });
                json_text(&calls.collect())
            }
            _ => "{}".to_owned(),
        };
        (self.action_name(), arguments)
    }

    /// Each of several calls as a decision of its own; nothing of one that makes none or one.
    pub fn apart(&self) -> Vec<Self> {
        let Taken::Actions { calls } = &self.taken else {
            return Vec::new();
        };
        let calls = calls.iter().cloned();
        calls
            .map(|call| Self {
                guard: call.guard,
                place: call.place,
                usage: Usage {
                    model: self.usage.model.clone(),
                    ..Usage::default()
                },
                ..Self::of(Taken::Action {
                    name: call.name,
                    arguments: call.arguments,
                })
            })
            .collect()
    }

    /// Of nothing else.
    pub fn of(taken: Taken) -> Self {
        Self {
            thought: Vec::new(),
            answer: Vec::new(),
            stated: None,
            taken,
            usage: Usage::default(),
            candidates: Vec::new(),
            citations: Vec::new(),
            refused: false,
            guard: None,
            compacted: None,
            place: None,
        }
    }
}

fn json_text(arguments: &Map<String, Value>) -> String {
    serde_json::to_string(arguments).unwrap_or_else(|_| "{}".to_owned())
}

/// What a tool returned.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Observation {
    /// Text for the asker and the library.
    pub text: String,
    /// The message of the failure, if it failed.
    pub error: Option<String>,
    /// State after the tool.
    pub state: String,
    /// How long it took.
    pub duration_ms: u64,
    /// What the tool's own model calls took.
    pub usage: Usage,
    /// Whether a tool was called for it.
    pub called: bool,
    /// It is one of several steps of a plan, and was not taken: it waits for its turn.
    #[serde(skip_serializing_if = "is_false")]
    pub put_off: bool,
    /// The trace that the tool itself left, in order: what a later repeat passes on again.
    pub trace: Vec<Explained>,
    /// What numbers in the text name that no step before named.
    pub citations: Vec<Citation>,
    /// Hash of the text, for the guards; that of the same call's last result where this one was not made.
    pub result_hash: String,
    /// What a guard did about it.
    pub guard: Option<Climbed>,
    /// What subagents found, in the order of arrival.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// What the user was asked before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<Confirmed>,
    /// What is known of the poll that it is of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub polled: Option<PollRecord>,
    /// What came of each of several calls, in their order; the rest is what they are together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Self>,
}

/// What a subagent found, or why it found nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Finding {
    /// Number of the subagent, from 0.
    pub subagent: u32,
    /// What it was to find out.
    pub goal: String,
    /// Id of its run.
    pub run: String,
    /// Its answer, with numbers of the run that asked it.
    pub text: String,
    /// What went wrong.
    pub error: Option<String>,
    /// What numbers in the text name that no finding before named.
    pub citations: Vec<Citation>,
    /// Hash of the end of its trace.
    pub head: String,
    /// What it took.
    pub usage: Usage,
    /// Its run was stopped: the text is the best that there was.
    #[serde(skip_serializing_if = "is_false")]
    pub stopped: bool,
    /// It took longer than it may.
    #[serde(skip_serializing_if = "is_false")]
    pub late: bool,
    /// How long it went on, in milliseconds.
    pub took_ms: u64,
    /// The last calls that it made, of an agent that was given the work.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub window: Vec<LoopRecord>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// An entry of a trace that somebody else keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Explained {
    /// What is described.
    pub id: String,
    /// Its triples.
    #[serde(with = "short")]
    pub triples: Vec<Triple>,
}

/// Triples in their short form: rows of the ledger hold many.
mod short {
    use serde::{Deserialize, Deserializer, Serializer};
    use serde_json::Value;
    use tg_schemas::Triple;

    pub(super) fn serialize<S: Serializer>(triples: &[Triple], ser: S) -> Result<S::Ok, S::Error> {
        ser.collect_seq(triples.iter().map(Triple::to_api))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(de: D) -> Result<Vec<Triple>, D::Error> {
        let values = Vec::<Value>::deserialize(de)?;
        Ok(values.iter().filter_map(Triple::from_api).collect())
    }
}

impl Observation {
    /// Whether the tool has returned; else it is what subagents found so far.
    pub fn is_there(&self) -> bool {
        !self.text.is_empty()
    }

    /// A failed call: the model sees it and may do better.
    pub fn failed(message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            text: format!("Error: {message}"),
            error: Some(message),
            ..Self::default()
        }
    }
}

/// How a run ended without an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// Word for the trace.
    pub reason: String,
    /// Wire type of the error.
    pub kind: String,
    /// Text for people.
    pub message: String,
    /// Number of the first part the asker lacks, where that is not what the run itself counted.
    #[serde(default)]
    pub seq: Option<u64>,
}

impl Ending {
    /// From an error of whoever was asked, or of the agent itself.
    pub fn from_error(error: &Error) -> Self {
        let reason = match error.code() {
            ErrorCode::Cancelled | ErrorCode::Timeout => Reason::Cancelled,
            ErrorCode::Interrupted => Reason::Interrupted,
            _ => Reason::Error,
        };
        Self::new(reason, error)
    }

    /// With a reason of its own.
    pub fn new(reason: Reason, error: &Error) -> Self {
        let kept = matches!(
            error.code(),
            ErrorCode::Cancelled
                | ErrorCode::Timeout
                | ErrorCode::Interrupted
                | ErrorCode::FlowStopped
                | ErrorCode::Busy
                | ErrorCode::RateLimited
                | ErrorCode::NobodyServes
                | ErrorCode::Unavailable
                | ErrorCode::Provider
        );
        Self {
            reason: reason.as_str().to_owned(),
            kind: if kept {
                error.kind.clone()
            } else {
                AGENT_ERROR.to_owned()
            },
            message: error.message.clone(),
            seq: None,
        }
    }

    /// The reason as the trace knows it.
    pub fn reason(&self) -> Reason {
        [
            Reason::MaxIterations,
            Reason::Cancelled,
            Reason::Interrupted,
            Reason::FinalAnswer,
            Reason::PlanComplete,
            Reason::SubagentsComplete,
        ]
        .into_iter()
        .find(|reason| reason.as_str() == self.reason)
        .unwrap_or(Reason::Error)
    }

    /// The error as the asker gets it.
    pub fn error(&self) -> Error {
        Error::typed(&self.kind, self.message.as_str())
    }
}

/// Wire type of the agent's own errors.
pub const AGENT_ERROR: &str = "agent-error";
