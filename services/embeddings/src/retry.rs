//! When to ask a provider again, and how long to pause. Pure.

use std::time::Duration;

use crate::error::EmbedError;

/// Most calls for one batch of texts.
const ATTEMPTS: u32 = 4;
/// Pause before the second call; doubles from there.
const BASE: Duration = Duration::from_millis(250);
/// Longest pause a provider may ask for.
const CAP: Duration = Duration::from_secs(30);

/// The pause before the next call after `failed` ones; `None` when the failure is final or the pause would
/// not leave time until the deadline.
pub fn pause(error: &EmbedError, failed: u32, left: Duration) -> Option<Duration> {
    if !error.is_transient() || failed >= ATTEMPTS {
        return None;
    }
    let doubled = BASE.saturating_mul(1 << failed.saturating_sub(1).min(8));
    let pause = match error {
        EmbedError::RateLimited {
            retry_after: Some(asked),
        } => doubled.max(*asked),
        _ => doubled,
    };
    (pause <= CAP && pause < left).then_some(pause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_follow_the_provider_and_end() {
        let left = Duration::from_secs(60);
        let limited = |seconds| EmbedError::RateLimited {
            retry_after: Some(Duration::from_secs(seconds)),
        };
        let millis =
            |error: &EmbedError, failed| pause(error, failed, left).map(|pause| pause.as_millis());
        assert_eq!(millis(&EmbedError::Unavailable, 1), Some(250));
        assert_eq!(millis(&EmbedError::Unavailable, 3), Some(1_000));
        assert_eq!(millis(&EmbedError::Unavailable, 4), None);
        assert_eq!(millis(&limited(7), 1), Some(7_000));
        assert_eq!(millis(&limited(31), 1), None);
        assert_eq!(millis(&EmbedError::Auth, 1), None);
        assert_eq!(pause(&limited(7), 1, Duration::from_secs(5)), None);
    }
}
