//! Guesses of passwords, counted by the name that is guessed at and by the address that they come from. Each failure
//! fills a bucket, which empties with time; while it is full, nothing is looked at. Names that are nobody's count the
//! same: that somebody is slowed down says nothing of who is there.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tg_schemas::Error;
use tokio::time::Instant;

use crate::shares::network_of;

/// Most buckets. At the bound the emptiest half goes.
const MOST: usize = 20_000;

/// How many failures a bucket holds, and how long one stays in it.
struct Kind {
    holds: u32,
    each: Duration,
}

/// Somebody who mistypes gets in; who guesses on has 2 guesses a minute.
const NAME: Kind = Kind {
    holds: 10,
    each: Duration::from_secs(30),
};
/// Behind one address there may be many.
const ADDRESS: Kind = Kind {
    holds: 60,
    each: Duration::from_secs(2),
};

/// Whoever changes a password, changes it seldom: each takes two hashes, and everybody looks anew at what they remember.
const CHANGE: Kind = Kind {
    holds: 4,
    each: Duration::from_secs(20),
};

/// Who comes in by an external issuer takes no hash, but an entry of the audit each time.
const SUBJECT: Kind = Kind {
    holds: 30,
    each: Duration::from_secs(10),
};
const CAME: Kind = Kind {
    holds: 300,
    each: Duration::from_millis(200),
};

impl Kind {
    /// How long a full bucket takes to be empty.
    fn whole(&self) -> Duration {
        self.each * self.holds
    }
}

/// What is counted: a name by its hash, so that long ones take no room, or a network.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Of {
    Name([u8; 32]),
    Change([u8; 32]),
    Address(IpAddr),
    Subject([u8; 32]),
    Came(IpAddr),
}

impl Of {
    fn kind(&self) -> &'static Kind {
        match self {
            Self::Name(_) => &NAME,
            Self::Change(_) => &CHANGE,
            Self::Address(_) => &ADDRESS,
            Self::Subject(_) => &SUBJECT,
            Self::Came(_) => &CAME,
        }
    }
}

/// Who is guessed at, from where.
#[derive(Debug, Clone)]
pub(crate) struct Attempt(Vec<Of>);

/// A name in 32 bytes.
pub(crate) fn digest(name: &str) -> [u8; 32] {
    Sha256::digest(name.as_bytes()).into()
}

impl Attempt {
    /// To change the password of a name: counted also where it is right.
    pub(crate) fn to_change(name: &str) -> Self {
        Self(vec![Of::Change(digest(name))])
    }

    /// To come in by an external issuer, as a user where it is known whom: counted where it is right.
    pub(crate) fn coming_in(user: Option<&str>, address: &str) -> Self {
        let user = user.map(|id| Of::Subject(digest(id)));
        let from = network_of(address).map(Of::Came);
        Self(user.into_iter().chain(from).collect())
    }

    /// At the password of a name, from an address if one is known.
    pub(crate) fn new(name: &str, address: &str) -> Self {
        let mut of = vec![Of::Name(digest(name))];
        of.extend(network_of(address).map(Of::Address));
        Self(of)
    }
}

/// All buckets: each by when it is empty.
#[derive(Debug, Default)]
pub(crate) struct Attempts(Mutex<HashMap<Of, Instant>>);

impl Attempts {
    /// Whether an attempt may be made.
    pub(crate) fn allow(&self, attempt: &Attempt, now: Instant) -> Result<(), Error> {
        let buckets = self.0.lock();
        let wait = attempt.0.iter().filter_map(|of| {
            let empty = buckets.get(of)?;
            let room = of.kind().whole().saturating_sub(of.kind().each);
            let wait = empty.saturating_duration_since(now).saturating_sub(room);
            (!wait.is_zero()).then_some(wait)
        });
        match wait.max() {
            None => Ok(()),
            Some(wait) => Err(Error::typed(
                "too-many-requests",
                format!(
                    "too many attempts; try again in {} seconds",
                    wait.as_secs() + 1
                ),
            )),
        }
    }

    /// One counts: it failed, or is one of those that always count.
    pub(crate) fn count(&self, attempt: &Attempt, now: Instant) {
        let mut buckets = self.0.lock();
        if buckets.len() + attempt.0.len() > MOST {
            shrink(&mut buckets, now);
        }
        for of in &attempt.0 {
            let empty = buckets.entry(of.clone()).or_insert(now);
            *empty = (*empty).max(now) + of.kind().each;
        }
    }

    /// One failed although nothing was guessed. Only where it fails once more it counts as any other.
    pub(crate) fn count_again(&self, attempt: &Attempt, now: Instant) {
        let is_name = |of: &&Of| matches!(of, Of::Name(_));
        let failed = |of: &Of| self.0.lock().get(of).is_some_and(|empty| *empty > now);
        if attempt.0.iter().filter(is_name).any(failed) {
            return self.count(attempt, now);
        }
        let names = attempt.0.iter().filter(is_name).cloned();
        self.count(&Attempt(names.collect()), now);
    }

    /// One was right: whoever knows the password was not guessing at this name. Their address is still counted.
    pub(crate) fn succeeded(&self, attempt: &Attempt) {
        let mut buckets = self.0.lock();
        for of in &attempt.0 {
            if matches!(of, Of::Name(_)) {
                buckets.remove(of);
            }
        }
    }
}

fn shrink(buckets: &mut HashMap<Of, Instant>, now: Instant) {
    buckets.retain(|_, empty| *empty > now);
    if buckets.len() > MOST / 2 {
        let mut ends: Vec<Instant> = buckets.values().copied().collect();
        let middle = ends.len() / 2;
        let (_, middle, _) = ends.select_nth_unstable(middle);
        let middle = *middle;
        buckets.retain(|_, empty| *empty > middle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(name: &str, address: &str) -> Attempt {
        Attempt::new(name, address)
    }

    #[test]
    fn a_name_is_guessed_at_slowly_wherever_it_comes_from() {
        let (all, start) = (Attempts::default(), Instant::now());
        for guess in 0..NAME.holds {
            let attempt = at("ada", &format!("10.0.0.{guess}"));
            all.allow(&attempt, start).unwrap();
            all.count(&attempt, start);
        }
        let refused = all.allow(&at("ada", "10.9.9.9"), start).unwrap_err();
        assert_eq!(refused.kind, "too-many-requests");
        assert!(refused.message.contains("in 31 seconds"), "{refused}");
        all.allow(&at("bob", "10.9.9.9"), start).unwrap();
        let later = start + NAME.each;
        all.allow(&at("ada", ""), later).unwrap();
        all.count(&at("ada", ""), later);
        all.allow(&at("ada", ""), later).unwrap_err();
        all.succeeded(&at("ada", ""));
        all.allow(&at("ada", ""), later).unwrap();
    }

    #[test]
    fn an_address_guesses_at_many_names_slowly() {
        let (all, start) = (Attempts::default(), Instant::now());
        for guess in 0..ADDRESS.holds {
            all.count(&at(&format!("n{guess}"), "2001:db8::1"), start);
        }
        all.allow(&at("x", "2001:db8::2"), start).unwrap_err();
        all.succeeded(&at("x", "2001:db8::2"));
        all.allow(&at("x", "2001:db8::2"), start).unwrap_err();
        all.allow(&at("x", "2001:db8:1::"), start).unwrap();
        all.allow(&at("x", "2001:db8::2"), start + ADDRESS.each)
            .unwrap();
    }

    #[test]
    fn changes_count_although_they_are_right() {
        let (all, start) = (Attempts::default(), Instant::now());
        let change = || Attempt::to_change("ada");
        for _ in 0..CHANGE.holds {
            all.allow(&change(), start).unwrap();
            all.count(&change(), start);
            all.succeeded(&at("ada", ""));
        }
        all.allow(&change(), start).unwrap_err();
        all.allow(&at("ada", ""), start).unwrap();
        all.allow(&Attempt::to_change("bob"), start).unwrap();
        all.allow(&change(), start + CHANGE.each).unwrap();
    }

    #[test]
    fn the_buckets_are_bounded_and_the_full_ones_stay() {
        let (all, start) = (Attempts::default(), Instant::now());
        for _ in 0..NAME.holds {
            all.count(&at("ada", ""), start);
        }
        for guess in 0..MOST + 10 {
            all.count(&at(&format!("n{guess}"), ""), start);
        }
        assert!(all.0.lock().len() <= MOST);
        all.allow(&at("ada", ""), start).unwrap_err();
    }
}
