//! Uses the tool that was chosen and hands the run on to its next step.

use tg_clients::traces::{Next, Text};
use tg_mesh::Deadline;
use tg_provenance::Reason;
use tg_schemas::msg::{AgentRun, AgentRunStep};
use tg_schemas::processors::agent_manager;
use tokio::time::Instant;

use super::execution::StepExecution;
use super::step::begin_at_once;
use super::titles;
use crate::engine::arguments;
use crate::engine::bounds::{self, MAX_IN_VAIN, MAX_OBSERVATION, MAX_SAME, MAX_SHOWN};
use crate::engine::chunks;
use crate::engine::decision::{Decision, Ending, Observation, Taken};
use crate::engine::toolset::{self, Tool, ToolSet};
use crate::engine::trace::{Left, Stored};
use crate::error::{AgentError, Stop};
use crate::kinds::{self, Call};

impl StepExecution {
    /// Sends the decision, uses the tool, sends what it returned, publishes the next step and what this one leaves
    /// behind.
    pub(super) async fn act(
        &mut self,
        tools: &ToolSet,
        decision: &Decision,
        known: Option<Observation>,
        repeated: bool,
    ) -> Result<(), Stop> {
        // Where it is known what the tool returned, the next step may have been published before.
        let again = known.is_some();
        // Without an observation the run ends here, and its end stores everything.
        let seen = self.use_tool(tools, decision, known, repeated).await?;
        self.hand_on(decision, &seen, again).await?;
        let ledger = self.ledger().await?;
        Ok(ledger.finish_step(&self.run.run, self.step).await?)
    }

    async fn use_tool(
        &mut self,
        tools: &ToolSet,
        decision: &Decision,
        known: Option<Observation>,
        repeated: bool,
    ) -> Result<Observation, Stop> {
        // Whoever takes the run's end up again knows of it, too.
        self.seen.clone_from(&known);
        let mut chosen = Vec::new();
        if matches!(decision.taken, Taken::Action { .. }) {
            chosen.push(chunks::action(&self.id, self.step, decision));
        }
        let mut left = Left {
            decision: Some(decision),
            ..Left::default()
        };
        let entries = self.promised(&left);
        chosen.extend(entries.iter().map(chunks::explain));
        self.send_all(chosen).await?;
        let seen = match known {
            Some(seen) => seen,
            None => {
                let seen = self.observe(tools, decision, repeated).await?;
                let ledger = self.ledger().await?;
                ledger.observe(&self.run.run, self.step, &seen).await?;
                seen
            }
        };
        self.seen = Some(seen.clone());
        let mut observed: Vec<_> = seen.trace.iter().map(chunks::relayed).collect();
        observed.push(chunks::observation(&self.id, self.step, &seen.text));
        left.seen = Some(&seen);
        observed.extend(self.promised(&left).last().map(chunks::explain));
        self.send_all(observed).await?;
        Ok(seen)
    }

    /// Begins the next step, and publishes its record with the trace of this one.
    async fn hand_on(
        &mut self,
        decision: &Decision,
        seen: &Observation,
        again: bool,
    ) -> Result<(), Stop> {
        let Some(out) = self.out.take() else {
            return Ok(());
        };
        let mut next = self.next(decision, seen);
        let address = out.release();
        next.reply = serde_json::to_string(&address).map_err(AgentError::from)?;
        if !again {
            self.agent.leases.publishing(&next.run, self.step + 1);
        }
        let written = begin_at_once(&self.agent, &self.cx, &next, address);
        let thought = decision.thought_text();
        let texts = [
            Text {
                id: self.id.thought(self.step),
                title: titles::thought(decision.action().0),
                text: &thought,
            },
            Text {
                id: self.id.observation(self.step),
                title: titles::OBSERVATION.to_owned(),
                text: &seen.text,
            },
        ];
        let left = Left {
            decision: Some(decision),
            seen: Some(seen),
            ending: None,
        };
        let entries =
            |[thought, text]: [bool; 2]| self.entries().of(&left, Stored { thought, text });
        let record = Next {
            spec: agent_manager::NEXT_STEP,
            message: &next,
            written,
        };
        let stored = self.traces.store_with(texts, entries, record).await;
        stored.map_err(Stop::Error)
    }

    /// The run after this step.
    fn next(&self, decision: &Decision, seen: &Observation) -> AgentRun {
        let mut total = self.used_before();
        total.add(&decision.usage);
        total.add(&seen.usage);
        let (action, arguments) = decision.action();
        let mut next = AgentRun {
            step: i64::from(self.step) + 1,
            state: seen.state.clone(),
            in_token: total.in_token,
            out_token: total.out_token,
            model: total.model,
            chain: self.head(&Left {
                decision: Some(decision),
                seen: Some(seen),
                ending: None,
            }),
            ..self.run.clone()
        };
        next.citations.extend(seen.citations.iter().cloned());
        next.history.push(AgentRunStep {
            thought: decision.thought_text(),
            action: action.to_owned(),
            arguments,
            observation: bounds::shorten(&seen.text, MAX_SHOWN),
            failed: seen.error.is_some(),
        });
        next
    }

    /// What the model is told of its choice.
    async fn observe(
        &self,
        tools: &ToolSet,
        decision: &Decision,
        repeated: bool,
    ) -> Result<Observation, Stop> {
        let started = Instant::now();
        let mut seen = self.try_tool(tools, decision, repeated).await?;
        seen.text = bounds::shorten(seen.text.trim(), MAX_OBSERVATION);
        if seen.text.is_empty() {
            seen.text = "(nothing)".to_owned();
        }
        if seen.error.is_some() {
            seen.state.clone_from(&self.run.state);
        }
        seen.duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(seen)
    }

    async fn try_tool(
        &self,
        tools: &ToolSet,
        decision: &Decision,
        repeated: bool,
    ) -> Result<Observation, Stop> {
        let (action, text) = decision.action();
        let before = bounds::calls_before(&self.run, action, &text);
        if before + 1 >= MAX_IN_VAIN {
            let error = match &decision.taken {
                Taken::Unreadable { .. } => AgentError::Unreadable,
                _ => AgentError::Repeating(action.to_owned()),
            };
            return Err(Stop::End(Ending::new(Reason::Error, &error.into())));
        }
        let (name, given) = match &decision.taken {
            Taken::Action { name, arguments } => (name, arguments.clone()),
            Taken::Unreadable { detail } => {
                return Ok(Observation::failed(format!("LLM parse error: {detail}")));
            }
            Taken::Answer { .. } => return Ok(Observation::default()),
        };
        if before >= MAX_SAME {
            return Ok(Observation::failed(format!(
                "this call of '{name}' was made {before} times before, with the observations above. Use \
                 them, try something else, or give the final answer"
            )));
        }
        let available = tools.available(&self.run);
        let Some(tool) = toolset::find(&available, name) else {
            let names: Vec<_> = available.iter().map(|tool| tool.name.as_str()).collect();
            let names = if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            };
            return Ok(Observation::failed(format!(
                "there is no tool '{name}'. Tools: {names}"
            )));
        };
        if repeated && !tool.kind.repeatable() {
            return Ok(Observation::failed(
                "the outcome of this call is unknown: it was interrupted and may have taken effect",
            ));
        }
        match arguments::check(&tool.arguments, given) {
            Ok(arguments) => self.call(tool, arguments).await,
            Err(fault) => Ok(Observation::failed(fault)),
        }
    }

    async fn call(
        &self,
        tool: &Tool,
        arguments: serde_json::Map<String, serde_json::Value>,
    ) -> Result<Observation, Stop> {
        let mut cx = self.cx.clone();
        cx.deadline = cx
            .deadline
            .min(Deadline::after(self.agent.options.tool_timeout()));
        let call = Call {
            cx: &cx,
            collection: tool.collection.as_deref().unwrap_or(&self.run.collection),
            key: format!("{}/{}", self.run.run, self.step),
            iteration: self.id.iteration(self.step),
            known: &self.run.citations,
        };
        let started = Instant::now();
        let result = kinds::call(&call, tool, arguments).await;
        let label = tool.kind.label();
        metrics::counter!("tg_agent_tool_invocation_total", "tool" => label).increment(1);
        metrics::histogram!("tg_agent_tool_duration_seconds", "tool" => label)
            .record(started.elapsed().as_secs_f64());
        match result {
            Ok(output) => Ok(Observation {
                text: output.text,
                state: tool.next_state(&self.run.state),
                usage: output.usage,
                trace: output.trace,
                citations: output.citations,
                ..Observation::default()
            }),
            Err(error) if self.cx.cancel.is_cancelled() || self.cx.deadline.passed() => {
                Err(self.ending(&error))
            }
            Err(error) => {
                metrics::counter!("tg_agent_tool_error_total", "tool" => label).increment(1);
                Ok(Observation::failed(error.message))
            }
        }
    }
}
