//! Signed tokens. What is none costs nobody else anything: the signature is looked at here, and only of one that is good is
//! the iam service asked whether its user may still come in. Keys are learnt from it, also new ones.

use std::time::Duration;

use parking_lot::Mutex;
use tg_jwt::{Claims, PublicKeys, Refusal};
use tg_mesh::clock;
use tokio::time::Instant;

use crate::error::RequestError;

/// Longest time that keys are remembered.
const MEMORY: Duration = Duration::from_secs(60);
/// How often at most the keys are asked for because a token names another one.
const PAUSE: Duration = Duration::from_secs(1);

/// The public keys of the iam service.
#[derive(Default)]
pub(super) struct Keys {
    known: Mutex<Known>,
    /// Held by who asks.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Default, Clone)]
struct Known {
    keys: PublicKeys,
    /// When they were told.
    at: Option<Instant>,
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
        let at = Some(Instant::now());
        *self.known.lock() = Known {
            keys: keys.clone(),
            at,
        };
        keys
    }
}

impl Known {
    fn younger(&self, than: Duration) -> bool {
        self.at.is_some_and(|at| at.elapsed() < than)
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
        let known = self.known();
        let looked = match known.younger(MEMORY) {
            true => known.keys.verify(token, now),
            false => Err(Refusal::UnknownKey),
        };
        let looked = match looked {
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
        Ok(self.put(PublicKeys::from_pem(&ask().await?)))
    }
}
