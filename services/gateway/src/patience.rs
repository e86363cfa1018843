//! Time for a peer that owes bytes. Waiting uses it up, and what comes restores it at the least rate that the options allow;
//! there is never more of it than for one long pause. Only the time counts in which somebody waits for the bytes: what
//! the gateway itself holds back is nobody's fault.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// Longest pause between two pieces.
pub(crate) const PAUSE: Duration = Duration::from_secs(30);

/// What is left of it.
pub(crate) struct Patience {
    /// Bytes a second.
    rate: usize,
    /// The same where nothing large is owed.
    least: usize,
    /// Time that may still be waited.
    left: Duration,
    /// Runs while somebody waits, until nothing is left.
    waits: Option<Pin<Box<Sleep>>>,
}

impl Patience {
    /// With a peer that must go on at this rate in bytes a second.
    pub(crate) fn new(rate: usize) -> Self {
        Self {
            rate,
            least: rate,
            left: PAUSE,
            waits: None,
        }
    }

    /// The peer owes so much that it must go on at this rate at least, in bytes a second.
    pub(crate) fn at_least(&mut self, rate: usize) {
        self.rate = self.rate.max(rate);
    }

    /// Something came: what was waited is gone, and its bytes give time back.
    pub(crate) fn came(&mut self, bytes: usize) {
        if let Some(waited) = self.waits.take() {
            let now = Instant::now();
            self.left = waited.deadline().saturating_duration_since(now);
        }
        let millis = bytes.saturating_mul(1_000) / self.rate.max(1);
        let back = Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX));
        self.left = self.left.saturating_add(back).min(PAUSE);
    }

    /// Nothing came; ready when there is no patience left.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let left = self.left;
        let waits = self
            .waits
            .get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + left)));
        waits.as_mut().poll(cx)
    }

    /// Nothing is owed any more.
    pub(crate) fn rest(&mut self) {
        self.waits = None;
        self.left = PAUSE;
        self.rate = self.least;
    }
}
