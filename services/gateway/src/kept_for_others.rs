//! What other gateways ask of this one: the streams that it keeps. The caller is checked here as at the gateway that asks.

use std::sync::Arc;
use std::time::Duration;

use tg_clients::kept_streams;
use tg_mesh::{Mesh, Responder};
use tg_schemas::msg::{KeptStreamRequest, KeptStreamResponse};
use tg_schemas::{Error, ErrorCode};

use crate::auth::Identity;
use crate::error::RequestError;
use crate::inflight::{InFlight, Permit};
use crate::kept::{Access, Follower};
use crate::kept_elsewhere::{CANCEL, FIND, READ, shown};
use crate::kept_parts;
use crate::rejoin;
use crate::state::App;

/// Pause before it is tried again to be asked, while the bus is away.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Readers of one workspace through other gateways at once: they leave room for those of other workspaces.
const READERS: usize = 128;

impl App {
    /// Has other gateways ask this one, until its endpoints close.
    pub(crate) async fn answer_gateways(self: Arc<Self>) {
        let asked = tokio::select! {
            asked = self.asked_by_gateways() => asked,
            () = self.closing.cancelled() => return,
        };
        if let Some(asked) = asked {
            self.closing.cancelled().await;
            asked.end().await;
        }
    }

    async fn asked_by_gateways(self: &Arc<Self>) -> Option<kept_streams::Asked> {
        let readers = InFlight::new(READERS);
        loop {
            let (app, readers) = (self.clone(), readers.clone());
            let handle = move |asked: KeptStreamRequest, out: Responder<KeptStreamResponse>| {
                app.clone().answer_gateway(readers.clone(), asked, out)
            };
            match kept_streams::serve(&self.mesh, self.kept.mark(), handle).await {
                Ok(asked) => return asked,
                Err(error) => {
                    tracing::warn!(%error, "other gateways cannot ask for streams of this one; trying again");
                }
            }
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }

    async fn answer_gateway(
        self: Arc<Self>,
        readers: InFlight,
        asked: KeptStreamRequest,
        mut out: Responder<KeptStreamResponse>,
    ) -> Result<(), Error> {
        let whose = (asked.user.as_str(), asked.workspace.as_str());
        let found = self.kept.find(whose, &asked.id);
        let (access, follower) = found.ok_or_else(rejoin::unknown)?;
        let caller = caller(&asked);
        let may = self.may_read(&caller, &access).await;
        may.map_err(|refused| refused.error())?;
        match asked.operation.as_str() {
            FIND => out.send(shown(&access)).await,
            CANCEL => {
                let ended = self.kept.cancel(whose, &asked.id);
                let said = KeptStreamResponse {
                    ended: ended.ok_or_else(rejoin::unknown)?,
                    ..KeptStreamResponse::default()
                };
                out.send(said).await
            }
            READ => {
                let _reader = reader(&readers, &access)?;
                let from = u64::try_from(asked.from).unwrap_or(0);
                send_kept(&self.mesh, follower, from, out).await
            }
            _ => Err(Error::new(ErrorCode::BadOperation, "unknown operation")),
        }
    }
}

/// Sends the parts of a stream as they come, to its end.
async fn send_kept(
    mesh: &Mesh,
    mut follower: Follower,
    mut from: u64,
    mut out: Responder<KeptStreamResponse>,
) -> Result<(), Error> {
    let left = out.cancelled();
    loop {
        let more = tokio::select! {
            more = follower.more(from) => more?,
            () = left.cancelled() => {
                return Err(Error::new(ErrorCode::Cancelled, "cancelled"));
            }
            () = mesh.stopping().cancelled() => {
                let text = "the gateway that keeps the stream is stopping";
                return Err(Error::new(ErrorCode::Unavailable, text));
            }
        };
        let Some((first, parts)) = more else {
            return out.send(KeptStreamResponse::default()).await;
        };
        from = first.saturating_add(parts.len() as u64);
        kept_parts::send(&mut out, first, &parts).await?;
    }
}

/// One more reader of a stream, if its workspace may have one.
fn reader(readers: &InFlight, access: &Access) -> Result<Permit, Error> {
    let entered = readers.enter(access.workspace.as_str());
    entered.ok_or_else(|| RequestError::busy("in this workspace").error())
}

/// The caller for whom another gateway asks, as that one has authenticated them.
fn caller(asked: &KeptStreamRequest) -> Identity {
    let scopes = Some(asked.scopes.as_slice()).filter(|scopes| !scopes.is_empty());
    Identity {
        scopes: scopes.map(Into::into),
        ..Identity::plain(&asked.user, "")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::StreamExt;
    use futures::channel::mpsc;
    use serde_json::json;
    use tg_schemas::WorkspaceId;
    use tg_testkit::faults::FaultyBus;
    use tg_testkit::place::{Place, host};
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::ask::Part;
    use crate::auth::Resource;
    use crate::engine::translate::Body;
    use crate::kept::Kept;
    use crate::kept_elsewhere::KeptElsewhere;
    use crate::registry::Gate;
    use crate::rejoin::{Joined, Source};

    /// The bus ends an answer that lasts an hour, and one that is silent for a sixth of it.
    const SILENCE: Duration = Duration::from_secs(3_660);

    fn access(workspace: &str) -> Access {
        Access {
            user: "ann".into(),
            workspace: WorkspaceId::new(workspace).unwrap(),
            generation: 0,
            needs: (Gate::Authenticated, Resource::workspace(workspace)),
        }
    }

    fn part(text: &str, last: bool) -> Part {
        Part::Body {
            body: Body::from_iter([("text".to_owned(), json!(text))]).into(),
            last,
            failed: false,
        }
    }

    /// The time is stopped, so that both gateways are on the bus inside the process. The wrapper says that it is a broker: only then
    /// gateways ask each other.
    #[tokio::test]
    async fn a_stream_of_another_gateway_continues_after_an_hour_of_silence() {
        let place = Place::embedded();
        let gateway = async || host(Arc::new(FaultyBus::new(place.connect().await, 0))).await;
        let (keeps, joins) = (gateway().await, gateway().await);
        let kept = Kept::new();
        let recorder = kept.record("r", access("w"), CancellationToken::new());
        let (source, parts) = mpsc::unbounded();
        let mut recorded = recorder.unwrap().recorded(parts.boxed());
        let asked = Arc::new(AtomicUsize::new(0));
        let (streams, mesh, counted) = (kept.clone(), keeps.mesh().clone(), asked.clone());
        let handle = move |asked: KeptStreamRequest, out: Responder<KeptStreamResponse>| {
            counted.fetch_add(1, Ordering::SeqCst);
            let (_, follower) = streams.find(("ann", ""), &asked.id).unwrap();
            let (mesh, from) = (mesh.clone(), u64::try_from(asked.from).unwrap());
            async move { send_kept(&mesh, follower, from, out).await }
        };
        let served = kept_streams::serve(keeps.mesh(), kept.mark(), handle).await;
        let _served = served.unwrap().expect("gateways ask each other");
        let identity = Identity::plain("ann", "");
        let named = ("r", kept.mark());
        let there = KeptElsewhere::new(joins.mesh(), &identity, ("ann", ""), named).unwrap();
        let word: (CancellationToken, rejoin::Noted) = (CancellationToken::new(), Box::new(|| {}));
        let mut joined = Joined::kept(Source::Elsewhere(Box::new(there)), 0, word).parts();
        let mut sends = async |part: &Part| {
            source.unbounded_send(part.clone()).unwrap();
            recorded.next().await
        };
        let (first, last) = (part("first", false), part("last", true));
        assert_eq!(sends(&first).await.as_ref(), Some(&first));
        assert_eq!(joined.next().await.as_ref(), Some(&first));
        tokio::time::pause();
        let silent = async {
            tokio::time::sleep(SILENCE).await;
            sends(&last).await
        };
        let (next, _) = tokio::join!(joined.next(), silent);
        assert_eq!(next, Some(last));
        assert_eq!(joined.next().await, None);
        let asked = asked.load(Ordering::SeqCst);
        assert!(asked > 1, "the bus ended no answer");
    }

    #[test]
    fn readers_of_one_workspace_leave_room_for_those_of_another() {
        let readers = InFlight::new(READERS);
        let mut all: Vec<_> = (0..READERS)
            .map(|_| reader(&readers, &access("one")).unwrap())
            .collect();
        let refused = reader(&readers, &access("one")).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::Busy);
        assert!(reader(&readers, &access("other")).is_ok());
        all.pop();
        assert!(reader(&readers, &access("one")).is_ok());
    }

    #[test]
    fn a_caller_has_no_more_than_their_credential() {
        let mut asked = KeptStreamRequest {
            user: "ann".to_owned(),
            ..KeptStreamRequest::default()
        };
        assert_eq!(caller(&asked).scopes, None);
        asked.scopes = vec!["llm".to_owned()];
        let caller = caller(&asked);
        assert_eq!(caller.scopes.as_deref(), Some(&["llm".to_owned()][..]));
        assert_eq!((&*caller.id, caller.credential.is_empty()), ("ann", true));
    }
}
