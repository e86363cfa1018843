//! Who failed lately, and until when it is left alone.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

const MINUTE: Duration = Duration::from_secs(60);
/// Longest rest, and how long an entry that has ended is kept.
const HOUR: Duration = Duration::from_secs(3600);
/// By how much a rest is longer than the one before.
const GROWTH: u32 = 5;
/// Entries that are kept; names of models come from outside.
const MOST: usize = 4096;

/// How long is rested after so many failures in a row: 1, 5, 25 minutes, then an hour.
pub fn rest(failures: u32) -> Duration {
    let times = GROWTH.checked_pow(failures.saturating_sub(1));
    times.map_or(HOUR, |times| MINUTE.saturating_mul(times).min(HOUR))
}

#[derive(Debug, Clone, Copy)]
struct Rest {
    failures: u32,
    until: Instant,
}

/// Failures in a row, by what failed (`backend/model`).
#[derive(Debug, Default)]
pub struct Health {
    rests: BTreeMap<String, Rest>,
    /// When each answered last.
    answers: BTreeMap<String, Instant>,
}

impl Health {
    /// Notes a failure that may pass, and says how long is rested now: at least as long as was `asked`, never over an
    /// hour. While it rests already a further failure is of the same outage: nothing is counted, only a wish lengthens.
    pub fn failed(&mut self, id: &str, asked: Option<Duration>, now: Instant) -> Duration {
        self.forget(now);
        let own = self.rests.get(id).copied();
        if let Some(own) = own.filter(|own| own.until > now) {
            let until = own.until.max(now + asked.unwrap_or_default().min(HOUR));
            self.set(id, own.failures, until);
            return until.saturating_duration_since(now);
        }
        let failures = own.map_or(1, |one| one.failures.saturating_add(1));
        let rest = rest(failures).max(asked.unwrap_or_default()).min(HOUR);
        self.set(id, failures, now + rest);
        rest
    }

    /// What another process noted: the later end stands.
    pub fn heard(&mut self, id: &str, failures: u32, left: Duration, now: Instant) {
        self.forget(now);
        let until = now + left.min(HOUR);
        let own = self.rests.get(id).copied();
        let until = own.map_or(until, |own| own.until.max(until));
        let failures = own.map_or(failures, |own| own.failures.max(failures));
        self.set(id, failures.min(16), until);
    }

    fn set(&mut self, id: &str, failures: u32, until: Instant) {
        if self.rests.len() >= MOST && !self.rests.contains_key(id) {
            let first = self.rests.iter().min_by_key(|(_, one)| one.until);
            if let Some(first) = first.map(|(id, _)| id.clone()) {
                self.rests.remove(&first);
            }
        }
        self.rests.insert(id.to_owned(), Rest { failures, until });
    }

    /// It answers: nothing of its failures is left. Says whether there was anything.
    pub fn answered(&mut self, id: &str, now: Instant) -> bool {
        if self.answers.len() >= MOST && !self.answers.contains_key(id) {
            let first = self.answers.iter().min_by_key(|(_, at)| **at);
            if let Some(first) = first.map(|(id, _)| id.clone()) {
                self.answers.remove(&first);
            }
        }
        self.answers.insert(id.to_owned(), now);
        self.rests.remove(id).is_some()
    }

    /// Whether it answered a question since another one `began`. The failure of that one is no failure in a row.
    pub fn answered_since(&self, id: &str, began: Instant) -> bool {
        self.answers.get(id).is_some_and(|at| *at > began)
    }

    /// How long it still rests; `None`: it may be asked.
    pub fn resting(&self, id: &str, now: Instant) -> Option<Duration> {
        let one = self.rests.get(id)?;
        let left = one.until.saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }

    /// Failures in a row.
    pub fn failures(&self, id: &str) -> u32 {
        self.rests.get(id).map_or(0, |one| one.failures)
    }

    /// Drops what ended over an hour ago.
    fn forget(&mut self, now: Instant) {
        self.rests
            .retain(|_, one| now.saturating_duration_since(one.until) <= HOUR);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn minutes(number: u64) -> Duration {
        Duration::from_secs(60 * number)
    }

    /// 108: that a refused key never rests is held where failures are judged.
    #[test]
    fn rests_are_1_5_25_and_60_minutes_until_an_answer() {
        let mut health = Health::default();
        let mut now = Instant::now();
        for rest in [1, 5, 25, 60, 60, 60] {
            assert_eq!(health.failed("a/m", None, now), minutes(rest));
            assert_eq!(health.resting("a/m", now), Some(minutes(rest)));
            now += minutes(rest);
            // The end of a rest lets it be tried and keeps the count.
            assert_eq!(health.resting("a/m", now), None);
        }
        assert_eq!(health.failures("a/m"), 6);
        assert_eq!(health.resting("a/other", now), None);
        assert!(health.answered("a/m", now) && !health.answered("a/m", now));
        assert_eq!(health.failed("a/m", None, now), minutes(1));
    }

    #[test]
    fn the_last_answers_are_kept_within_a_bound() {
        let mut health = Health::default();
        let began = Instant::now();
        let later = began + minutes(1);
        health.answered("a/m", began);
        assert!(!health.answered_since("a/m", began));
        health.answered("a/m", later);
        assert!(health.answered_since("a/m", began) && !health.answered_since("b/m", began));
        for number in 0..MOST {
            health.answered(&number.to_string(), later + minutes(1));
        }
        assert_eq!(health.answers.len(), MOST);
        assert!(!health.answered_since("a/m", began));
    }

    #[test]
    fn what_is_long_over_is_forgotten_and_a_wish_lengthens() {
        let mut health = Health::default();
        let now = Instant::now();
        health.failed("a/m", None, now);
        health.failed("b/m", None, now + minutes(62));
        assert_eq!((health.failures("a/m"), health.failures("b/m")), (0, 1));
        assert_eq!(health.failed("c/m", Some(minutes(3)), now), minutes(3));
        assert_eq!(health.failed("d/m", Some(minutes(999)), now), minutes(60));
        // Of several of one outage the longest wish stands.
        assert_eq!(health.failed("c/m", Some(minutes(7)), now), minutes(7));
        assert_eq!(health.failed("c/m", Some(minutes(2)), now), minutes(7));
        assert_eq!(health.failures("c/m"), 1);
    }

    #[test]
    fn another_process_is_heard_and_the_table_is_bounded() {
        let mut health = Health::default();
        let now = Instant::now();
        health.heard("a/m", 2, minutes(5), now);
        assert_eq!(health.resting("a/m", now), Some(minutes(5)));
        health.heard("a/m", 1, minutes(1), now);
        assert_eq!(health.resting("a/m", now), Some(minutes(5)));
        // One that comes while it rests is of the same outage; the next after it counts on.
        assert_eq!(health.failed("a/m", None, now), minutes(5));
        assert_eq!(health.failed("a/m", None, now + minutes(5)), minutes(25));
        for number in 0..2 * MOST {
            health.failed(&number.to_string(), None, now);
        }
        assert_eq!(health.rests.len(), MOST);
        assert!(health.resting("a/m", now).is_some());
    }
}
