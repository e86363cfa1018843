//! Tells the asker what happens, and sees to it that the trace is stored: entries before the frame from
//! which clients go and fetch them, everything before the last frame.

use std::time::Duration;

use tg_clients::traces::TraceWriter;
use tg_mesh::{Cx, Responder};
use tg_provenance::{Chain, Event};
use tg_schemas::Error;
use tokio::time::Instant;

use super::frames::{End, Frames};
use crate::ask::Spent;

/// See the module.
pub struct AnswerStream<R> {
    out: Responder<R>,
    streaming: bool,
    /// Where things are kept.
    pub traces: TraceWriter,
    trace: Vec<Event>,
    chain: Chain,
    stored: usize,
    began: Instant,
    retrieved: Option<Duration>,
    warnings: Vec<String>,
    /// What models took so far.
    pub spent: Spent,
}

impl<R: Frames> AnswerStream<R> {
    /// Tells the asker of `out`.
    pub fn new(cx: &Cx, out: Responder<R>, streaming: bool, collection: &str) -> Self {
        Self {
            out,
            streaming,
            traces: TraceWriter::new(cx, collection),
            trace: Vec::with_capacity(5),
            chain: Chain::default(),
            stored: 0,
            began: Instant::now(),
            retrieved: None,
            warnings: Vec::new(),
            spent: Spent::default(),
        }
    }

    /// Whether the asker gets the answer in pieces.
    pub fn streams(&self) -> bool {
        self.streaming
    }

    /// An entry of the trace is known.
    pub async fn tell(&mut self, event: Event) -> Result<(), Error> {
        self.tell_with(event, None).await
    }

    /// The answer's entry is known, and its text where the library takes it.
    pub async fn tell_with(&mut self, event: Event, text: Option<&str>) -> Result<(), Error> {
        let event = self.chain.link_text(event, text);
        let frame = self.streaming.then(|| R::explain(&event));
        self.trace.push(event);
        match frame {
            Some(frame) => self.out.send(frame).await,
            None => Ok(()),
        }
    }

    /// An entry of the trace is known, and its parts may be fetched: everything so far is stored first.
    pub async fn store_and_tell(&mut self, event: Event) -> Result<(), Error> {
        let event = self.chain.link(event);
        let frame = self.streaming.then(|| R::explain(&event));
        self.trace.push(event);
        self.store().await?;
        match frame {
            Some(frame) => self.out.send(frame).await,
            None => Ok(()),
        }
    }

    /// A piece of the answer.
    pub async fn piece(&mut self, text: String, last: bool) -> Result<(), Error> {
        if !self.streaming || (text.is_empty() && !last) {
            return Ok(());
        }
        self.out.send(R::piece(text, last)).await
    }

    /// The answer goes on without something: its end says so, once.
    pub fn warn(&mut self, without: &str) {
        if !self.warnings.iter().any(|told| told == without) {
            self.warnings.push(without.to_owned());
        }
    }

    /// The end, after everything is stored.
    pub async fn end(&mut self, text: String, end: End) -> Result<(), Error> {
        self.store().await?;
        let end = End {
            warnings: std::mem::take(&mut self.warnings),
            ..end
        };
        let frame = if self.streaming {
            R::closing(end)
        } else {
            R::whole(text, &self.trace, end)
        };
        self.out.send(frame).await
    }

    /// Everything to answer from is there.
    pub fn retrieved(&mut self) {
        self.retrieved = Some(self.began.elapsed());
    }

    /// Counts the answer, and how long it took.
    pub fn count(&self, from: &'static str, answered: bool) {
        let outcome = if answered { "answered" } else { "failed" };
        metrics::counter!("tg_rag_answers_total", "from" => from, "outcome" => outcome)
            .increment(1);
        metrics::histogram!("tg_rag_answer_seconds", "from" => from)
            .record(self.began.elapsed().as_secs_f64());
        if let Some(retrieved) = self.retrieved {
            // With the model's work on concepts, without its work on the answer.
            metrics::histogram!("tg_rag_retrieval_seconds", "from" => from)
                .record(retrieved.as_secs_f64());
        }
    }

    /// The answer failed: what is known of it is stored all the same. Where models were asked before, the end says what they took.
    pub async fn give_up(&mut self, cx: &Cx, error: &Error) {
        if let Err(error) = self.store().await {
            tracing::debug!(%error, "the trace of a failed answer was not stored");
        }
        let took = self.spent.in_token.or(self.spent.out_token);
        if took.is_none() || cx.cancel.is_cancelled() {
            return;
        }
        let frame = R::failed(error.clone(), self.spent.clone());
        if let Err(error) = self.out.send(frame).await {
            tracing::debug!(%error, "the end of a failed answer was not sent");
        }
    }

    async fn store(&mut self) -> Result<(), Error> {
        self.traces.publish(&self.trace[self.stored..]).await?;
        self.stored = self.trace.len();
        Ok(())
    }
}
