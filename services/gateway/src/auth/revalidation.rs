//! Whether who was let in may still be here: asked again whenever something was revoked, and when what is known of a
//! credential is too old. Nobody may stay in a workspace that was closed.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use tg_schemas::{Error, ErrorCode};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::doubt::Doubt;
use super::open_workspace::OpenWorkspace;
use super::{Auth, Identity, Resource};
use crate::error::RequestError;
use crate::registry::Gate;

/// Pause after the iam service could not be asked.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Who cannot be asked about for so long may not stay.
const TRUST: Duration = Duration::from_secs(60);

type Watch = BoxFuture<'static, Error>;

/// Becomes ready, with what to say, when somebody may not be here any more.
/// Is never polled again after that. The lock is never taken: it makes the future one that threads may share.
#[derive(Default)]
pub(crate) struct Lapse {
    watch: Option<Mutex<Watch>>,
    doubt: Doubt,
}

impl Lapse {
    /// Never comes.
    pub(crate) fn never() -> Self {
        Self::default()
    }

    /// Leaves one that never comes in its place.
    pub(crate) fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    /// Whether it may be about to come; only who polls it learns that.
    pub(crate) fn doubt(&self) -> Doubt {
        self.doubt.clone()
    }

    fn of(watch: impl Future<Output = Error> + Send + 'static, doubt: Doubt) -> Self {
        Self {
            watch: Some(Mutex::new(Box::pin(watch))),
            doubt,
        }
    }
}

impl Future for Lapse {
    type Output = Error;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Error> {
        match &mut self.watch {
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
        let workspace = resource.workspace.as_deref();
        let open = workspace.map(|workspace| OpenWorkspace::new(self.mesh.config(), workspace));
        let closed = async move {
            match open {
                Some(open) => open.closed().await,
                None => std::future::pending().await,
            }
            let text = "the workspace was closed while the request was in progress";
            Error::new(ErrorCode::Forbidden, text)
        };
        // Strangers only have what is everybody's.
        if self.open() || gate == Gate::Public {
            return match resource.workspace {
                Some(_) => Lapse::of(closed, Doubt::default()),
                None => Lapse::never(),
            };
        }
        let (known, looked) = watch::channel(identity.generation);
        let doubt = Doubt::new(self.generation.subscribe(), looked);
        let (auth, identity) = (self.clone(), identity.clone());
        let watch = async move {
            tokio::select! {
                error = auth.watch_one(identity, gate, resource, known) => error,
                error = closed => error,
            }
        };
        Lapse::of(watch, doubt)
    }

    /// Tells in `known` which revocations it has looked at.
    async fn watch_one(
        &self,
        mut identity: Identity,
        gate: Gate,
        resource: Resource,
        known: watch::Sender<u64>,
    ) -> Error {
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
                let _turn = self
                    .turns
                    .acquire()
                    .await
                    .map_err(|_| RequestError::Unchecked)?;
                let found = self.authenticate(identity.key.reveal()).await?;
                if found.id != identity.id {
                    return Err(RequestError::AuthFailure);
                }
                self.authorise(&found, gate, &resource).await?;
                Ok(found)
            });
            match again.await.unwrap_or(Err(RequestError::Unchecked)) {
                Ok(found) => {
                    known.send_replace(found.generation);
                    identity = found;
                    unknown = None;
                }
                Err(RequestError::AuthFailure) => return ended(ErrorCode::Unauthenticated),
                Err(RequestError::AccessDenied) => return ended(ErrorCode::Forbidden),
                Err(_) => {
                    if since.elapsed() >= TRUST {
                        return ended(ErrorCode::Unauthenticated);
                    }
                    // Who cannot be asked about goes on for that long.
                    known.send_replace(*revoked.borrow());
                    sleep(RETRY_DELAY).await;
                }
            }
        }
    }
}

fn ended(code: ErrorCode) -> Error {
    let text = match code {
        ErrorCode::Forbidden => "access was revoked while the request was in progress",
        _ => "the credential was revoked or has expired",
    };
    Error::new(code, text)
}
