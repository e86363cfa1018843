//! Bounds of the flow service.

use std::time::Duration;

/// How long things may take and how much is kept.
#[derive(Debug, Clone, Copy)]
pub struct FlowSettings {
    /// start-flow returns when the processors are attached, or after this.
    pub attach: Duration,
    /// stop-flow with `wait` lets processors finish at most this long.
    pub drain: Duration,
    /// stop-flow waits this long for processors to leave. Longer than they wait for their handlers.
    pub detach: Duration,
    /// A bus that is away is waited for this long.
    pub patience: Duration,
    /// Put-aside records kept at most; more wait on the bus.
    pub put_aside_rows: u64,
    /// Bytes of put-aside records kept at most.
    pub put_aside_bytes: u64,
}

impl Default for FlowSettings {
    fn default() -> Self {
        Self {
            attach: Duration::from_secs(5),
            drain: Duration::from_secs(30),
            detach: Duration::from_secs(15),
            patience: Duration::from_secs(30),
            put_aside_rows: 1_000_000,
            put_aside_bytes: 4 << 30,
        }
    }
}
