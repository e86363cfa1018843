//! When to call again, and how long to pause before. [`Backoff::pause`] is pure: time and chance come in as
//! values; [`Backoff::run`] is the loop around it.

use std::fmt::Display;
use std::time::Duration;

use tokio::time::Instant;

/// Whether a call that failed may succeed when it is made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// It will fail again.
    Never,
    /// After a pause.
    Soon,
    /// After the pause that the other side asked for.
    After(Duration),
}

/// Bounds of trying one call again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// Most calls, the first included.
    pub attempts: u32,
    /// Pause before the second call; doubles from there. Chance shortens it by up to a half.
    pub base: Duration,
    /// Longest pause. When the other side asks for a longer one, the failure is final.
    pub cap: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            attempts: 5,
            base: Duration::from_millis(250),
            cap: Duration::from_secs(60),
        }
    }
}

impl Backoff {
    /// The pause before the next call after `failed` ones, or `None` when the failure is final or the pause
    /// would not end within the time that is `left`. `chance` lies in 0..1.
    pub fn pause(
        &self,
        again: Again,
        failed: u32,
        left: Duration,
        chance: f64,
    ) -> Option<Duration> {
        if failed >= self.attempts {
            return None;
        }
        let chance = chance.clamp(0.0, 1.0);
        let doubled = self
            .base
            .saturating_mul(1 << failed.saturating_sub(1).min(16));
        let usual = doubled.min(self.cap).mul_f64(0.5 + chance / 2.0);
        let pause = match again {
            Again::Never => return None,
            Again::Soon => usual,
            Again::After(asked) if asked > self.cap => return None,
            // Spread those who were told the same moment.
            Again::After(asked) => asked.max(usual) + self.base.mul_f64(chance),
        };
        (pause < left).then_some(pause)
    }

    /// Calls until it works, the failure is final, or the next pause would not end before `until`; then the
    /// last failure is returned. `chance` is drawn once a pause.
    ///
    /// # Errors
    /// The failure after which nothing was tried any more.
    pub async fn run<T, E: Display, F: Future<Output = Result<T, E>>>(
        &self,
        until: Instant,
        chance: fn() -> f64,
        again: impl Fn(&E) -> Again,
        mut call: impl FnMut() -> F,
    ) -> Result<T, E> {
        let mut failed = 0;
        loop {
            let error = match call().await {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            failed += 1;
            let left = until.saturating_duration_since(Instant::now());
            let Some(pause) = self.pause(again(&error), failed, left, chance()) else {
                return Err(error);
            };
            let pause_ms = pause.as_millis() as u64;
            tracing::debug!(%error, failed, pause_ms, "a provider failed, trying again");
            tokio::time::sleep(pause).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEFT: Duration = Duration::from_secs(600);

    #[test]
    fn pauses_grow_and_stay_bounded() {
        let backoff = Backoff::default();
        let pauses: Vec<_> = (1..10)
            .map(|failed| backoff.pause(Again::Soon, failed, LEFT, 1.0))
            .collect();
        assert_eq!(pauses[0], Some(Duration::from_millis(250)));
        assert_eq!(pauses[1], Some(Duration::from_millis(500)));
        assert_eq!(pauses[3], Some(Duration::from_secs(2)));
        assert_eq!(pauses[4], None, "five attempts");
        let spread = backoff.pause(Again::Soon, 1, LEFT, 0.0);
        assert_eq!(spread, Some(Duration::from_millis(125)));
        let long = Backoff {
            attempts: 100,
            ..backoff
        };
        assert_eq!(long.pause(Again::Soon, 99, LEFT, 1.0), Some(long.cap));
        assert_eq!(backoff.pause(Again::Never, 1, LEFT, 0.5), None);
    }

    #[test]
    fn the_wish_of_the_other_side_counts_unless_it_passes_the_deadline() {
        let backoff = Backoff::default();
        let after = |seconds| Again::After(Duration::from_secs(seconds));
        let pause = |seconds, left, chance| backoff.pause(after(seconds), 1, left, chance);
        assert_eq!(pause(7, LEFT, 0.0), Some(Duration::from_secs(7)));
        assert_eq!(pause(7, LEFT, 1.0), Some(Duration::from_millis(7_250)));
        assert_eq!(pause(0, LEFT, 0.0), Some(Duration::from_millis(125)));
        assert_eq!(pause(7, Duration::from_secs(5), 0.0), None);
        assert_eq!(pause(61, LEFT, 0.0), None, "longer than the cap");
    }

    #[tokio::test(start_paused = true)]
    async fn calls_are_made_again_until_one_works_or_the_time_is_over() {
        let begun = Instant::now();
        let until = begun + Duration::from_secs(10);
        let backoff = Backoff {
            attempts: 9,
            base: Duration::from_secs(1),
            ..Backoff::default()
        };
        let works_at = async |works: u32| {
            let mut calls = 0;
            let call = || {
                calls += 1;
                std::future::ready(if calls < works { Err(calls) } else { Ok(calls) })
            };
            backoff.run(until, || 1.0, |_| Again::Soon, call).await
        };
        assert_eq!(works_at(3).await, Ok(3));
        assert_eq!(begun.elapsed(), Duration::from_secs(3));
        // 1 + 2 seconds fit into the seven that are left, 4 more do not.
        assert_eq!(works_at(9).await, Err(3));
        assert_eq!(begun.elapsed(), Duration::from_secs(6));
    }
}
