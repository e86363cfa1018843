//! Spans that wait to be exported: as many as two bounds allow, in memory. Whoever ends a span never waits; what finds no
//! room is dropped and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::finished::Finished;

/// Most spans that wait.
pub const SPANS: usize = 8192;
/// Most memory of those, in bytes, of all workspaces together: what is lost is sight, never an answer.
pub const BYTES: usize = 8 << 20;

/// Counts spans that nobody will see, and why.
pub fn lost(spans: usize, why: &'static str) {
    if spans > 0 {
        metrics::counter!("tg_spans_dropped_total", "why" => why).increment(spans as u64);
    }
}

/// The end that spans go into.
#[derive(Debug)]
pub(crate) struct Queue {
    to: mpsc::Sender<Finished>,
    bytes: Arc<AtomicUsize>,
}

impl Queue {
    pub(crate) fn new() -> (Self, Spans) {
        let (to, from) = mpsc::channel(SPANS);
        let bytes: Arc<AtomicUsize> = Arc::default();
        let queue = Self {
            to,
            bytes: bytes.clone(),
        };
        (queue, Spans { from, bytes })
    }

    pub(crate) fn put(&self, span: Finished) {
        let size = span.bytes();
        let before = self.bytes.fetch_add(size, Ordering::AcqRel);
        if before + size > BYTES || self.to.try_send(span).is_err() {
            self.bytes.fetch_sub(size, Ordering::AcqRel);
            lost(1, "full");
        }
    }
}

/// The end that they come out of.
#[derive(Debug)]
pub struct Spans {
    from: mpsc::Receiver<Finished>,
    bytes: Arc<AtomicUsize>,
}

impl Spans {
    /// Waits for a span, then a moment for those that follow: at most so many. The batch stays empty when none will come any
    /// more. Whoever stops waiting has what was there so far.
    pub async fn fill(&mut self, batch: &mut Vec<Finished>, most: usize, moment: Duration) {
        if self.take(batch, most).await == 0 {
            return;
        }
        let more = async {
            while batch.len() < most {
                let left = most - batch.len();
                if self.take(batch, left).await == 0 {
                    return;
                }
            }
        };
        // What came in time is in the batch.
        let _ = timeout(moment, more).await;
    }

    /// At least one, or none when no more will come.
    async fn take(&mut self, batch: &mut Vec<Finished>, most: usize) -> usize {
        let came = self.from.recv_many(batch, most).await;
        self.taken(&batch[batch.len() - came..]);
        came
    }

    /// What is here already: at most so many.
    pub fn here(&mut self, most: usize) -> Vec<Finished> {
        let mut batch = Vec::new();
        while batch.len() < most
            && let Ok(span) = self.from.try_recv()
        {
            batch.push(span);
        }
        self.taken(&batch);
        batch
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.from.len()
    }

    fn taken(&self, batch: &[Finished]) {
        let size = batch.iter().map(Finished::bytes).sum();
        self.bytes.fetch_sub(size, Ordering::AcqRel);
    }
}
