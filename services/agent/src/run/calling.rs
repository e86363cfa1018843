//! One call of a tool, with all that it needs of its step: several go on side by side. Under its key it is the same call whoever makes
//! it: run, step, and which call of the step it is.

use std::sync::Arc;

use serde_json::Value;
use tg_mesh::telemetry::attributes;
use tg_mesh::{Cx, Deadline, Span, SpanKind};
use tg_schemas::msg::Citation;
use tg_schemas::{Error, ErrorCode};
use tokio::time::Instant;

use super::again::{RETRIES, Unserved};
use super::agent::Agent;
use super::execution::StepExecution;
use super::late::ending;
use super::playback::{Playback, Which};
use crate::engine::decision::{Decision, Observation, Usage};
use crate::engine::exchange::{Entry, Outcome, ToolUse};
use crate::engine::guards::budget;
use crate::engine::toolset::Tool;
use crate::error::Stop;
use crate::kinds::{self, Arguments, Call, Output};
use crate::prices;

/// The error for the model of a call that a process had begun that died.
pub(super) const UNKNOWN: &str =
    "the outcome of this call is unknown: it was interrupted and may have taken effect";

/// See the module.
pub(super) struct Calling {
    agent: Arc<Agent>,
    /// With the span of the call.
    pub(super) cx: Cx,
    pub(super) run: String,
    pub(super) step: u32,
    nth: u32,
    /// IRI of the choice.
    caller: String,
    pub(super) collection: String,
    collections: Vec<String>,
    passages: i64,
    caller_depth: i64,
    state: String,
    /// The model that chose it.
    model: String,
    known: Arc<Vec<Citation>>,
    pub(super) playback: Option<Arc<Playback>>,
    /// The flow has a hook.
    pub(super) hooked: bool,
    records: bool,
    /// Inputs that the step is to note.
    notes: Vec<Entry>,
    span: Span,
}

impl StepExecution {
    /// A call of the step, by its number.
    pub(super) fn calling(
        &self,
        (nth, decision): (u32, &Decision),
        tool: &Tool,
        known: &Arc<Vec<Citation>>,
    ) -> Calling {
        let name = || format!("execute_tool {}", tool.name);
        let mut span = self.cx.span(SpanKind::Internal, name);
        span.say(attributes::GEN_AI_OPERATION, "execute_tool");
        span.say(attributes::GEN_AI_TOOL, &tool.name);
        span.say(attributes::TOOL_KIND, tool.kind.label());
        Calling {
            agent: self.agent.clone(),
            cx: self.cx.clone().within(&span),
            run: self.run.run.clone(),
            step: self.step,
            nth,
            caller: self
                .phase
                .caller_of(&self.id, self.step, (nth, decision.place)),
            collection: self.run.collection.clone(),
            collections: self.run.collections.clone(),
            passages: self.run.top_k,
            caller_depth: self.run.caller_depth,
            state: self.run.state.clone(),
            model: decision.usage.model.clone(),
            known: known.clone(),
            playback: self.playback.clone(),
            hooked: self.has_hook(),
            records: self.records(),
            notes: Vec::new(),
            span,
        }
    }

    /// Notes the inputs of a call as those of the step.
    pub(super) fn take_notes(&mut self, call: &mut Calling) -> Result<(), Stop> {
        let notes = std::mem::take(&mut call.notes);
        notes.iter().try_for_each(|entry| self.note(entry))
    }
}

impl Calling {
    /// The key of the call, the same in each process that makes it.
    pub(super) fn key(&self) -> String {
        match self.nth {
            0 => format!("{}/{}", self.run, self.step),
            nth => format!("{}/{}/{nth}", self.run, self.step),
        }
    }

    pub(super) fn which(&self) -> Which<'_> {
        ((&self.run, self.step), self.nth)
    }

    pub(super) fn note(&mut self, entry: impl FnOnce() -> Entry) {
        if self.records {
            self.notes.push(entry().of_call(self.nth));
        }
    }

    fn note_tool(&mut self, tool: &Tool, arguments: &Arguments, outcome: Outcome) {
        self.note(|| {
            Entry::Tool(ToolUse {
                name: tool.name.clone(),
                arguments: arguments.clone(),
                outcome,
            })
        });
    }

    /// What came of it, for its span.
    pub(super) fn ended(&mut self, made: &Result<Observation, Stop>) {
        if !matches!(made, Ok(seen) if seen.error.is_none()) {
            self.span.fail("tool_error");
        }
    }

    /// Makes it, unless its hook denies it.
    pub(super) async fn make(
        &mut self,
        tool: &Tool,
        arguments: Arguments,
    ) -> Result<Observation, Stop> {
        let made = match self.before_use(tool, arguments).await {
            Ok(Ok(arguments)) => self.call(tool, arguments).await,
            Ok(Err(told)) => Ok(Observation::failed(told)),
            Err(stop) => Err(stop),
        };
        self.ended(&made);
        made
    }

    async fn call(&mut self, tool: &Tool, arguments: Arguments) -> Result<Observation, Stop> {
        let result = match &self.playback {
            None => self.called(tool, arguments.clone()).await,
            Some(playback) => match playback.tool(self.which(), &tool.name, &arguments)? {
                Outcome::Returned(returned) => Ok(returned.into()),
                Outcome::Failed(error) => Err(error),
                Outcome::Lost(error, usage) => Ok(Output {
                    usage,
                    failed: Some(error),
                    ..Output::default()
                }),
                Outcome::Unknown => return Ok(Observation::failed(UNKNOWN)),
            },
        };
        let mut output = match result {
            Ok(mut output) => {
                if self.playback.is_none() {
                    output.usage.guess = unreported(tool, &arguments, &output);
                    self.complete(&mut output.usage);
                }
                if let Some(error) = output.failed.take() {
                    return self.lost(tool, &arguments, (error, output.usage));
                }
                if self.records {
                    let outcome = Outcome::Returned(output.clone().into());
                    self.note_tool(tool, &arguments, outcome);
                }
                output
            }
            Err(error) if self.cx.cancel.is_cancelled() || self.cx.deadline.passed() => {
                return Err(ending(&self.cx, &error));
            }
            Err(error) => {
                self.note_tool(tool, &arguments, Outcome::Failed(error.clone()));
                return Ok(Observation {
                    called: true,
                    ..Observation::failed(error.message)
                });
            }
        };
        let text = std::mem::take(&mut output.text);
        Ok(match self.after_use(tool, &arguments, text).await? {
            Ok(text) => Observation {
                text,
                state: tool.next_state(&self.state),
                usage: output.usage,
                called: true,
                trace: output.trace,
                citations: output.citations,
                ..Observation::default()
            },
            Err(told) => Observation {
                called: true,
                usage: output.usage,
                ..Observation::failed(told)
            },
        })
    }

    /// A tool failed that had asked models: what they took counts.
    fn lost(
        &mut self,
        tool: &Tool,
        arguments: &Arguments,
        (error, usage): (Error, Usage),
    ) -> Result<Observation, Stop> {
        if self.cx.cancel.is_cancelled() || self.cx.deadline.passed() {
            return Err(ending(&self.cx, &error));
        }
        let outcome = Outcome::Lost(error.clone(), usage.clone());
        self.note_tool(tool, arguments, outcome);
        Ok(Observation {
            called: true,
            usage,
            ..Observation::failed(error.message)
        })
    }

    /// What a tool took, with what it cost, and as a call where who asked keeps a trail of them.
    fn complete(&self, used: &mut Usage) {
        // A tool that says no model asked one of the flow, which is the agent's own as far as anybody knows here.
        let model = match used.model.as_str() {
            "" => self.model.clone(),
            model => model.to_owned(),
        };
        if used.cost.is_none() && used.in_token + used.out_token > 0 {
            used.cost = prices::cost(&self.cx, &model, used, None);
        }
        if self.caller_depth == 0 {
            used.calls.clear();
        } else if used.calls.is_empty() && !used.cost.is_none() {
            used.list(&model, false);
        }
    }

    async fn called(&self, tool: &Tool, arguments: Arguments) -> Result<Output, Error> {
        let mut cx = self.cx.clone();
        let usual = self.agent.options.tool_timeout();
        let most = tool.timeout.map_or(usual, |own| own.min(usual));
        cx.deadline = cx.deadline.min(Deadline::after(most));
        let call = Call {
            cx: &cx,
            collection: tool.collection.as_deref().unwrap_or(&self.collection),
            // A tool whose row names a collection looks into that one alone.
            collections: match &tool.collection {
                Some(own) => std::slice::from_ref(own),
                None => self.collections.as_slice(),
            },
            key: self.key(),
            iteration: self.caller.clone(),
            passages: self.passages,
            caller_depth: self.caller_depth,
            known: &self.known,
            prompts: &self.agent.prompts,
        };
        let started = Instant::now();
        let result = served(&call, tool, arguments).await;
        count(tool, started);
        let gone = self.cx.cancel.is_cancelled() || self.cx.deadline.passed();
        let failed = !matches!(&result, Ok(output) if output.failed.is_none());
        if failed && !gone {
            metrics::counter!("tg_agent_tool_error_total", "tool" => tool.kind.label())
                .increment(1);
        }
        result
    }

    /// Longest that a hook may take, in seconds.
    pub(super) fn hook_seconds(&self) -> u64 {
        self.agent.options.hook_seconds
    }
}

/// Tokens that a tool is likely to have taken of models whose provider reported none; by characters, as of any stream without usage.
fn unreported(tool: &Tool, arguments: &Arguments, output: &Output) -> i64 {
    if !tool.kind.asks_model() {
        return 0;
    }
    let length = |value: &Value| value.to_string().chars().count();
    let read = match output.usage.in_token {
        0 => arguments.values().map(length).sum::<usize>(),
        _ => 0,
    };
    let written = match output.usage.out_token {
        0 => output.text.chars().count(),
        _ => 0,
    };
    budget::tokens(read.saturating_add(written))
}

/// Makes a call, and makes it again if the process died that served it or none serves it for the moment: under its key, so that work
/// which goes on is found again. A call that must not be made twice is made once: whether it took effect is not known. An error that
/// the tool returned stands.
async fn served(call: &Call<'_>, tool: &Tool, arguments: Arguments) -> Result<Output, Error> {
    if !tool.kind.repeatable() {
        return kinds::call(call, tool, arguments).await;
    }
    let mut call = call.clone();
    let (mut unserved, mut left, mut took) = (Unserved::default(), RETRIES, Usage::default());
    loop {
        let result = kinds::call(&call, tool, arguments.clone()).await;
        let again = match &result {
            Err(error) if error.code() == ErrorCode::NobodyServes => {
                unserved.waits(call.cx, error).await
            }
            Ok(Output {
                failed: Some(error),
                ..
            })
            | Err(error)
                if error.code() == ErrorCode::Interrupted && left > 0 =>
            {
                left -= 1;
                // The service itself broke off, or did for the second time. It keeps its answer for some seconds: under the same
                // key that one would come again, with its tokens.
                if result.is_ok() || left == 0 {
                    call.key.push_str("/again");
                }
                !(call.cx.cancel.is_cancelled() || call.cx.deadline.passed())
            }
            _ => false,
        };
        match result {
            Ok(output) => {
                // What each try took of models counts.
                took.add(&output.usage);
                if !again {
                    return Ok(Output {
                        usage: took,
                        ..output
                    });
                }
            }
            Err(_) if again => {}
            Err(error) if took == Usage::default() => return Err(error),
            Err(error) => {
                return Ok(Output {
                    usage: took,
                    failed: Some(error),
                    ..Output::default()
                });
            }
        }
    }
}

pub(super) fn count(tool: &Tool, started: Instant) {
    let label = tool.kind.label();
    metrics::counter!("tg_agent_tool_invocation_total", "tool" => label).increment(1);
    metrics::histogram!("tg_agent_tool_duration_seconds", "tool" => label)
        .record(started.elapsed().as_secs_f64());
}
