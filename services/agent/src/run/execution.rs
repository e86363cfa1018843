//! One step of a run, from its record to the next record or the end of the dialog.
//!
//! Order of what the asker gets: thought pieces · action · entry of the decision · entry of the thought ·
//! observation · entry of the observation; at the end thought pieces · answer pieces · entry of the
//! conclusion · last chunk. A step taken up again sends the same chunks under the same numbers, from its
//! rows.

use std::sync::Arc;
use std::time::Duration;

use tg_clients::neighbours::Neighbours;
use tg_clients::traces::{Text, TraceWriter};
use tg_mesh::{Cx, Responder, clock};
use tg_provenance::{Ended, Event, Reason, Session};
use tg_schemas::Error;
use tg_schemas::msg::{AgentResponse, AgentRun};

use super::agent::Agent;
use super::recorded::Recorded;
use super::titles;
use crate::engine::bounds::own_steps;
use crate::engine::chunks;
use crate::engine::decision::{Decision, Ending, Observation, Taken, Usage};
use crate::engine::toolset::ToolSet;
use crate::engine::trace::{Entries, Left, Stored};
use crate::error::{AgentError, Stop};
use crate::store::{IsOver, Ledger, Piece, PieceKind, RunEnd, RunKey, StepRow};

/// A detached run waits this long for an asker who takes nothing; then it goes on without one.
const ASKER_TIMEOUT: Duration = Duration::from_secs(3);

/// Whether the workspace of a message has ended, in the generation that it was sent in.
pub(crate) fn is_over(cx: &Cx) -> IsOver {
    let (config, key) = (cx.config().clone(), cx.workspace_key());
    IsOver::when(move || config.is_over(&key))
}

/// The day in UTC, `YYYY-MM-DD`.
pub(crate) fn today() -> String {
    clock::rfc3339().chars().take(10).collect()
}

/// What was written to the ledger is there, or its workspace is not.
fn there(kept: bool) -> Result<(), AgentError> {
    match kept {
        true => Ok(()),
        false => Err(AgentError::NoWorkspace),
    }
}

/// A step under way.
pub(super) struct StepExecution {
    pub(super) agent: Arc<Agent>,
    pub(super) cx: Cx,
    pub(super) run: AgentRun,
    pub(super) step: u32,
    pub(super) id: Session,
    pub(super) traces: TraceWriter,
    /// `None` once it was given to the next step, or if the run has gone on already.
    pub(super) out: Option<Responder<AgentResponse>>,
    /// The run goes on when nobody listens.
    pub(super) detach: bool,
    /// Detached, and nobody takes the answer.
    unheard: bool,
    /// Its record, without which nothing is kept or said.
    recorded: Recorded,
    /// Said as soon as there is one.
    unsent: Vec<AgentResponse>,
    /// What the asker heard of the model's text before another process took the step up.
    pub(super) heard: Vec<Piece>,
    /// The rows so far, for the run's end.
    pub(super) decision: Option<Decision>,
    pub(super) seen: Option<Observation>,
}

impl StepExecution {
    pub(super) fn new(
        agent: Arc<Agent>,
        cx: Cx,
        run: AgentRun,
        step: u32,
        out: Option<Responder<AgentResponse>>,
        detach: bool,
    ) -> Self {
        Self {
            id: Session::new(&run.run),
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
            heard: Vec::new(),
            decision: None,
            seen: None,
        }
    }

    /// The step was begun while its record is on its way.
    pub(super) fn begun_with(mut self, recorded: Recorded) -> Self {
        self.recorded = recorded;
        self
    }

    fn key(&self) -> RunKey {
        RunKey {
            run: self.run.run.clone(),
            is_over: is_over(&self.cx),
        }
    }

    /// Waits until the step has its record.
    async fn recorded(&mut self) -> Result<(), Stop> {
        match self.recorded.wait().await {
            true => Ok(()),
            false => Err(Stop::Error(AgentError::NotRecorded.into())),
        }
    }

    /// Takes the step. Only faults of ours are errors: every other outcome ends the run properly.
    pub(super) async fn take(mut self, row: StepRow) -> Result<(), Stop> {
        let mut result = match row.ending {
            Some(ending) => {
                self.decision = row.decision;
                self.seen = row.observation;
                Err(Stop::End(ending))
            }
            None => self.advance(row).await,
        };
        if let Err(Stop::End(ending)) = result {
            result = self.conclude(ending).await;
        }
        if let Some(out) = self.out.take()
            && !out.ended()
        {
            // Whoever takes the step up again goes on with the answer, from here.
            self.agent.leases.asked_again(&self.cx.id, out.next_seq());
            let _ = out.release();
        }
        result
    }

    async fn advance(&mut self, row: StepRow) -> Result<(), Stop> {
        metrics::counter!("tg_agent_iterations_total").increment(1);
        if self.step == 1 && self.heard.is_empty() {
            let began = self.entries().session();
            self.unsent.extend(began.iter().map(chunks::explain));
            if self.recorded.is_durable() {
                self.send_all(Vec::new()).await?;
            }
        }
        let limit = usize::try_from(self.agent.options.max_iterations).unwrap_or(usize::MAX);
        if own_steps(&self.run).len() >= limit {
            let error = AgentError::Iterations.into();
            return Err(Stop::End(Ending::new(Reason::MaxIterations, &error)));
        }
        let tools = self.agent.tools.of(&self.cx);
        let repeated = row.decision.is_some();
        // Known before anything is said: an end that is taken up again says the same of it.
        self.decision.clone_from(&row.decision);
        let decision = match row.decision {
            Some(decision) => {
                self.repeat(&decision).await?;
                decision
            }
            None => self.decide(&tools).await?,
        };
        match &decision.taken {
            Taken::Answer { text } => self.answer(&decision, text).await,
            _ => self.act(&tools, &decision, row.observation, repeated).await,
        }
    }

    /// Asks the model and commits what it chose.
    async fn decide(&mut self, tools: &ToolSet) -> Result<Decision, Stop> {
        let decision = self.think(tools).await?;
        self.recorded().await?;
        let ledger = self.ledger().await?;
        let key = self.key();
        let kept = ledger.decide(&key, self.step, &decision, clock::millis());
        there(kept.await?)?;
        self.decision = Some(decision.clone());
        if !self.run.streaming {
            self.repeat(&decision).await?;
        }
        Ok(decision)
    }

    /// Sends the thought, and the streamed part of the answer, of a committed decision.
    async fn repeat(&mut self, decision: &Decision) -> Result<(), Stop> {
        let mut said = chunks::thoughts(&self.id, self.step, decision);
        let pieces = decision.answer.iter();
        said.extend(pieces.map(|piece| chunks::answer(&self.id, piece)));
        self.send_all(said).await
    }

    /// The end with an answer. From here on nothing but a fault of ours can turn the run.
    async fn answer(&mut self, decision: &Decision, text: &str) -> Result<(), Stop> {
        let left = Left {
            decision: Some(decision),
            ..Left::default()
        };
        let shown = self.promised(&left);
        if let Some(conclusion) = shown.last() {
            self.send_if_wanted(chunks::explain(conclusion)).await;
        }
        let thought = decision.thought_text();
        let texts = [
            Text {
                id: self.id.thought(self.step),
                title: titles::thought("Final Answer"),
                text: &thought,
            },
            Text {
                id: self.id.answer_document(),
                title: titles::answer(&self.run.question),
                text,
            },
        ];
        let entries =
            |[thought, text]: [bool; 2]| self.entries().of(&left, Stored { thought, text });
        let stored = self.traces.store(texts, entries).await;
        stored.map_err(Stop::Error)?;
        self.earlier_steps().await;
        let mut total = self.used_before();
        total.add(&decision.usage);
        let rest = if decision.answer.is_empty() { text } else { "" };
        self.send_if_wanted(chunks::last(&self.id, rest, &total, decision))
            .await;
        self.over("answered", &Entries::head(&shown)).await
    }

    /// The end without an answer: a row, an entry of the trace, an error for the asker.
    async fn conclude(&mut self, mut ending: Ending) -> Result<(), Stop> {
        if ending.reason() == Reason::Cancelled && self.cx.mesh.shutdown().is_cancelled() {
            // It is this process that goes, not the asker: another one takes the step up.
            return Err(AgentError::Stopping.into());
        }
        self.recorded().await?;
        self.send_unsent().await;
        if ending.seq.is_none() {
            ending.seq = self.out.as_ref().map(Responder::next_seq);
        }
        let ledger = self.ledger().await?;
        let key = self.key();
        let kept = ledger.end(&key, self.step, &ending, clock::millis());
        there(kept.await?)?;
        let (decision, seen) = (self.decision.take(), self.seen.take());
        let left = Left {
            decision: decision.as_ref(),
            seen: seen.as_ref(),
            ending: Some(&ending),
        };
        let shown = self.promised(&left);
        if let Some(last) = shown.last() {
            self.send_if_wanted(chunks::explain(last)).await;
        }
        self.leave(&left).await?;
        self.earlier_steps().await;
        self.send_if_wanted(chunks::failure(ending.error())).await;
        let outcome = match ending.reason() {
            Reason::MaxIterations => "max-iterations",
            Reason::Cancelled => "cancelled",
            Reason::Interrupted => "interrupted",
            _ => "error",
        };
        self.over(outcome, &Entries::head(&shown)).await
    }

    /// Stores what a step left behind that did not come to its own end, and the entry of the run's end.
    async fn leave(&self, left: &Left<'_>) -> Result<(), Stop> {
        let (decision, seen) = (left.decision, left.seen);
        let thought = decision.map(Decision::thought_text).unwrap_or_default();
        let action = decision.map_or("", |decision| decision.action().0);
        let texts = [
            Text {
                id: self.id.thought(self.step),
                title: titles::thought(action),
                text: &thought,
            },
            Text {
                id: self.id.observation(self.step),
                title: titles::OBSERVATION.to_owned(),
                text: seen.map_or("", |seen| &seen.text),
            },
        ];
        let entries =
            |[thought, text]: [bool; 2]| self.entries().of(left, Stored { thought, text });
        let stored = self.traces.store(texts, entries).await;
        stored.map_err(Stop::Error)
    }

    /// The entries of this step's trace.
    pub(super) fn entries(&self) -> Entries<'_> {
        Entries {
            run: &self.run,
            step: self.step,
            library: self.traces.has_library(),
        }
    }

    /// The entries as they are shown, before it is known what the library took; the session's was shown before.
    pub(super) fn promised(&self, left: &Left<'_>) -> Vec<Event> {
        let library = self.traces.has_library();
        let stored = Stored {
            thought: library,
            text: library,
        };
        let mut entries = self.entries().of(left, stored);
        entries.retain(|entry| entry.id != self.id.iri());
        entries
    }

    /// The hash of the last entry.
    pub(super) fn head(&self, left: &Left<'_>) -> String {
        Entries::head(&self.promised(left))
    }

    /// Waits until the trace of earlier steps is stored too.
    async fn earlier_steps(&self) {
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

    async fn over(&mut self, outcome: &'static str, hash: &str) -> Result<(), Stop> {
        metrics::counter!("tg_agent_session_total", "outcome" => outcome).increment(1);
        metrics::histogram!("tg_agent_run_iterations").record(f64::from(self.step));
        let ledger = self.ledger().await?;
        let end = RunEnd {
            workspace: self.cx.workspace_key().to_string(),
            day: today(),
            ended: Ended {
                run: self.id.iri().to_owned(),
                collection: self.run.collection.clone(),
                hash: hash.to_owned(),
            },
        };
        let key = self.key();
        let finished = ledger.finish_run(&key, self.step, &end, clock::millis());
        Ok(finished.await?)
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
        }
    }

    /// Stores what a step left behind whose run has gone on without its trace.
    pub(super) async fn catch_up(self, row: &StepRow) -> Result<(), Stop> {
        let left = Left {
            decision: row.decision.as_ref(),
            seen: row.observation.as_ref(),
            ending: None,
        };
        self.leave(&left).await?;
        let ledger = self.ledger().await?;
        Ok(ledger.finish_step(&self.run.run, self.step).await?)
    }

    /// The fault as the run ends with it: whoever is gone or late is the reason, not what failed by it.
    pub(super) fn ending(&self, error: &Error) -> Stop {
        Stop::End(if self.cx.cancel.is_cancelled() {
            Ending::from_error(&AgentError::Cancelled.into())
        } else if self.cx.deadline.passed() {
            Ending::from_error(&AgentError::Timeout.into())
        } else {
            Ending::from_error(error)
        })
    }

    /// Sends chunks that are there together; the run ends if nobody wants them any more.
    pub(super) async fn send_all(&mut self, mut chunks: Vec<AgentResponse>) -> Result<(), Stop> {
        self.recorded().await?;
        if !self.unsent.is_empty() {
            let later = std::mem::replace(&mut chunks, std::mem::take(&mut self.unsent));
            chunks.extend(later);
        }
        if chunks.is_empty() {
            return Ok(());
        }
        let Some(out) = &mut self.out else {
            return Ok(());
        };
        if !self.detach {
            let sent = out.send_all(chunks).await;
            return sent.map_err(|error| self.ending(&error));
        }
        if !self.unheard {
            let sent = tokio::time::timeout(ASKER_TIMEOUT, out.send_all(chunks)).await;
            self.unheard = !matches!(sent, Ok(Ok(())));
        }
        Ok(())
    }

    /// Sends pieces of the model's text. Those of a detached run are noted before: who takes it up after this
    /// process died goes on after them.
    pub(super) async fn say(&mut self, pieces: Vec<Piece>) -> Result<(), Stop> {
        let resumed = Neighbours::of(&self.cx.mesh).resume_answers();
        // What is noted bears the number of the part that comes next.
        self.send_all(Vec::new()).await?;
        let noted = self.detach && !self.unheard && resumed;
        if let (true, Some(out)) = (noted && !pieces.is_empty(), &self.out) {
            let seq = out.next_seq();
            let ledger = self.ledger().await?;
            let (key, pieces) = (self.key(), pieces.clone());
            let kept = ledger.say(&key, self.step, seq, pieces, clock::millis());
            there(kept.await?)?;
        }
        let chunks = pieces.into_iter().map(|piece| match piece.kind {
            PieceKind::Thought => chunks::thought(&self.id, self.step, &piece.text, false),
            PieceKind::ThoughtEnd => chunks::thought(&self.id, self.step, &piece.text, true),
            PieceKind::Answer => chunks::answer(&self.id, &piece.text),
        });
        let chunks = chunks.collect();
        self.send_all(chunks).await
    }

    async fn send_unsent(&mut self) {
        for chunk in std::mem::take(&mut self.unsent) {
            self.send_if_wanted(chunk).await;
        }
    }

    /// Sends a chunk of a run whose end is settled.
    async fn send_if_wanted(&mut self, chunk: AgentResponse) {
        if let Some(out) = &mut self.out {
            // Nobody listening changes nothing.
            let _ = out.send(chunk).await;
        }
    }
}
