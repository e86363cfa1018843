//! What the queries of policies may take, and whether one of them took more.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::time::Instant;

use super::sparql::guard::{too_long, unwind};
use crate::engine::steps::Steps;
use crate::error::GraphError;

/// Says that nobody waits any more.
pub(super) type Over = Box<dyn Fn() -> bool + Send + Sync>;

/// What policies may take while a piece of an answer is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Of all of them together.
    pub(crate) time: Duration,
    /// Of one query, in bytes.
    pub(crate) memory: usize,
}

/// What one query of a policy may still take: asked at each step that it takes and each quad that it reads.
pub(super) struct Bound {
    pub(super) end: Instant,
    pub(super) time: Duration,
    /// What the thread held before.
    pub(super) held: i64,
    pub(super) memory: usize,
    pub(super) over: Arc<OnceLock<Over>>,
    /// What it took too much of. It stays so: the evaluator takes an error for a value here and there.
    pub(super) fault: OnceLock<GraphError>,
}

impl Bound {
    /// Whether it may go on.
    pub(super) fn check(&self) -> Result<(), GraphError> {
        if let Some(fault) = self.fault.get() {
            return Err(fault.clone());
        }
        let used = tg_counted_alloc::held() - self.held;
        let fault = if self.over.get().is_some_and(|over| over()) {
            GraphError::Cancelled
        } else if Instant::now() > self.end {
            GraphError::TimeLimit(self.time.as_secs().max(1))
        } else if usize::try_from(used).is_ok_and(|used| used > self.memory) {
            GraphError::QueryMemory(self.memory >> 20)
        } else {
            return Ok(());
        };
        let _ = self.fault.set(fault.clone());
        Err(fault)
    }
}

impl Steps for Bound {
    fn step(&self) {
        if self.check().is_err() {
            unwind();
        }
    }

    fn too_long(&self) -> ! {
        let _ = self.fault.set(too_long());
        unwind()
    }
}
