//! What other gateways ask of this one: the streams that it keeps. The caller is checked here as at the gateway that asks.

use std::sync::Arc;
use std::time::Duration;

use tg_clients::kept_streams;
use tg_mesh::Responder;
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
        if asked.operation == CANCEL {
            let ended = self.kept.cancel(whose, &asked.id);
            let said = KeptStreamResponse {
                ended: ended.ok_or_else(rejoin::unknown)?,
                ..KeptStreamResponse::default()
            };
            return out.send(said).await;
        }
        let found = self.kept.find(whose, &asked.id);
        let (access, follower) = found.ok_or_else(rejoin::unknown)?;
        let caller = caller(&asked);
        let may = self.may_read(&caller, &access).await;
        may.map_err(|refused| refused.error())?;
        match asked.operation.as_str() {
            FIND => out.send(shown(&access)).await,
            READ => {
                let _reader = reader(&readers, &access)?;
                let from = u64::try_from(asked.from).unwrap_or(0);
                self.send_kept(follower, from, out).await
            }
            _ => Err(Error::new(ErrorCode::BadOperation, "unknown operation")),
        }
    }

    /// Sends the parts of a stream as they come, to its end.
    async fn send_kept(
        &self,
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
                () = self.mesh.stopping().cancelled() => {
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
    use tg_schemas::WorkspaceId;

    use super::*;
    use crate::auth::Resource;
    use crate::registry::Gate;

    #[test]
    fn readers_of_one_workspace_leave_room_for_those_of_another() {
        let readers = InFlight::new(READERS);
        let of = |workspace: &str| Access {
            user: "ann".into(),
            workspace: WorkspaceId::new(workspace).unwrap(),
            generation: 0,
            needs: (Gate::Authenticated, Resource::workspace(workspace)),
        };
        let mut all: Vec<_> = (0..READERS)
            .map(|_| reader(&readers, &of("one")).unwrap())
            .collect();
        let refused = reader(&readers, &of("one")).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::Busy);
        assert!(reader(&readers, &of("other")).is_ok());
        all.pop();
        assert!(reader(&readers, &of("one")).is_ok());
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
