//! Signed tokens. What is none costs nobody else anything: the signature is looked at here, and only of one that is good is
//! the iam service asked whether its user may still come in. Keys are learnt from it, also new ones.

use std::time::Duration;

use parking_lot::Mutex;
use tg_jwt::{Claims, PublicKeys, Refusal};
use tg_mesh::clock;
use tokio::time::Instant;

use crate::error::RequestError;

/// How often at most the keys are asked for because a token names another one, and after they were asked for in vain.
const PAUSE: Duration = Duration::from_secs(1);

/// Longest wait for the keys: a junk token is not to wait for long, nor who waits behind it.
const TIMEOUT: Duration = Duration::from_secs(3);

/// The public keys of the iam service.
#[derive(Default)]
pub(super) struct Keys {
    known: Mutex<Known>,
    /// Held by who asks; nobody else waits for it whose key is known.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Default, Clone)]
struct Known {
    keys: PublicKeys,
    /// When they were told.
    at: Option<Instant>,
    /// When they were asked for in vain.
    failed: Option<(Instant, RequestError)>,
}

impl Keys {
    /// Something was revoked, maybe a key.
    pub(super) fn clear(&self) {
        *self.known.lock() = Known::default();
    }

    fn known(&self) -> Known {
        self.known.lock().clone()
    }

    fn put(&self, keys: PublicKeys) -> PublicKeys {
        *self.known.lock() = Known {
            keys: keys.clone(),
            at: Some(Instant::now()),
            failed: None,
        };
        keys
    }
}

impl Known {
    fn younger(&self, than: Duration) -> bool {
        self.at.is_some_and(|at| at.elapsed() < than)
    }

    /// What became of the last time, where it is not to be tried again yet.
    fn failure(&self) -> Option<RequestError> {
        let (at, fault) = self.failed.as_ref()?;
        (at.elapsed() < PAUSE).then(|| fault.clone())
    }
}

impl Keys {
    /// What a token says that is signed and good now. `ask` asks the iam service for the keys, in PEM.
    pub(super) async fn verify(
        &self,
        token: &str,
        ask: impl AsyncFnOnce() -> Result<String, RequestError>,
    ) -> Result<Claims, RequestError> {
        let now = clock::now().timestamp();
        // Keys that are known wait for nobody. One that ended since opens nothing: the iam service looks at the token, too.
        let looked = match self.known().keys.verify(token, now) {
            Err(Refusal::UnknownKey) => self.current(ask).await?.verify(token, now),
            looked => looked,
        };
        looked.map_err(|_| RequestError::AuthFailure)
    }

    /// The keys as the iam service has them, a moment ago at most.
    async fn current(
        &self,
        ask: impl AsyncFnOnce() -> Result<String, RequestError>,
    ) -> Result<PublicKeys, RequestError> {
        let _asking = self.asking.lock().await;
        let known = self.known();
        if known.younger(PAUSE) {
            return Ok(known.keys);
        }
        if let Some(fault) = known.failure() {
            return Err(fault);
        }
        let told = tokio::time::timeout(TIMEOUT, ask()).await;
        match told.unwrap_or(Err(RequestError::Unchecked)) {
            Ok(pem) => Ok(self.put(PublicKeys::from_pem(&pem))),
            Err(fault) => {
                self.known.lock().failed = Some((Instant::now(), fault.clone()));
                Err(fault)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::FutureExt;
    use tg_jwt::SigningKey;

    use super::*;

    fn token(key: &SigningKey) -> String {
        let now = clock::now().timestamp();
        key.sign(&Claims::new("u", "home", 0, now)).unwrap()
    }

    async fn silent() -> Result<String, RequestError> {
        std::future::pending().await
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_that_is_good_never_waits_for_one_that_is_not() {
        let [good, junk] = [(); 2].map(|()| SigningKey::generate().unwrap());
        let (good, keys, junk) = (token(&good), good.public().to_pem(), token(&junk));
        let all = Keys::default();
        all.verify(&good, async || Ok(keys)).await.unwrap();
        tokio::time::sleep(Duration::from_secs(600)).await;
        let mut asks = Box::pin(all.verify(&junk, silent));
        assert!((&mut asks).now_or_never().is_none());
        let looked = all.verify(&good, silent).now_or_never();
        assert!(looked.expect("it waits").is_ok());
        let begun = Instant::now();
        assert_eq!(asks.await, Err(RequestError::Unchecked));
        assert_eq!(begun.elapsed(), TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn an_ask_in_vain_is_not_repeated_at_once() {
        let junk = token(&SigningKey::generate().unwrap());
        let (all, asked) = (Keys::default(), AtomicUsize::new(0));
        let ask = async || {
            asked.fetch_add(1, Ordering::Relaxed);
            Err(RequestError::Unchecked)
        };
        for _ in 0..100 {
            assert_eq!(all.verify(&junk, ask).await, Err(RequestError::Unchecked));
        }
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        tokio::time::sleep(PAUSE).await;
        all.verify(&junk, ask).await.unwrap_err();
        assert_eq!(asked.load(Ordering::Relaxed), 2);
    }
}
