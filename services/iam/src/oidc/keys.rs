//! The keys of an issuer, as they are remembered and looked up anew.

use std::time::Duration;

use parking_lot::Mutex;
use tg_schemas::{Error, ErrorCode};
use tokio::time::Instant;

use super::jws::Keys;
use crate::shares::Shares;

/// Keys are looked up anew after that.
const FRESH: Duration = Duration::from_secs(600);
/// And are good for so long while that fails: what an issuer took back ends also while it is away.
const GOOD: Duration = Duration::from_secs(3600);
/// Least time from one look to the next, whatever keys tokens name.
const PAUSE: Duration = Duration::from_secs(5);
/// Longest look.
pub(super) const LOOK: Duration = Duration::from_secs(5);
/// Logins that wait for one at once, and of one network. More are told to come again.
const WAITING: usize = 32;
const OF_NETWORK: usize = WAITING / 4;

/// Keys, and when they came.
#[derive(Default)]
struct Known {
    keys: Keys,
    fetched: Option<Instant>,
    tried: Option<Instant>,
}

impl Known {
    fn within(&self, age: Duration) -> bool {
        self.fetched.is_some_and(|at| at.elapsed() < age)
    }
}

/// What is known of them.
pub(super) struct KnownKeys {
    known: Mutex<Known>,
    looking: tokio::sync::Mutex<()>,
    waiting: Shares,
}

impl Default for KnownKeys {
    fn default() -> Self {
        Self {
            known: Mutex::default(),
            looking: tokio::sync::Mutex::default(),
            waiting: Shares::new(WAITING, OF_NETWORK),
        }
    }
}

impl KnownKeys {
    /// The keys of now, for a login from an address; looked up where they are old, or one is named that is not among them.
    /// Whose key is known waits for nobody: while one login looks, the others go by what is remembered.
    pub(super) async fn now<F>(
        &self,
        kid: &str,
        address: &str,
        look: impl FnOnce() -> F,
    ) -> Result<Keys, Error>
    where
        F: Future<Output = Result<Keys, String>>,
    {
        let remembered = |age| {
            let known = self.known.lock();
            let serves = known.within(age) && known.keys.has(kid);
            serves.then(|| known.keys.clone())
        };
        if let Some(keys) = remembered(FRESH) {
            return Ok(keys);
        }
        let old = remembered(GOOD);
        let (_waits, _look) = match (old, self.looking.try_lock()) {
            (_, Ok(look)) => (None, look),
            (Some(keys), Err(_)) => return Ok(keys),
            (None, Err(_)) => {
                let waits = self.waiting.enter(address);
                let waits = waits.ok_or_else(|| away("too many wait for"))?;
                (Some(waits), self.looking.lock().await)
            }
        };
        // Another one may have looked meanwhile.
        let due = {
            let mut known = self.known.lock();
            let serves = known.within(FRESH) && known.keys.has(kid);
            let due = !serves && known.tried.is_none_or(|at| at.elapsed() >= PAUSE);
            if due {
                known.tried = Some(Instant::now());
            }
            due
        };
        if due {
            let looked = tokio::time::timeout(LOOK, look()).await;
            match looked.unwrap_or_else(|_| Err("no answer in time".to_owned())) {
                Ok(keys) => {
                    let mut known = self.known.lock();
                    (known.keys, known.fetched) = (keys, Some(Instant::now()));
                }
                Err(why) => tracing::warn!(%why, "the keys of the external issuer cannot be had"),
            }
            // From its end: who waited meanwhile does not look again.
            self.known.lock().tried = Some(Instant::now());
        }
        let known = self.known.lock();
        match known.within(GOOD) {
            // A key that is not there verifies nothing.
            true => Ok(known.keys.clone()),
            false => Err(away("nobody can look at tokens of")),
        }
    }
}

fn away(why: &str) -> Error {
    let text = format!(
        "{why} the external issuer; try again in {} seconds",
        PAUSE.as_secs()
    );
    Error::new(ErrorCode::Unavailable, text)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::json;

    use super::super::jws::KeySet;
    use super::super::jws::tests::Signer;
    use super::*;

    /// An issuer whose keys are these, or which is away.
    #[derive(Default)]
    struct Issuer {
        known: KnownKeys,
        kids: Mutex<Vec<&'static str>>,
        away: std::sync::atomic::AtomicBool,
        /// How long a look takes.
        takes: Mutex<Duration>,
        looks: AtomicUsize,
    }

    impl Issuer {
        fn with(kids: &[&'static str]) -> Self {
            let issuer = Self::default();
            *issuer.kids.lock() = kids.to_vec();
            issuer
        }

        /// Whether the key is among those that come.
        async fn has(&self, kid: &str, from: &str) -> Result<bool, Error> {
            let look = || async {
                self.looks.fetch_add(1, Ordering::Relaxed);
                let takes = *self.takes.lock();
                tokio::time::sleep(takes).await;
                if self.away.load(Ordering::Relaxed) {
                    return Err("away".to_owned());
                }
                let keys: Vec<_> = self
                    .kids
                    .lock()
                    .iter()
                    .map(|kid| Signer::new().jwk(kid))
                    .collect();
                let set: KeySet = serde_json::from_value(json!({"keys": keys})).unwrap();
                Ok(Keys::from(set))
            };
            self.known
                .now(kid, from, look)
                .await
                .map(|keys| keys.has(kid))
        }

        fn looks(&self) -> usize {
            self.looks.load(Ordering::Relaxed)
        }
    }

    async fn pass(time: Duration) {
        tokio::time::advance(time).await;
    }

    const MOMENT: Duration = Duration::from_millis(1);

    #[tokio::test(start_paused = true)]
    async fn keys_are_fresh_for_ten_minutes_and_good_for_an_hour_while_nobody_answers() {
        let issuer = Issuer::with(&["a"]);
        for _ in 0..3 {
            assert_eq!(issuer.has("a", "").await, Ok(true));
        }
        pass(FRESH - MOMENT).await;
        assert_eq!((issuer.has("a", "").await, issuer.looks()), (Ok(true), 1));
        pass(MOMENT).await;
        assert_eq!((issuer.has("a", "").await, issuer.looks()), (Ok(true), 2));
        issuer.away.store(true, Ordering::Relaxed);
        pass(FRESH).await;
        assert_eq!((issuer.has("a", "").await, issuer.looks()), (Ok(true), 3));
        // Not at each login.
        assert_eq!((issuer.has("a", "").await, issuer.looks()), (Ok(true), 3));
        pass(GOOD - FRESH - MOMENT).await;
        assert_eq!(issuer.has("a", "").await, Ok(true));
        pass(MOMENT).await;
        let refused = issuer.has("a", "").await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::Unavailable);
        assert!(refused.message.contains("in 5 seconds"), "{refused}");
        issuer.away.store(false, Ordering::Relaxed);
        pass(PAUSE).await;
        assert_eq!(issuer.has("a", "").await, Ok(true));
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_that_is_not_known_is_looked_for_seldom_whatever_is_named() {
        let issuer = Issuer::with(&["a"]);
        assert_eq!(issuer.has("a", "").await, Ok(true));
        *issuer.kids.lock() = vec!["b"];
        for made_up in ["x", "y", "b"] {
            assert_eq!(issuer.has(made_up, "").await, Ok(false));
        }
        assert_eq!(issuer.looks(), 1);
        pass(PAUSE).await;
        assert_eq!((issuer.has("b", "").await, issuer.looks()), (Ok(true), 2));
        // What the issuer took back is gone with that.
        assert_eq!(issuer.has("a", "").await, Ok(false));
    }

    #[tokio::test(start_paused = true)]
    async fn one_looks_few_wait_and_whose_key_is_known_does_not() {
        let issuer = Issuer::with(&["a"]);
        assert_eq!(issuer.has("a", "").await, Ok(true));
        // Longer than a look may take.
        *issuer.takes.lock() = 2 * LOOK;
        pass(FRESH).await;
        let begun = Instant::now();
        let slow = issuer.has("x", "10.0.0.1");
        let known = async {
            tokio::time::sleep(MOMENT).await;
            assert_eq!(issuer.has("a", "10.0.0.2").await, Ok(true));
            assert_eq!(begun.elapsed(), MOMENT);
        };
        let flood = async {
            tokio::time::sleep(MOMENT).await;
            let one = || issuer.has("x", "10.0.0.1");
            let others: Vec<_> = (0..OF_NETWORK).map(|_| one()).collect();
            let refused = async {
                tokio::time::sleep(MOMENT).await;
                let refused = one().await.unwrap_err();
                assert_eq!(refused.code(), ErrorCode::Unavailable);
                // Somebody from elsewhere waits all the same.
                assert_eq!(issuer.has("x", "10.0.0.3").await, Ok(false));
            };
            let waiting = async {
                let mut all = others.into_iter().map(Box::pin).collect::<Vec<_>>();
                std::future::poll_fn(|cx| {
                    all.retain_mut(|one| one.as_mut().poll(cx).is_pending());
                    match all.is_empty() {
                        true => std::task::Poll::Ready(()),
                        false => std::task::Poll::Pending,
                    }
                })
                .await;
            };
            tokio::join!(waiting, refused);
        };
        let (slow, (), ()) = tokio::join!(slow, known, flood);
        assert_eq!(slow, Ok(false));
        assert_eq!(begun.elapsed(), LOOK);
        assert_eq!(issuer.looks(), 2);
    }
}
