//! Whether who was let in may still be here: asked again whenever something was revoked, and when what is known of a
//! credential is too old.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use tg_schemas::{Error, ErrorCode};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{Auth, Identity, Resource};
use crate::error::Fault;
use crate::registry::Gate;

/// Pause after the iam service could not be asked.
const AGAIN: Duration = Duration::from_secs(1);
/// Who cannot be asked about for so long may not stay.
const TRUST: Duration = Duration::from_secs(60);

/// Becomes ready, with what to say, when somebody may not be here any more.
/// Is never polled again after that. The lock is never taken: it makes the future one that threads may share.
pub(crate) struct Lapse(Option<Mutex<BoxFuture<'static, Error>>>);

impl Lapse {
    /// Never comes.
    pub(crate) fn never() -> Self {
        Self(None)
    }

    /// Leaves one that never comes in its place.
    pub(crate) fn take(&mut self) -> Self {
        std::mem::replace(self, Self::never())
    }
}

impl Future for Lapse {
    type Output = Error;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Error> {
        match &mut self.0 {
            Some(watch) => watch.get_mut().as_mut().poll(cx),
            None => Poll::Pending,
        }
    }
}

impl Auth {
    /// Watches over something that was admitted and goes on.
    pub(crate) fn lapse(
        self: &Arc<Self>,
        identity: &Identity,
        gate: Gate,
        resource: Resource,
    ) -> Lapse {
        // Strangers only have what is everybody's.
        if self.open() || gate == Gate::Public {
            return Lapse::never();
        }
        let (auth, identity) = (self.clone(), identity.clone());
        let watch = async move { auth.watch_one(identity, gate, resource).await };
        Lapse(Some(Mutex::new(Box::pin(watch))))
    }

    async fn watch_one(&self, mut identity: Identity, gate: Gate, resource: Resource) -> Error {
        let mut revoked = self.generation.subscribe();
        // What was decided before this moment is looked at once more if something was revoked meanwhile.
        if *revoked.borrow_and_update() != identity.generation {
            revoked.mark_changed();
        }
        let mut unknown: Option<Instant> = None;
        loop {
            if unknown.is_none() {
                tokio::select! {
                    _ = revoked.changed() => {}
                    () = sleep_until(identity.until) => {}
                }
            }
            // The wait for a turn counts, too: who is behind many others may not stay longer for it.
            let since = *unknown.get_or_insert_with(Instant::now);
            let left = TRUST.saturating_sub(since.elapsed());
            let again = timeout(left, async {
                // The first of many ask, the others find their answer remembered.
                let _turn = self.turns.acquire().await.map_err(|_| Fault::Unchecked)?;
                let found = self.authenticate(identity.key.reveal()).await?;
                if found.id != identity.id {
                    return Err(Fault::AuthFailure);
                }
                self.authorise(&found, gate, &resource).await?;
                Ok(found)
            });
            match again.await.unwrap_or(Err(Fault::Unchecked)) {
                Ok(found) => {
                    identity = found;
                    unknown = None;
                }
                Err(Fault::AuthFailure) => return ended(ErrorCode::Unauthenticated),
                Err(Fault::AccessDenied) => return ended(ErrorCode::Forbidden),
                Err(_) => {
                    if since.elapsed() >= TRUST {
                        return ended(ErrorCode::Unauthenticated);
                    }
                    sleep(AGAIN).await;
                }
            }
        }
    }
}

fn ended(code: ErrorCode) -> Error {
    let text = match code {
        ErrorCode::Forbidden => "access was taken back while the request was under way",
        _ => "the credential was revoked or has expired",
    };
    Error::new(code, text)
}
