//! What keeps a query within its time and memory. The query's thread is counted by the allocator and asks at every
//! step whether it may go on; if not, its stack is unwound at that step, so that nothing is collected after it.
//!
//! Steps are put into the query by [`super::rewrite`]. What takes no step for long (the walk along a property path)
//! hears the evaluator's own cancellation instead, a little later.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use oxigraph::sparql::CancellationToken as Stop;
use tg_counted_alloc::Meter;
use tokio::time::Instant;

use super::memory::Share;
use super::turns::Turn;
use crate::engine::steps::Steps;
use crate::error::GraphError;
use crate::options::Limits;

/// Longest text that a query builds, in bytes: no message holds a longer one.
pub(crate) const LONGEST: usize = tg_schemas::limits::PART;
/// Memory is drawn from the share in pieces of this size.
const PIECE: i64 = 1 << 20;
/// Used beyond the limit before the evaluator is cancelled the other way.
const LATE: i64 = 64 << 20;
/// Microseconds after which an evaluation hands its turn over, if others wait.
const SLICE: u64 = 10_000;
/// Steps between two looks at the clock.
const STEPS: u32 = 64;

/// Why a query was ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Why {
    Cancelled = 1,
    Time,
    Memory,
    AllMemory,
    LongText,
    Stalled,
}

impl Why {
    const ALL: [Self; 6] = [
        Self::Cancelled,
        Self::Time,
        Self::Memory,
        Self::AllMemory,
        Self::LongText,
        Self::Stalled,
    ];
}

/// What the stack of an ended query is unwound with.
struct Ended;

/// Whether a thread was unwound by [`Steps::step`], not by a fault.
pub(crate) fn is_ended(payload: &(dyn std::any::Any + Send)) -> bool {
    payload.is::<Ended>()
}

/// Unwinds the stack of a query that was ended.
pub(crate) fn unwind() -> ! {
    resume_unwind(Box::new(Ended))
}

/// A text would be longer than [`LONGEST`].
pub(crate) fn too_long() -> GraphError {
    GraphError::LongText(LONGEST >> 20)
}

/// Shared by a query's thread, its steps, its allocations and its reader.
pub(super) struct Guard {
    why: AtomicU8,
    /// The evaluator's own way to be told.
    stop: Stop,
    steps: AtomicU32,
    began: Instant,
    /// Microseconds since `began` at which the evaluation went on last.
    resumed: AtomicU64,
    /// Microseconds of evaluation before that.
    spent: AtomicU64,
    time: Duration,
    limits: Limits,
    share: Share,
    turn: Turn,
    drawn: AtomicI64,
    warned: AtomicBool,
}

impl Guard {
    /// A guard of one evaluation, which may take so long.
    pub(super) fn new(time: Duration, limits: &Limits, share: Share, turn: Turn) -> Arc<Self> {
        Arc::new(Self {
            why: AtomicU8::new(0),
            stop: Stop::new(),
            steps: AtomicU32::new(0),
            began: Instant::now(),
            resumed: AtomicU64::new(0),
            spent: AtomicU64::new(0),
            time,
            limits: limits.clone(),
            share,
            turn,
            drawn: AtomicI64::new(0),
            warned: AtomicBool::new(false),
        })
    }

    /// The evaluator's token.
    pub(super) fn token(&self) -> Stop {
        self.stop.clone()
    }

    /// Ends the query at its next step. The first reason counts.
    pub(super) fn end(&self, why: Why) {
        let _ = self
            .why
            .compare_exchange(0, why as u8, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Ends the query, also where it takes no steps, and where it waits for its turn.
    pub(super) fn end_everywhere(&self, why: Why) {
        self.end(why);
        self.stop.cancel();
        self.turn.end();
    }

    /// Why the query was ended, if it was.
    pub(super) fn why(&self) -> Option<Why> {
        let why = self.why.load(Ordering::Relaxed);
        Why::ALL.into_iter().find(|one| *one as u8 == why)
    }

    /// The reason as an error.
    pub(super) fn fault(&self) -> Option<GraphError> {
        let mib = |bytes: usize| bytes >> 20;
        Some(match self.why()? {
            Why::Cancelled => GraphError::Cancelled,
            Why::Time => GraphError::TimeLimit(self.time.as_secs().max(1)),
            Why::Memory => GraphError::QueryMemory(mib(self.limits.query_memory)),
            Why::AllMemory => GraphError::QueriesMemory(mib(self.limits.queries_memory)),
            Why::LongText => too_long(),
            Why::Stalled => GraphError::Stalled(self.limits.stalled.as_secs()),
        })
    }

    /// How long it has been evaluated.
    fn evaluated(&self) -> Duration {
        let spent = self.spent.load(Ordering::Relaxed);
        let resumed = self.resumed.load(Ordering::Relaxed);
        Duration::from_micros(spent + self.micros().saturating_sub(resumed))
    }

    /// Since it began.
    fn micros(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// The evaluation waits from here on, and has no turn.
    pub(super) fn pause(&self) {
        let evaluated = u64::try_from(self.evaluated().as_micros()).unwrap_or(u64::MAX);
        self.spent.store(evaluated, Ordering::Relaxed);
        // Until it goes on, nothing is added.
        self.resumed.store(u64::MAX, Ordering::Relaxed);
        self.turn.give_up();
    }

    /// The evaluation goes on when it has its turn, or was ended.
    pub(super) fn resume(&self) {
        self.turn.take();
        self.resumed.store(self.micros(), Ordering::Relaxed);
    }

    /// Lets others be evaluated once this one was for a while, and waits where it has lost its turn.
    fn hand_over(&self) {
        let resumed = self.resumed.load(Ordering::Relaxed);
        if self.micros().saturating_sub(resumed) >= SLICE && self.turn.must_wait() {
            self.pause();
            self.resume();
        }
    }
}

impl Steps for Guard {
    fn step(&self) {
        if self.why.load(Ordering::Relaxed) != 0 {
            unwind();
        }
        let steps = self.steps.fetch_add(1, Ordering::Relaxed);
        if !steps.is_multiple_of(STEPS) && !self.turn.may_be_lost() {
            return;
        }
        if self.evaluated() > self.time {
            self.end(Why::Time);
            unwind();
        }
        self.hand_over();
    }

    fn too_long(&self) -> ! {
        self.end(Why::LongText);
        unwind()
    }
}

impl Meter for Guard {
    fn passed(&self, bytes: i64) -> i64 {
        if self.warned.swap(self.why().is_some(), Ordering::Relaxed) {
            // It was told and did not step since.
            self.stop.cancel();
            return i64::MAX;
        }
        let wanted = (bytes / PIECE + 1) * PIECE;
        let more = wanted - self.drawn.load(Ordering::Relaxed);
        let limit = i64::try_from(self.limits.query_memory).unwrap_or(i64::MAX);
        if wanted > limit {
            self.end(Why::Memory);
        } else if !self.share.draw(more) {
            self.end(Why::AllMemory);
        } else {
            self.drawn.fetch_add(more, Ordering::Relaxed);
            return wanted;
        }
        self.warned.store(true, Ordering::Relaxed);
        bytes + LATE
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.share.give_back(self.drawn.load(Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::Memory;
    use super::super::turns::Turns;
    use super::*;

    #[test]
    fn a_query_that_was_ended_waits_for_no_turn_and_takes_none() {
        let (turns, memory) = (Arc::new(Turns::new(1)), Memory::new(1 << 20));
        let limits = Limits::default();
        let [first, second] = ["a", "b"].map(|workspace| {
            let (share, turn) = (memory.share(workspace), turns.query(workspace));
            Guard::new(Duration::from_secs(60), &limits, share, turn)
        });
        first.resume();
        second.end_everywhere(Why::Cancelled);
        second.resume();
        assert!(!first.turn.must_wait(), "it has its turn, and none waits");
        assert!(second.turn.must_wait(), "it has none");
    }
}
