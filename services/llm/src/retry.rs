//! When to try a provider again, and how long to pause. Pure: time and chance come in as values.

use std::time::Duration;

use crate::error::LlmError;

/// Bounds of retrying one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Most calls to the provider for one request.
    pub attempts: u32,
    /// Pause before the second attempt; doubles from there.
    pub base: Duration,
    /// Longest pause, also when the provider asks for more.
    pub cap: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 5,
            base: Duration::from_millis(250),
            cap: Duration::from_secs(60),
        }
    }
}

impl RetryPolicy {
    /// The pause before the next attempt, or `None` when the failure is final. `failed` attempts were
    /// made so far, `left` is the time until the deadline, `chance` lies in 0..1.
    pub fn pause(
        &self,
        error: &LlmError,
        failed: u32,
        left: Duration,
        chance: f64,
    ) -> Option<Duration> {
        if !error.is_transient() || failed >= self.attempts {
            return None;
        }
        let doubled = self
            .base
            .saturating_mul(1 << failed.saturating_sub(1).min(16));
        let backoff = doubled
            .min(self.cap)
            .mul_f64(0.5 + chance.clamp(0.0, 1.0) / 2.0);
        let pause = match error {
            LlmError::RateLimited {
                retry_after: Some(asked),
            } => {
                if *asked > self.cap {
                    return None;
                }
                // Spread those who were told the same moment.
                (*asked).max(backoff) + self.base.mul_f64(chance.clamp(0.0, 1.0))
            }
            _ => backoff,
        };
        (pause < left).then_some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEFT: Duration = Duration::from_secs(600);

    #[test]
    fn pauses_grow_and_stay_bounded() {
        let policy = RetryPolicy::default();
        let pauses: Vec<_> = (1..10)
            .map(|failed| policy.pause(&LlmError::Unavailable, failed, LEFT, 1.0))
            .collect();
        assert_eq!(pauses[0], Some(Duration::from_millis(250)));
        assert_eq!(pauses[1], Some(Duration::from_millis(500)));
        assert_eq!(pauses[3], Some(Duration::from_secs(2)));
        assert_eq!(pauses[4], None, "five attempts");
    }

    #[test]
    fn the_providers_wish_counts_unless_it_passes_the_deadline() {
        let policy = RetryPolicy::default();
        let limited = |seconds| LlmError::RateLimited {
            retry_after: Some(Duration::from_secs(seconds)),
        };
        let pause = policy.pause(&limited(7), 1, LEFT, 0.0);
        assert_eq!(pause, Some(Duration::from_secs(7)));
        let short = Duration::from_secs(5);
        assert_eq!(policy.pause(&limited(7), 1, short, 0.0), None);
        assert_eq!(policy.pause(&limited(3600), 1, LEFT, 0.0), None);
    }

    #[test]
    fn final_failures_are_not_tried_again() {
        let policy = RetryPolicy::default();
        for error in [
            LlmError::Auth,
            LlmError::BadRequest,
            LlmError::Quota,
            LlmError::Timeout,
        ] {
            assert_eq!(policy.pause(&error, 1, LEFT, 0.5), None, "{error}");
        }
    }
}
