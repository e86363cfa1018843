//! A log line that strangers can cause is written seldom, with the count of those that were left out.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Pause between two such lines.
const PAUSE: Duration = Duration::from_secs(10);

/// Lets one line in ten seconds pass.
#[derive(Debug, Default)]
pub(crate) struct Seldom(Mutex<(Option<Instant>, u64)>);

impl Seldom {
    /// Whether a line may be written now; then how many were left out since the last.
    pub(crate) fn pass(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock();
        if state.0.is_some_and(|last| now < last + PAUSE) {
            state.1 += 1;
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
    fn a_flood_is_one_line_and_a_count() {
        let (seldom, start) = (Seldom::default(), Instant::now());
        assert_eq!(seldom.pass(start), Some(0));
        for _ in 0..1000 {
            assert_eq!(seldom.pass(start + Duration::from_secs(1)), None);
        }
        assert_eq!(seldom.pass(start + PAUSE), Some(1000));
        assert_eq!(seldom.pass(start + PAUSE), None);
    }
}
