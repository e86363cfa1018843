//! One step of a run, from its record to the next record or the end of the dialog.
//!
//! Order of what the asker gets: thought pieces · action · entry of the decision · entry of the thought ·
//! observation · entry of the observation; at the end thought pieces · answer pieces · entry of the
//! conclusion · last chunk. A step taken up again sends the same chunks under the same numbers, from its
//! rows.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tg_clients::traces::TraceWriter;
use tg_mesh::config_view::Rows;
use tg_mesh::{Cx, Responder, Span, SpanKind, clock, telemetry::attributes};
use tg_provenance::{Ended, Reason, Session};
use tg_schemas::Error;
use tg_schemas::msg::{AgentResponse, AgentRun};
use tg_schemas::vocabulary::tg;

use super::agent::Agent;
use super::asks::Asks;
use super::day::today;
use super::late;
use super::playback::Playback;
use super::recorded::Recorded;
use super::telling::Telling;
use super::went::{Relay, Went};
use crate::engine::bounds::own_steps;
use crate::engine::chunks;
use crate::engine::cost::Cost;
use crate::engine::decision::{Decision, Ending, Observation, Taken, Usage};
use crate::engine::phase::Phase;
use crate::engine::toolset::ToolSet;
use crate::engine::trace::{Entries, Left, Stored};
use crate::error::{AgentError, Stop};
use crate::store::{IsOver, Ledger, Noted, Piece, RunEnd, RunKey, StepRow};

/// A detached run waits this long for an asker who takes nothing; then it goes on without one.
const ASKER_TIMEOUT: Duration = Duration::from_secs(3);

/// Whether the workspace of a message has ended, in the generation that it was sent in.
pub(crate) fn is_over(cx: &Cx) -> IsOver {
    let (config, key) = (cx.config().clone(), cx.workspace_key());
    IsOver::when(move || config.is_over(&key))
}

/// What was written to the ledger is there, or its workspace is not.
pub(super) fn there(kept: bool) -> Result<(), AgentError> {
    match kept {
        true => Ok(()),
        false => Err(AgentError::NoWorkspace),
    }
}

/// A step under way.
pub(super) struct StepExecution {
    pub(super) agent: Arc<Agent>,
    pub(super) cx: Cx,
    pub(super) run: Arc<AgentRun>,
    pub(super) step: u32,
    pub(super) id: Session,
    /// What the step is for.
    pub(super) phase: Phase,
    pub(super) traces: TraceWriter,
    /// `None` once it was given to the next step, or if the run has gone on already.
    pub(super) out: Option<Responder<AgentResponse>>,
    /// The run goes on when nobody listens.
    pub(super) detach: bool,
    /// Detached, and nobody takes the answer.
    pub(super) unheard: bool,
    /// Its record. Before that is durable, the step keeps and sends nothing.
    recorded: Recorded,
    /// Sent as soon as there is one, or with the next part.
    pub(super) unsent: Vec<AgentResponse>,
    /// Where a subagent's parts go.
    pub(super) relay: Option<Relay>,
    /// Parts of subagents that were passed on, by kind and name.
    pub(super) told: BTreeSet<(String, String)>,
    /// What came of a subagent's step.
    pub(super) went: Option<Went>,
    /// What the asker heard of the model's text before another process took the step up.
    pub(super) heard: Vec<Piece>,
    /// The rows so far, for the run's end.
    pub(super) decision: Option<Arc<Decision>>,
    pub(super) seen: Option<Observation>,
    /// How often models were asked in it.
    pub(super) asks: Asks,
    /// What is kept of the parts that it streams.
    pub(super) telling: Telling,
    /// Ends with the step.
    pub(super) span: Span,
    /// What servers of tools say that they have.
    pub(super) listed: Arc<Rows>,
    /// Inputs that the ledger is to keep, if the run is recorded.
    pub(super) notes: Vec<Noted>,
    /// Nothing of it is kept any more.
    pub(super) unrecorded: bool,
    /// In place of the outside, of a run that is replayed.
    pub(super) playback: Option<Arc<Playback>>,
    /// Parts of subagents of a replayed step, until they are sent in the recorded order.
    pub(super) held: Vec<AgentResponse>,
}

impl StepExecution {
    pub(super) fn new(
        agent: Arc<Agent>,
        cx: Cx,
        run: Arc<AgentRun>,
        step: u32,
        out: Option<Responder<AgentResponse>>,
        detach: bool,
    ) -> Self {
        let mut span = cx.span(SpanKind::Internal, || "agent step".to_owned());
        span.say(attributes::GEN_AI_OPERATION, "invoke_agent");
        span.say(attributes::RUN, &run.run);
        span.count(attributes::STEP, i64::from(step));
        let cx = cx.within(&span).counted_by_run();
        Self {
            id: Session::new(&run.run),
            phase: crate::engine::patterns::next(&run),
            traces: TraceWriter::outliving(&cx, &run.collection),
            agent,
            cx,
            run,
            step,
            out,
            detach,
            unheard: false,
            recorded: Recorded::Durable,
            unsent: Vec::new(),
            relay: None,
            told: BTreeSet::new(),
            went: None,
            heard: Vec::new(),
            decision: None,
            seen: None,
            asks: Asks::default(),
            telling: Telling::default(),
            span,
            listed: Arc::default(),
            notes: Vec::new(),
            unrecorded: false,
            playback: None,
            held: Vec::new(),
        }
    }

    /// The step was begun while its record is on its way.
    pub(super) fn begun_with(mut self, recorded: Recorded) -> Self {
        self.recorded = recorded;
        self
    }

    pub(super) fn key(&self) -> RunKey {
        RunKey {
            run: self.run.run.clone(),
            is_over: is_over(&self.cx),
        }
    }

    /// Waits until the step has its record.
    pub(super) async fn recorded(&mut self) -> Result<(), Stop> {
        match self.recorded.wait().await {
            true => Ok(()),
            false => Err(Stop::Error(AgentError::NotRecorded.into())),
        }
    }

    /// Takes the step. Only faults of ours are errors: every other outcome ends the run properly.
    pub(super) async fn take(mut self, row: StepRow) -> Result<(), Stop> {
        let result = match self.resend().await {
            Ok(()) => self.settle(row).await,
            Err(stop) => Err(stop),
        };
        if let Some(out) = self.out.take()
            && !out.ended()
        {
            // Whoever takes the step up again goes on with the answer, from here.
            self.agent.leases.asked_again(&self.cx.id, out.next_seq());
            let _ = out.release();
        }
        result
    }

    /// Goes on to the next step, or to the end of the run.
    pub(super) async fn settle(&mut self, row: StepRow) -> Result<(), Stop> {
        let mut result = match row.ending {
            Some(ending) => {
                self.decision = row.decision.map(Arc::new);
                self.seen = row.observation;
                Err(Stop::End(ending))
            }
            None => self.advance(row).await,
        };
        if let Err(Stop::End(ending)) = result {
            result = self.conclude(ending).await;
        }
        result
    }

    async fn advance(&mut self, row: StepRow) -> Result<(), Stop> {
        if self.playback.is_none() {
            metrics::counter!("tg_agent_iterations_total").increment(1);
            self.listed = self.agent.servers.of(&self.cx).await;
        }
        self.note_begin()?;
        // Its end may be in the trace already: whether somebody still hears of it turns nothing.
        let is_answered = row.decision.as_ref().is_some_and(Decision::is_answer);
        let heard = |sent: Result<(), Stop>| match sent {
            Err(Stop::End(_)) if is_answered => Ok(()),
            sent => sent,
        };
        if self.step == 1 && self.heard.is_empty() {
            let began = self.entries().session();
            // How the question is gone about is said before it, as clients know it.
            let began = began.into_iter().rev();
            self.unsent.extend(began.map(chunks::explained));
            if self.recorded.is_durable() {
                heard(self.send_all(Vec::new()).await)?;
            }
        }
        let limit = self.most_steps();
        if self.phase.is_react() && own_steps(&self.run).len() >= limit {
            if !self.run.agent.is_empty() || self.run.max_iterations > 0 {
                // Who gave it work, or such a bound, gets what there is.
                let why = &AgentError::Iterations.to_string();
                let why = (Reason::MaxIterations, why.as_str());
                return self.stopped(None, None, why).await;
            }
            let error = AgentError::Iterations.into();
            return Err(Stop::End(Ending::new(Reason::MaxIterations, &error)));
        }
        let tools = self.tools();
        let repeated = row.decision.is_some();
        // Known before anything is said: an end that is taken up again says the same of it.
        self.decision = row.decision.map(Arc::new);
        let decision = match self.decision.clone() {
            Some(decision) => {
                self.count_all(self.model_took(&decision)).await?;
                heard(self.repeat(&decision).await)?;
                decision
            }
            None => match self.decide(&tools).await {
                Err(Stop::Spent(over)) => {
                    return self.stopped(None, None, (Reason::Budget, &over.why)).await;
                }
                decided => decided?,
            },
        };
        let decision: &Decision = &decision;
        let over = match row.observation {
            None => self.no_tool_call(decision).await?,
            Some(_) => None,
        };
        match &decision.taken {
            Taken::Answer { text } => self.answer(decision, text).await,
            _ if let Some(guard) = decision.guard.as_ref().filter(|guard| guard.stops()) => {
                let why = (Reason::Loop, guard.sentence());
                self.stopped(Some(decision), None, (why.0, &why.1)).await
            }
            _ if let Some(over) = &over => {
                let why = (Reason::Budget, over.why.as_str());
                self.stopped(Some(decision), None, why).await
            }
            _ => self.act(&tools, decision, row.observation, repeated).await,
        }
    }

    /// Asks the model and commits what it chose.
    async fn decide(&mut self, tools: &ToolSet) -> Result<Arc<Decision>, Stop> {
        if let Some(over) = self.no_model_call().await? {
            return Err(Stop::Spent(over));
        }
        let mut decision = self.think_by_phase(tools).await?;
        self.guard_decision(tools, &mut decision);
        if let Some(playback) = &self.playback {
            playback.decides((&self.run.run, self.step))?;
        }
        self.recorded().await?;
        self.keep_notes().await?;
        self.commit_decision(&decision).await?;
        let decision = Arc::new(decision);
        self.decision = Some(decision.clone());
        if !self.run.streaming || !self.phase.streams() {
            self.repeat(&decision).await?;
        }
        Ok(decision)
    }

    /// Sends the thought, and the streamed part of the answer, of a committed decision.
    async fn repeat(&mut self, decision: &Decision) -> Result<(), Stop> {
        let message = self.phase.thought(&self.id, self.step);
        let mut said = chunks::thoughts(&message, decision);
        let pieces = decision.answer.iter();
        said.extend(pieces.map(|piece| chunks::answer(self.phase.answer(&self.id), piece)));
        self.send_all(said).await
    }

    /// The end with an answer. From here on nothing but a fault of ours can turn the run.
    async fn answer(&mut self, decision: &Decision, text: &str) -> Result<(), Stop> {
        let left = Left {
            decision: Some(decision),
            ..Left::default()
        };
        let promised = self.all_promised(&left);
        let head = self.head_of(&promised);
        let shown = self.new_of(&promised);
        let compacted = shown.iter().filter(|entry| entry.is(tg::COMPACTION));
        let end = compacted.chain(shown.last()).copied();
        let mut end: Vec<AgentResponse> = end.map(chunks::explain).collect();
        let thought = self.reflected(Some(decision));
        let texts = self.texts(&thought, &left);
        let entries = |has| self.to_store(&left, Some(promised), has);
        let stored = self.traces.store(texts, entries).await;
        stored.map_err(Stop::Error)?;
        self.earlier_steps().await;
        let total = self.total(Some(decision), None);
        let rest = if decision.answer.is_empty() { text } else { "" };
        let message = self.phase.answer(&self.id);
        let last = AgentResponse {
            loop_window: self.window().into_records(),
            ..chunks::last(&self.id, message, rest, self.spent(&total), decision)
        };
        end.push(last);
        self.send_if_wanted(end).await;
        if self.relay.is_some() {
            self.went = Some(self.answered(decision, text, &head));
        }
        self.over("answered", &head).await
    }

    /// The end without an answer: a row, an entry of the trace, an error for the asker.
    async fn conclude(&mut self, mut ending: Ending) -> Result<(), Stop> {
        if ending.reason() == Reason::Cancelled && self.cx.mesh.shutdown().is_cancelled() {
            // It is this process that goes, not the asker: another one takes the step up.
            return Err(AgentError::Stopping.into());
        }
        self.span.fail(ending.error().code().as_str());
        self.recorded().await?;
        // What ended before is settled. So is a step that broke off: its model was asked.
        if ending.seq.is_none() {
            self.settle_undecided().await?;
        }
        self.send_unsent().await;
        if let Some(playback) = &self.playback {
            ending = playback.ends((&self.run.run, self.step), &ending)?;
        }
        self.keep_notes().await?;
        if ending.seq.is_none() {
            ending.seq = self.out.as_ref().map(|_| self.telling.at);
        }
        let ledger = self.ledger().await?;
        let key = self.key();
        let kept = ledger.end(&key, self.step, &ending, clock::millis());
        there(kept.await?)?;
        let (decision, seen) = (self.decision.take(), self.seen.take());
        let left = Left {
            decision: decision.as_deref(),
            seen: seen.as_ref(),
            ending: Some(&ending),
            ..Left::default()
        };
        let shown = self.promised(&left);
        self.leave(&left).await?;
        self.earlier_steps().await;
        let total = self.total(decision.as_deref(), seen.as_ref());
        let last = chunks::failure(ending.error(), Some(self.spent(&total)));
        let end = shown.last().map(chunks::explain).into_iter();
        self.send_if_wanted(end.chain([last]).collect()).await;
        let outcome = match ending.reason() {
            Reason::MaxIterations => "max-iterations",
            Reason::Cancelled => "cancelled",
            Reason::Interrupted => "interrupted",
            _ => "error",
        };
        let head = Entries::head(&shown);
        if self.relay.is_some() {
            self.went = Some(self.failed(decision.as_deref(), &ending, &head));
        }
        self.over(outcome, &head).await
    }

    /// Stores what a step left behind that did not come to its own end, and the entry of the run's end.
    async fn leave(&self, left: &Left<'_>) -> Result<(), Stop> {
        let thought = self.reflected(left.decision);
        let texts = self.texts(&thought, left);
        let entries =
            |[thought, text]: [bool; 2]| self.entries().of(left, Stored { thought, text });
        let stored = self.traces.store(texts, entries).await;
        stored.map_err(Stop::Error)
    }

    /// Waits until the trace of earlier steps is stored too.
    pub(super) async fn earlier_steps(&self) {
        let earlier = self
            .agent
            .leases
            .earlier_steps_done(&self.run.run, self.step);
        tokio::select! {
            () = earlier => {}
            // Then the answer is not kept waiting for the trace.
            () = self.cx.deadline.reached() => {}
        }
    }

    /// Notes the end of the run once its last part is sent: the answer was resumed, so the bus has all of it by then.
    pub(super) async fn over(&mut self, outcome: &'static str, hash: &str) -> Result<(), Stop> {
        if self.playback.is_some() {
            return Ok(());
        }
        metrics::counter!("tg_agent_session_total", "outcome" => outcome).increment(1);
        metrics::histogram!("tg_agent_run_iterations").record(f64::from(self.step));
        // An asker in this process reads the last part first: the commit takes this thread.
        tokio::task::yield_now().await;
        let ledger = self.ledger().await?;
        let end = RunEnd {
            workspace: self.cx.workspace_key().to_string(),
            day: today(),
            ended: Ended {
                run: self.id.iri().to_owned(),
                collection: self.run.collection.clone(),
                // The end of a subagent's run is a link of its parent's chain.
                hash: match self.run.parent.is_empty() {
                    false => String::new(),
                    true => hash.to_owned(),
                },
            },
            earlier_done: self.agent.leases.are_done(&self.run.run, self.step),
        };
        let (key, told) = (self.key(), self.told_with(&[]));
        let finished = ledger.finish_run(&key, self.step, &end, told, clock::millis());
        finished.await?;
        // Also where nothing is kept: who waits for the end of a run that is cancelled looks there.
        self.agent.transcripts.over(&self.run.run);
        Ok(())
    }

    pub(super) async fn ledger(&self) -> Result<Arc<Ledger>, Stop> {
        self.agent.ledger().await.map_err(Stop::Error)
    }

    /// What the steps before this one used.
    pub(super) fn used_before(&self) -> Usage {
        Usage {
            in_token: self.run.in_token,
            out_token: self.run.out_token,
            model: self.run.model.clone(),
            duration_ms: 0,
            cache_read: self.run.cache_read,
            cache_write: self.run.cache_write,
            cost: Cost::from(self.run.cost),
            calls: self.run.calls.clone(),
            ..Usage::default()
        }
    }

    /// Stores what a step left behind whose run has gone on without its trace.
    pub(super) async fn catch_up(self, row: &StepRow) -> Result<(), Stop> {
        let left = Left {
            decision: row.decision.as_ref(),
            seen: row.observation.as_ref(),
            ..Left::default()
        };
        self.leave(&left).await?;
        let ledger = self.ledger().await?;
        Ok(ledger.finish_step(&self.run.run, self.step).await?)
    }

    /// The error that the run ends with. A cancel or a passed deadline is the reason, and not what failed because of it.
    pub(super) fn ending(&self, error: &Error) -> Stop {
        late::ending(&self.cx, error)
    }

    /// Sends chunks that are there together; the run ends if nobody wants them any more.
    pub(super) async fn send_all(&mut self, chunks: Vec<AgentResponse>) -> Result<(), Stop> {
        self.send_known(chunks, Vec::new()).await
    }

    /// The same, with the JSON of each chunk, if it was written before.
    pub(super) async fn send_known(
        &mut self,
        mut chunks: Vec<AgentResponse>,
        mut known: Vec<String>,
    ) -> Result<(), Stop> {
        self.recorded().await?;
        if !self.unsent.is_empty() {
            known.clear();
            let later = std::mem::replace(&mut chunks, std::mem::take(&mut self.unsent));
            chunks.extend(later);
        }
        if chunks.is_empty() {
            return Ok(());
        }
        if let Some(relay) = &self.relay {
            // Whether anybody wants them is for the parent to know.
            let _ = relay.send(chunks).await;
            return Ok(());
        }
        if let Some(playback) = &self.playback {
            return playback.tell((&self.run.run, self.step), chunks);
        }
        let written = self.tell(&chunks, known);
        self.deliver(chunks, written).await
    }

    /// Sends chunks, with the JSON of each where they are remembered.
    pub(super) async fn deliver(
        &mut self,
        chunks: Vec<AgentResponse>,
        written: Option<Vec<String>>,
    ) -> Result<(), Stop> {
        let Some(out) = self.out.as_mut().filter(|_| !chunks.is_empty()) else {
            return Ok(());
        };
        if !self.detach {
            let sent = send(out, chunks, written).await;
            let next = out.next_seq();
            return sent.map_err(|error| {
                self.untell(next);
                self.ending(&error)
            });
        }
        if !self.unheard {
            let sent = send(out, chunks, written);
            let sent = tokio::time::timeout(ASKER_TIMEOUT, sent).await;
            self.unheard = !matches!(sent, Ok(Ok(())));
            if self.unheard {
                self.nobody_takes().await?;
            }
        }
        Ok(())
    }

    pub(super) async fn send_unsent(&mut self) {
        if !self.unsent.is_empty() {
            let unsent = std::mem::take(&mut self.unsent);
            self.send_if_wanted(unsent).await;
        }
    }

    /// Sends chunks of a run whose end is settled, in one message where that can be.
    pub(super) async fn send_if_wanted(&mut self, mut chunks: Vec<AgentResponse>) {
        if !self.unsent.is_empty() {
            let later = std::mem::replace(&mut chunks, std::mem::take(&mut self.unsent));
            chunks.extend(later);
        }
        if let Some(relay) = &self.relay {
            // The dialog ends with the parent's answer alone.
            chunks.retain(|chunk| !chunk.end_of_dialog);
            if !chunks.is_empty() {
                let _ = relay.send(chunks).await;
            }
            return;
        }
        if let Some(playback) = &self.playback {
            playback.tell_last(chunks);
            return;
        }
        let written = self.tell(&chunks, Vec::new());
        if let Some(out) = &mut self.out {
            // Nobody listening changes nothing.
            let _ = send(out, chunks, written).await;
        }
    }
}

/// Sends chunks, which are not written once more where their JSON is there.
async fn send(
    out: &mut Responder<AgentResponse>,
    chunks: Vec<AgentResponse>,
    written: Option<Vec<String>>,
) -> Result<(), Error> {
    let Some(written) = written else {
        return out.send_all(chunks).await;
    };
    let parts = chunks.into_iter().zip(written).collect();
    out.send_written(parts).await
}
