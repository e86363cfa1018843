//! One absolute deadline per question, carried over every hop.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Longest life of a question that is not streamed.
pub const QUESTION: Duration = Duration::from_secs(600);
/// Longest life of a streamed answer.
pub const STREAM: Duration = Duration::from_secs(3600);
/// Longest silence between two parts of a streamed answer.
pub const GAP: Duration = Duration::from_secs(600);

/// An absolute point in time, milliseconds since the Unix epoch, as headers carry it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(u64);

impl Deadline {
    /// From a header.
    pub fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// From now.
    pub fn after(span: Duration) -> Self {
        Self(now_millis().saturating_add(span.as_millis() as u64))
    }

    /// For a header.
    pub fn millis(self) -> u64 {
        self.0
    }

    /// What is left; zero when passed.
    pub fn left(self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(now_millis()))
    }

    /// Whether it has passed.
    pub fn passed(self) -> bool {
        self.left().is_zero()
    }

    /// Waits for it.
    pub async fn reached(self) {
        tokio::time::sleep(self.left()).await;
    }
}

/// Milliseconds since the Unix epoch.
pub fn now_millis() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |span| span.as_millis() as u64)
}
