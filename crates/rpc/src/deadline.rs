//! One absolute deadline per question, carried over every hop.

use std::time::Duration;

use crate::clock;

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
        Self(clock::header_millis().saturating_add(span.as_millis() as u64))
    }

    /// For a header.
    pub fn millis(self) -> u64 {
        self.0
    }

    /// What is left; zero when passed.
    pub fn left(self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(clock::header_millis()))
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
