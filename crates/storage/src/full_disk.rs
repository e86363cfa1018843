//! The log line of a write that found no room: at most one a minute for the whole process. A full disk fails every write of
//! every store and of the bus, and thousands of equal lines hide everything else.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Pause between two lines.
const PAUSE: Duration = Duration::from_secs(60);

static LINES: Lines = Lines::new();

/// Logs that a write failed because the disk is full, unless another write logged that less than a minute ago.
pub fn log_full_disk(what: &str) {
    if let Some(left_out) = LINES.next(Instant::now()) {
        tracing::error!(left_out, "{what}: the disk is full");
    }
}

/// When a line was written last, and how many were left out since.
#[derive(Debug)]
struct Lines(Mutex<(Option<Instant>, u64)>);

impl Lines {
    const fn new() -> Self {
        Self(Mutex::new((None, 0)))
    }

    /// Whether a line may be written now; then how many were left out before it.
    fn next(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock();
        if state.0.is_some_and(|last| now < last + PAUSE) {
            state.1 = state.1.saturating_add(1);
            return None;
        }
        state.0 = Some(now);
        Some(std::mem::take(&mut state.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_one_line_a_minute_with_the_count_of_the_others() {
        let (lines, start) = (Lines::new(), Instant::now());
        assert_eq!(lines.next(start), Some(0));
        let soon = (0..2_000).map(|_| lines.next(start + PAUSE - Duration::from_millis(1)));
        assert!(soon.into_iter().all(|line| line.is_none()));
        assert_eq!(lines.next(start + PAUSE), Some(2_000));
        assert_eq!(lines.next(start + PAUSE), None);
    }
}
