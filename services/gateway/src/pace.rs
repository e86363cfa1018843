//! How many requests a second a key, a user and an address may make, where a setting says so; ten seconds' worth of them
//! may come at once. It never waits, and knows keys by their ids only.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::auth::Identity;
use crate::error::RequestError;
use crate::options::Settings;
use crate::trail;

/// What may come at once, as the time in which so many may come one by one.
const BURST: Duration = Duration::from_secs(10);
/// Buckets of each kind that are not full. One more takes the place of the fullest: who floods loses nothing of what is
/// counted against them by it.
const BUCKETS: usize = 65_536;

/// What is counted against whom.
#[derive(Debug)]
pub(crate) struct Pace {
    keys: Buckets,
    users: Buckets,
    addresses: Buckets,
}

impl Pace {
    /// As the settings say.
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            keys: Buckets::new(settings.requests_a_second_of_a_key),
            users: Buckets::new(settings.requests_a_second_of_a_user),
            addresses: Buckets::new(settings.requests_a_second_of_an_address),
        }
    }

    /// Counts a request against the network that it comes from, whoever makes it.
    pub(crate) fn of_address(&self, address: Option<IpAddr>) -> Result<(), RequestError> {
        if !self.addresses.are_counted() || address.is_none() {
            return Ok(());
        }
        self.addresses
            .take(&trail::shown(address), Instant::now())
            .map_err(|wait| slowed("address", wait))
    }

    /// Counts a request against the key that it came with, and against its user.
    pub(crate) fn of_caller(&self, identity: &Identity) -> Result<(), RequestError> {
        let now = Instant::now();
        // A token has no name of its own; its user has.
        if identity.credential.starts_with("key:") {
            self.keys
                .take(&identity.credential, now)
                .map_err(|wait| slowed("key", wait))?;
        }
        if identity.id.is_empty() {
            return Ok(());
        }
        self.users
            .take(&identity.id, now)
            .map_err(|wait| slowed("user", wait))
    }
}

fn slowed(whose: &'static str, wait: Duration) -> RequestError {
    metrics::counter!("tg_gateway_slowed_total", "whose" => whose).increment(1);
    let whole = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    RequestError::Slowed {
        whose,
        seconds: whole.max(1),
    }
}

/// Buckets of one kind.
#[derive(Debug)]
struct Buckets {
    /// Between two requests of one who makes as many as they may; zero: nothing is counted.
    pause: Duration,
    most: usize,
    inner: Mutex<Inner>,
}

/// A bucket is the time at which it is full again; one that is full is none.
#[derive(Debug, Default)]
struct Inner {
    full_at: HashMap<Arc<str>, Instant>,
    by_time: BTreeSet<(Instant, Arc<str>)>,
}

impl Buckets {
    fn new(a_second: usize) -> Self {
        Self {
            pause: match u32::try_from(a_second) {
                Ok(0) | Err(_) => Duration::ZERO,
                Ok(a_second) => Duration::from_secs(1) / a_second,
            },
            most: BUCKETS,
            inner: Mutex::default(),
        }
    }

    fn are_counted(&self) -> bool {
        !self.pause.is_zero()
    }

    /// Takes one out, or says when there is one.
    fn take(&self, whose: &str, now: Instant) -> Result<(), Duration> {
        if !self.are_counted() {
            return Ok(());
        }
        let mut inner = self.inner.lock();
        inner.forget_full(now);
        let known = inner.full_at.get_key_value(whose);
        let (name, was) = match known {
            Some((name, was)) => (name.clone(), Some(*was)),
            None => (whose.into(), None),
        };
        let then = was.unwrap_or(now) + self.pause;
        let ahead = then.saturating_duration_since(now);
        if ahead > BURST {
            return Err(ahead - BURST);
        }
        if let Some(was) = was {
            inner.by_time.remove(&(was, name.clone()));
        } else if inner.full_at.len() >= self.most {
            inner.forget_fullest();
        }
        inner.by_time.insert((then, name.clone()));
        inner.full_at.insert(name, then);
        Ok(())
    }
}

impl Inner {
    fn forget_full(&mut self, now: Instant) {
        while self.by_time.first().is_some_and(|(then, _)| *then <= now) {
            self.forget_fullest();
        }
    }

    fn forget_fullest(&mut self) {
        if let Some((_, name)) = self.by_time.pop_first() {
            self.full_at.remove(&name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn ten_seconds_worth_may_come_at_once_and_then_one_by_one() {
        let all = Buckets::new(2);
        let now = Instant::now();
        for number in 0..20 {
            assert_eq!(all.take("a", now), Ok(()), "{number}");
        }
        assert_eq!(all.take("a", now), Err(SECOND / 2));
        assert_eq!(all.take("b", now), Ok(()), "another has their own");
        assert_eq!(all.take("a", now + SECOND / 4), Err(SECOND / 4));
        assert_eq!(all.take("a", now + SECOND / 2), Ok(()));
        assert!(all.take("a", now + SECOND / 2).is_err());
        let later = now + SECOND * 60;
        for number in 0..20 {
            assert_eq!(all.take("a", later), Ok(()), "{number}");
        }
        assert!(
            all.take("a", later).is_err(),
            "no more than a burst is saved"
        );
    }

    #[test]
    fn nothing_is_counted_without_a_limit() {
        let all = Buckets::new(0);
        let now = Instant::now();
        assert!((0..10_000).all(|_| all.take("a", now).is_ok()));
        assert!(all.inner.lock().full_at.is_empty());
    }

    #[test]
    fn buckets_are_bounded_and_who_floods_keeps_theirs() {
        let all = Buckets {
            most: 3,
            ..Buckets::new(1)
        };
        let now = Instant::now();
        while all.take("flood", now).is_ok() {}
        for number in 0..100 {
            assert_eq!(all.take(&number.to_string(), now), Ok(()));
        }
        assert!(all.take("flood", now).is_err(), "it was not forgotten");
        let count = || {
            let inner = all.inner.lock();
            assert_eq!(inner.full_at.len(), inner.by_time.len());
            inner.full_at.len()
        };
        assert_eq!(count(), 3);
        assert_eq!(all.take("late", now + SECOND * 11), Ok(()));
        assert_eq!(count(), 1, "those that are full are none");
    }
}
