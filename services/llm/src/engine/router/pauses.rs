//! How long is waited between two attempts.

use std::time::Duration;

use tg_mesh::tg_bus::pause;

/// By how much chance shortens or lengthens a pause.
const SPREAD: f64 = 0.25;

/// Bounds of trying again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Policy {
    /// Attempts after the first.
    pub retries: u32,
    /// Pause after the first attempt; doubles from there.
    pub base: Duration,
    /// Longest pause.
    pub most: Duration,
    /// Longest pause that a provider may ask for; `None`: any.
    pub asked: Option<Duration>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            retries: 3,
            base: Duration::from_secs(1),
            most: Duration::from_secs(60),
            asked: None,
        }
    }
}

impl Policy {
    /// While another model is left to be asked instead.
    pub fn hurried(self) -> Self {
        let most = Duration::from_secs(10);
        Self {
            retries: self.retries.min(2),
            base: self.base.min(Duration::from_millis(500)),
            most: self.most.min(most),
            asked: Some(most),
        }
    }

    /// The pause after so many attempts: what the provider asked for, else a doubling one. `chance` lies in 0..1.
    pub fn pause(&self, attempts: u32, asked: Option<Duration>, chance: f64) -> Duration {
        if let Some(asked) = asked {
            return self.asked.map_or(asked, |most| asked.min(most));
        }
        let doubled = pause::after(self.base, attempts.saturating_sub(1), self.most);
        let spread = 1.0 + SPREAD * (2.0 * chance.clamp(0.0, 1.0) - 1.0);
        doubled.min(self.most).mul_f64(spread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 152
    #[test]
    fn a_wish_counts_else_1_2_4_seconds_give_or_take_a_quarter() {
        let policy = Policy::default();
        let asked = Some(Duration::from_secs(7));
        for chance in [0.0, 1.0] {
            assert_eq!(policy.pause(1, asked, chance), Duration::from_secs(7));
        }
        for (attempts, seconds) in [(1, 1.0), (2, 2.0), (3, 4.0), (9, 60.0)] {
            let pause = |chance| policy.pause(attempts, None, chance).as_secs_f64();
            assert!((pause(0.0) - 0.75 * seconds).abs() < 1e-9);
            assert!((pause(0.5) - seconds).abs() < 1e-9);
            assert!((pause(1.0) - 1.25 * seconds).abs() < 1e-9);
        }
        let hurried = policy.hurried();
        let long = Some(Duration::from_secs(70));
        assert_eq!(hurried.pause(1, long, 0.5), Duration::from_secs(10));
        assert_eq!(hurried.pause(1, None, 0.5), Duration::from_millis(500));
    }
}
