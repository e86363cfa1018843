//! Tokens that a backend is sent a minute.

use std::time::Duration;

use tokio::time::Instant;

use crate::engine::tokens::estimated;

const MINUTE: f64 = 60.0;
/// Least that a call is taken for.
const LEAST: u64 = 100;

/// Tokens that a call takes before it is made: an estimate, and never less than a short call takes.
pub fn reserved(characters: usize) -> u64 {
    let estimated = u64::try_from(estimated(characters)).unwrap_or(0);
    estimated.max(LEAST)
}

/// Full at first; fills up within a minute.
#[derive(Debug)]
pub struct Bucket {
    capacity: f64,
    level: f64,
    at: Instant,
}

impl Bucket {
    /// So many tokens a minute.
    pub fn new(a_minute: u64, now: Instant) -> Self {
        let capacity = a_minute as f64;
        Self {
            capacity,
            level: capacity,
            at: now,
        }
    }

    fn fill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.level = (self.level + passed * self.capacity / MINUTE).min(self.capacity);
        self.at = now;
    }

    /// Takes tokens and says how many: a call larger than the bucket takes all of a full one.
    ///
    /// # Errors
    /// How long it takes until they are there.
    pub fn take(&mut self, now: Instant, tokens: u64) -> Result<u64, Duration> {
        /// What is lost to rounding.
        const ROUNDING: f64 = 1e-6;
        self.fill(now);
        let wanted = (tokens as f64).min(self.capacity);
        let short = wanted - self.level;
        if short > ROUNDING {
            return Err(Duration::from_secs_f64(short * MINUTE / self.capacity));
        }
        self.level = (self.level - wanted).max(0.0);
        // At most the capacity, which was a whole number.
        Ok(tokens.min(self.capacity as u64))
    }

    /// After a call for which `taken` were taken: what it used beyond is taken as far as it is there, what it left is
    /// given back.
    pub fn settle(&mut self, now: Instant, taken: u64, used: u64) {
        self.fill(now);
        let left = self.level + taken as f64 - used as f64;
        self.level = left.clamp(0.0, self.capacity);
    }

    /// Tokens that are there.
    pub fn left(&mut self, now: Instant) -> u64 {
        self.fill(now);
        self.level as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(number: f64) -> Duration {
        Duration::from_secs_f64(number)
    }

    /// 154
    #[test]
    fn what_is_short_is_waited_for_and_what_is_left_is_given_back() {
        let start = Instant::now();
        let mut bucket = Bucket::new(6_000, start);
        assert_eq!(bucket.take(start, 6_000), Ok(6_000));
        let wait = bucket.take(start, reserved(0)).unwrap_err();
        assert_eq!(wait, second(1.0));
        assert_eq!(bucket.take(start + wait, 100), Ok(100));
        bucket.settle(start + wait, 100, 40);
        assert_eq!(bucket.left(start + wait), 60);
        assert_eq!(bucket.take(start + wait, 100), Err(second(0.4)));
    }

    #[test]
    fn a_call_takes_an_estimate_and_never_less_than_a_short_one() {
        assert_eq!([0, 400, 404].map(reserved), [LEAST, LEAST, LEAST + 1]);
    }

    #[test]
    fn it_never_holds_more_than_a_minute_nor_less_than_nothing() {
        let start = Instant::now();
        let mut bucket = Bucket::new(600, start);
        assert_eq!(bucket.take(start, 100), Ok(100));
        bucket.settle(start, 100, 100_000);
        assert_eq!(bucket.left(start), 0);
        bucket.settle(start, 700, 0);
        assert_eq!(bucket.left(start + second(600.0)), 600);
        // One that is larger than the bucket waits for a full one.
        assert_eq!(bucket.take(start + second(600.0), 5_000), Ok(600));
        let wait = bucket.take(start + second(600.0), 5_000);
        assert_eq!(wait, Err(second(60.0)));
    }
}
