//! Uses the tool that was chosen and hands the run on to its next step.

use std::sync::Arc;

use tg_clients::traces::Next;
use tg_provenance::{Event, Reason};
use tg_schemas::msg::{AgentResponse, AgentRun, AgentRunStep};
use tg_schemas::processors::agent_manager;
use tokio::time::Instant;

use super::ahead::NextRun;
use super::calling::{Calling, UNKNOWN, count};
use super::execution::StepExecution;
use super::guard;
use super::ready::{Prepared, Ready};
use super::remembered::last_written;
use super::step::begin_at_once;
use super::subagents::nothing_found;
use super::together;
use super::went::Went;
use crate::engine::arguments;
use crate::engine::bounds::{self, MAX_IN_VAIN, MAX_OBSERVATION};
use crate::engine::chunks;
use crate::engine::confirmation::Answer;
use crate::engine::decision::{Decision, Ending, Observation, Taken, outcomes};
use crate::engine::exchange::{Entry, Outcome, ToolUse};
use crate::engine::guards::ladder;
use crate::engine::pattern::Done;
use crate::engine::patterns;
use crate::engine::phase::Phase;
use crate::engine::toolset::{self, Kind, Tool, ToolSet};
use crate::engine::trace::Left;
use crate::error::{AgentError, Stop};
use crate::kinds::Arguments;

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
        let (seen, promised, next) = self.use_tool(tools, decision, known, repeated).await?;
        if let Some(guard) = seen.guard.as_ref().filter(|guard| guard.stops()) {
            let why = guard.sentence();
            let stopped = self.stopped(Some(decision), Some(&seen), (Reason::Loop, &why));
            return stopped.await;
        }
        self.hand_on(decision, &seen, (again, promised, next))
            .await?;
        if self.relay.is_none() && self.playback.is_none() && !self.gives_work(tools, decision) {
            // What follows from it is durable, and its lease says that it is done. The row says so with the end of the run: until
            // then it would spare another process only to write the same trace again, if the record comes to one.
            return Ok(());
        }
        let ledger = self.ledger().await?;
        Ok(ledger.finish_step(&self.run.run, self.step).await?)
    }

    /// What the tool returned; all entries of the step, and the run after it, if they were made.
    async fn use_tool(
        &mut self,
        tools: &ToolSet,
        decision: &Decision,
        known: Option<Observation>,
        repeated: bool,
    ) -> Result<(Observation, Option<Vec<Event>>, NextRun), Stop> {
        // Whoever takes the run's end up again knows of it, too.
        self.seen.clone_from(&known);
        let mut chosen = Vec::new();
        let acts = matches!(decision.taken, Taken::Action { .. } | Taken::Actions { .. });
        if self.phase.is_react() && acts {
            chosen.extend(chunks::actions(&self.id, self.step, decision));
        }
        let left = Left {
            decision: Some(decision),
            ..Left::default()
        };
        let begun = self.all_promised(&left);
        chosen.extend(self.new_of(&begun).into_iter().map(chunks::explain));
        // Where a tool was used already, the user was asked here.
        for (nth, one, seen) in known.iter().flat_map(|seen| outcomes(decision, seen)) {
            let asked = seen.confirmed.as_ref();
            chosen
                .extend(asked.map(|asked| {
                    chunks::confirm(&self.id, (self.step, nth), &one, asked.until_ms)
                }));
        }
        self.send_all(chosen).await?;
        if self.gives_work(tools, decision) {
            self.retell().await?;
        }
        // The JSON of what is told of the observation.
        let (mut written, mut next) = (Vec::new(), None);
        let (seen, (observed, promised)) = match known {
            Some(seen) => {
                self.count_all(self.tool_took(decision, &seen)).await?;
                let observed = self.returned(decision, &seen, begun);
                (seen, observed)
            }
            None => {
                let seen = self.observe(tools, decision, repeated).await?;
                self.keep_notes().await?;
                let observed = self.returned(decision, &seen, begun);
                let told = self.told_with(&observed.0);
                let until = told.first + told.parts.len() as u64;
                written = last_written(&told, observed.0.len());
                let kept = self.commit_observation((decision, &seen), told, observed.1.as_deref());
                next = kept.await?;
                self.kept(until);
                (seen, observed)
            }
        };
        self.seen = Some(seen.clone());
        if let Some(ending) = nothing_found(decision, &seen) {
            return Err(Stop::End(ending));
        }
        self.send_known(observed, written).await?;
        Ok((seen, promised, next))
    }

    /// What is sent of an observation, behind the entries of the decision, and all entries of the step.
    fn returned(
        &self,
        decision: &Decision,
        seen: &Observation,
        begun: Vec<Event>,
    ) -> (Vec<AgentResponse>, Option<Vec<Event>>) {
        if matches!(decision.taken, Taken::Plan { .. } | Taken::Goals { .. })
            || nothing_found(decision, seen).is_some()
        {
            return (Vec::new(), None);
        }
        let mut observed = Vec::new();
        for (nth, one, seen) in outcomes(decision, seen) {
            observed.extend(seen.trace.iter().map(chunks::relayed));
            let at = (self.step, nth);
            observed.push(chunks::observation(&self.id, at, &one, &seen.text));
        }
        let left = Left {
            decision: Some(decision),
            seen: Some(seen),
            ..Left::default()
        };
        let shown = self.new_of(&begun).len();
        let promised = self.promised_after(begun, &left);
        // What subagents found was shown as it came. The parent of a run that is one itself drops what it knows.
        let known = match self.relay {
            Some(_) => 0,
            None => seen.findings.len(),
        };
        let shown = shown + known;
        let new = self.new_of(&promised).into_iter();
        observed.extend(new.skip(shown).map(chunks::explain));
        (observed, Some(promised))
    }

    /// Begins the next step, and publishes its record with the trace of this one.
    async fn hand_on(
        &mut self,
        decision: &Decision,
        seen: &Observation,
        (again, promised, next): (bool, Option<Vec<Event>>, NextRun),
    ) -> Result<(), Stop> {
        let left = Left {
            decision: Some(decision),
            seen: Some(seen),
            ..Left::default()
        };
        let thought = self.reflected(Some(decision));
        let chain = promised.as_deref().map(|all| self.head_of(all));
        if self.relay.is_some() || self.playback.is_some() {
            let texts = self.texts(&thought, &left);
            let entries = |has| self.to_store(&left, promised, has);
            let stored = self.traces.store(texts, entries).await;
            self.went = Some(Went::On(Box::new(self.next(decision, seen, chain))));
            return stored.map_err(Stop::Error);
        }
        let Some(out) = self.out.take() else {
            return Ok(());
        };
        let mut next = next.map_or_else(|| self.next(decision, seen, chain), |next| *next);
        let mut address = out.release();
        if self.unheard {
            // Who took nothing lacks what was told meanwhile.
            address.seq = self.telling.at;
        }
        next.reply = serde_json::to_string(&address).map_err(AgentError::from)?;
        if !again {
            self.agent.leases.publishing(&next.run, self.step + 1);
        }
        let next = Arc::new(next);
        let written = begin_at_once(&self.agent, &self.cx.outliving(), &next, address);
        // The next step goes first: its model is asked before this thread writes the record.
        tokio::task::yield_now().await;
        let texts = self.texts(&thought, &left);
        let entries = |has| self.to_store(&left, promised, has);
        let record = Next {
            spec: agent_manager::NEXT_STEP,
            message: &next,
            written,
        };
        let stored = self.traces.store_with(texts, entries, record).await;
        stored.map_err(Stop::Error)
    }

    /// The run after this step, whose last entry has this hash; `None`: it is not known.
    pub(super) fn next(
        &self,
        decision: &Decision,
        seen: &Observation,
        chain: Option<String>,
    ) -> AgentRun {
        let head = || {
            self.head(&Left {
                decision: Some(decision),
                seen: Some(seen),
                ..Left::default()
            })
        };
        let mut total = self.used_before();
        total.add(&decision.usage);
        total.add(&seen.usage);
        let (action, arguments) = decision.action();
        let mut next = AgentRun {
            step: i64::from(self.step) + 1,
            state: seen.state.clone(),
            in_token: total.in_token,
            out_token: total.out_token,
            cache_read: total.cache_read,
            cache_write: total.cache_write,
            cost: total.cost.of_run(),
            calls: total.calls,
            model: total.model,
            chain: chain.unwrap_or_else(head),
            ..AgentRun::clone(&self.run)
        };
        next.citations.extend(seen.citations.iter().cloned());
        next.findings += i64::try_from(seen.findings.len()).unwrap_or(0);
        if self.phase.is_react() {
            self.remember(&mut next, decision, seen);
        }
        let done = Done {
            run: &self.run,
            decision,
            seen,
            step: AgentRunStep {
                action: action.into_owned(),
                arguments,
                failed: seen.error.is_some(),
                calls: together::calls(decision),
                ..AgentRunStep::default()
            },
            shown: &|| together::shown(decision, seen),
            most: self.most_steps(),
        };
        patterns::of(&self.run).record(&mut next, done);
        next
    }

    /// What came of the choice, for the model.
    async fn observe(
        &mut self,
        tools: &ToolSet,
        decision: &Decision,
        repeated: bool,
    ) -> Result<Observation, Stop> {
        match &decision.taken {
            Taken::Plan { .. } => {
                return Ok(Observation {
                    state: self.run.state.clone(),
                    ..Observation::default()
                });
            }
            Taken::Goals { goals } => return self.gather(decision, goals).await,
            Taken::Actions { .. } => return self.side_by_side(tools, decision, repeated).await,
            _ => {}
        }
        let started = Instant::now();
        let seen = self.try_tool(tools, decision, repeated).await?;
        let mut seen = self.came(0, seen, started, MAX_OBSERVATION)?;
        self.guard_result(tools, decision, &mut seen);
        Ok(seen)
    }

    /// What came of a call that was begun then, as it is kept: so many bytes of it at most.
    pub(super) fn came(
        &self,
        nth: u32,
        mut seen: Observation,
        started: Instant,
        most: usize,
    ) -> Result<Observation, Stop> {
        seen.text = bounds::shorten(seen.text.trim(), most);
        if seen.error.is_some() {
            seen.state.clone_from(&self.run.state);
        }
        seen.duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        if let Some(playback) = &self.playback {
            seen.duration_ms = playback.took(((&self.run.run, self.step), nth))?;
        }
        self.polled(&mut seen);
        if seen.text.is_empty() {
            seen.text = "(nothing)".to_owned();
        }
        Ok(seen)
    }

    async fn try_tool(
        &mut self,
        tools: &ToolSet,
        decision: &Decision,
        repeated: bool,
    ) -> Result<Observation, Stop> {
        match self.prepare(tools, (0, decision), repeated).await? {
            Prepared::Known(seen) => Ok(seen),
            Prepared::Ready(ready) => {
                let arguments = ready.arguments.clone();
                let seen = self.make(decision, ready.tool, arguments).await?;
                Ok(ready.seen(seen))
            }
        }
    }

    /// Everything before a call is made: whether there is such a tool, what it is given, whether it is too soon, and what the user
    /// says of it.
    pub(super) async fn prepare<'a>(
        &mut self,
        tools: &'a ToolSet,
        (nth, decision): (u32, &Decision),
        repeated: bool,
    ) -> Result<Prepared<'a>, Stop> {
        let known = |seen| Ok(Prepared::Known(seen));
        let (name, given) = match &decision.taken {
            Taken::Action { name, arguments } => (name, arguments.clone()),
            // A step of a plan that fails is planned anew instead.
            Taken::Unreadable { .. }
                if self.phase.is_react() && bounds::unread_before(&self.run) + 1 >= MAX_IN_VAIN =>
            {
                let error = AgentError::Unreadable.into();
                return Err(Stop::End(Ending::new(Reason::Error, &error)));
            }
            Taken::Unreadable { detail } => {
                return known(Observation::failed(format!("LLM parse error: {detail}")));
            }
            _ => return known(Observation::default()),
        };
        if let Some(guard) = guard::blocks(decision) {
            return known(Observation::failed(ladder::blocked(guard)));
        }
        if name.is_empty() && self.phase != Phase::React {
            return known(Observation {
                text: "(no tool was needed)".to_owned(),
                ..Observation::default()
            });
        }
        let available = tools.available(&self.run);
        let Some(tool) = toolset::find(&available, name) else {
            let names: Vec<_> = available.iter().map(|tool| tool.name.as_str()).collect();
            let names = if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            };
            return known(Observation::failed(format!(
                "there is no tool '{name}'. Tools: {names}"
            )));
        };
        let arguments = match arguments::check(&tool.arguments, given) {
            Ok(arguments) => arguments,
            Err(fault) => return known(Observation::failed(fault)),
        };
        let poll = self.poll(tool, (nth, decision))?;
        if let Some(held) = poll.as_ref().and_then(|poll| self.held(poll)) {
            return known(held);
        }
        let consent = match tool.asks(&self.run) {
            true => Some(self.ask_user((nth, decision)).await?),
            false => None,
        };
        let (confirmed, begun) = match consent {
            // What is being waited for was not begun.
            Some(consent) => (Some(consent.confirmed), consent.used),
            None => (None, repeated),
        };
        let begun = match &self.playback {
            Some(playback) => playback.is_unknown(((&self.run.run, self.step), nth)),
            None => begun,
        };
        let answer = confirmed.as_ref().map_or(Answer::Yes, |said| said.answer);
        let mut ready = Ready {
            tool,
            arguments,
            confirmed,
            poll,
        };
        if answer != Answer::Yes {
            let refused = Observation::failed(answer.refusal(&tool.name));
            return known(ready.seen(refused));
        }
        if begun && !tool.kind.repeatable() {
            let given = std::mem::take(&mut ready.arguments);
            let used = tool_use(tool, given, Outcome::Unknown);
            self.note(&Entry::Tool(used).of_call(nth))?;
            return known(ready.seen(Observation::failed(UNKNOWN)));
        }
        if ready.confirmed.is_some() {
            let ledger = self.ledger().await?;
            ledger.begin_use(&self.run.run, (self.step, nth)).await?;
        }
        Ok(Prepared::Ready(ready))
    }

    /// Whether the step has subagents do something.
    pub(super) fn gives_work(&self, tools: &ToolSet, decision: &Decision) -> bool {
        match &decision.taken {
            Taken::Goals { .. } => true,
            Taken::Action { name, .. } => {
                let available = tools.available(&self.run);
                toolset::find(&available, name).is_some_and(|tool| tool.kind.gives_work())
            }
            _ => false,
        }
    }

    /// Makes a call, within a span of its own.
    async fn make(
        &mut self,
        decision: &Decision,
        tool: &Tool,
        arguments: Arguments,
    ) -> Result<Observation, Stop> {
        let known = Arc::new(self.run.citations.clone());
        let mut call = self.calling((0, decision), tool, &known);
        if !tool.kind.gives_work() {
            let made = call.make(tool, arguments).await;
            self.take_notes(&mut call)?;
            return made;
        }
        let of_step = std::mem::replace(&mut self.cx, call.cx.clone());
        let made = self.give_work(decision, tool, arguments, &mut call).await;
        self.cx = of_step;
        call.ended(&made);
        self.take_notes(&mut call)?;
        made
    }

    /// Has subagents do something, within a call.
    async fn give_work(
        &mut self,
        decision: &Decision,
        tool: &Tool,
        arguments: Arguments,
        call: &mut Calling,
    ) -> Result<Observation, Stop> {
        let allowed = call.before_use(tool, arguments).await;
        self.take_notes(call)?;
        let arguments = match allowed? {
            Ok(arguments) => arguments,
            Err(told) => return Ok(Observation::failed(told)),
        };
        let started = Instant::now();
        let mut seen = match &tool.kind {
            Kind::Delegate { agents } => {
                self.delegate(decision, (tool, &**agents), &arguments)
                    .await?
            }
            Kind::Dispatch {
                agents,
                r#async: true,
                ..
            } => self.once(tool, &arguments, agents).await?,
            Kind::Dispatch {
                agents, concurrent, ..
            } => {
                let among = (&**agents, *concurrent);
                self.dispatch(decision, among, &arguments).await?
            }
            _ => return Err(AgentError::NotAsked.into()),
        };
        if self.playback.is_none() {
            count(tool, started);
        }
        if seen.error.is_none() {
            let text = std::mem::take(&mut seen.text);
            match call.after_use(tool, &arguments, text).await? {
                Ok(text) => seen.text = text,
                Err(told) => {
                    seen.text = format!("Error: {told}");
                    seen.error = Some(told);
                }
            }
        }
        if seen.error.is_none() {
            seen.state = tool.next_state(&self.run.state);
        }
        Ok(seen)
    }

    /// Notes the outcome of a call, if the run is recorded.
    pub(super) fn note_tool(
        &mut self,
        tool: &Tool,
        arguments: Arguments,
        outcome: Outcome,
    ) -> Result<(), Stop> {
        self.note(&Entry::Tool(tool_use(tool, arguments, outcome)))
    }
}

fn tool_use(tool: &Tool, arguments: Arguments, outcome: Outcome) -> ToolUse {
    ToolUse {
        name: tool.name.clone(),
        arguments,
        outcome,
    }
}
