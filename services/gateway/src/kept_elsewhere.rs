//! A stream that another gateway keeps: whether a caller may read it, what it sends, and its cancel. Both gateways check the caller.

use tg_clients::kept_streams::KeptStreams;
use tg_mesh::{Answer, Mesh};
use tg_schemas::msg::{KeptStreamRequest, KeptStreamResponse};
use tg_schemas::{Error, ErrorCode, WorkspaceId};

use crate::ask::Part;
use crate::auth::{Identity, Resource};
use crate::kept::{self, Access};
use crate::kept_parts::{Joining, unreadable};
use crate::registry::{self, Gate};

/// What the gateway that keeps a stream is asked: whether its caller may read it.
pub(crate) const FIND: &str = "find-stream";
/// To send it from a part on.
pub(crate) const READ: &str = "read-stream";
/// To end the request behind it.
pub(crate) const CANCEL: &str = "cancel-stream";

/// A stream that another gateway keeps.
pub(crate) struct KeptElsewhere {
    streams: KeptStreams,
    request: KeptStreamRequest,
    answer: Option<Answer<KeptStreamResponse>>,
}

/// A gateway that nobody is at any more keeps no streams.
pub(crate) fn of_gateway(error: Error) -> Error {
    match error.code() {
        ErrorCode::NobodyServes => kept::elsewhere(),
        _ => error,
    }
}

/// What a gateway says of whoever may read a stream.
pub(crate) fn shown(access: &Access) -> KeptStreamResponse {
    let (gate, resource) = &access.needs;
    KeptStreamResponse {
        capability: match gate {
            Gate::Needs(capability) => (*capability).to_owned(),
            Gate::Authenticated | Gate::Public => String::new(),
        },
        workspace: access.workspace.to_string(),
        generation: access.generation,
        flow: resource.flow.clone().unwrap_or_default(),
        ..KeptStreamResponse::default()
    }
}

/// The same as another gateway said it, for a user.
fn access(user: &str, said: &KeptStreamResponse) -> Option<Access> {
    let workspace = WorkspaceId::new(&said.workspace).ok()?;
    let gate = match said.capability.as_str() {
        "" => Gate::Authenticated,
        capability => registry::gate_of(capability)?,
    };
    let resource = match said.flow.as_str() {
        "" => Resource::workspace(workspace.as_str()),
        flow => Resource::flow(workspace.as_str(), flow),
    };
    Some(Access {
        user: user.into(),
        workspace,
        generation: said.generation,
        needs: (gate, resource),
    })
}

impl KeptElsewhere {
    /// The stream with an id at the gateway with a mark, as a caller asks for it: of a user, or of a workspace.
    ///
    /// # Errors
    /// No other gateway can be asked.
    pub(crate) fn new(
        mesh: &Mesh,
        identity: &Identity,
        (user, workspace): (&str, &str),
        (id, mark): (&str, &str),
    ) -> Result<Self, Error> {
        let request = KeptStreamRequest {
            user: user.to_owned(),
            scopes: identity.scopes.as_deref().unwrap_or_default().to_vec(),
            workspace: workspace.to_owned(),
            id: id.to_owned(),
            ..KeptStreamRequest::default()
        };
        Ok(Self {
            streams: KeptStreams::of(mesh, mark).ok_or_else(kept::elsewhere)?,
            request,
            answer: None,
        })
    }

    /// What it takes to read it, where that gateway would let its caller.
    ///
    /// # Errors
    /// There is no such stream, or not for this caller, or nobody answers.
    pub(crate) async fn find(&self) -> Result<Access, Error> {
        let said = self.ask(FIND).await?;
        access(&self.request.user, &said).ok_or_else(unreadable)
    }

    /// Ends the request behind it. Whether it was over.
    ///
    /// # Errors
    /// As of [`Self::find`].
    pub(crate) async fn cancel(&self) -> Result<bool, Error> {
        Ok(self.ask(CANCEL).await?.ended)
    }

    async fn ask(&self, operation: &str) -> Result<KeptStreamResponse, Error> {
        let request = KeptStreamRequest {
            operation: operation.to_owned(),
            ..self.request.clone()
        };
        self.streams.ask(&request).await.map_err(of_gateway)
    }

    /// It is asked anew for what comes next.
    pub(crate) fn let_go(&mut self) {
        self.answer = None;
    }

    /// The parts from a number on, as they come, with the number of the first of them. `None`: nothing follows any more.
    ///
    /// # Errors
    /// How that gateway ended the answer, or that it is away.
    pub(crate) async fn more(&mut self, from: u64) -> Result<Option<(u64, Vec<Part>)>, Error> {
        let mut joining = Joining::default();
        loop {
            let answer = match &mut self.answer {
                Some(answer) => answer,
                none => {
                    self.request.operation = READ.to_owned();
                    self.request.from = i64::try_from(from).unwrap_or(i64::MAX);
                    none.insert(self.streams.read(&self.request)?)
                }
            };
            let mut said = match answer.next().await {
                Some(said) => said?,
                None => return Ok(None),
            };
            if let Some(error) = said.error.take() {
                return Err(error);
            }
            if !said.more {
                return Ok(None);
            }
            if let Some(parts) = joining.take(said) {
                return Ok(Some(parts));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_gateway_learns_what_it_takes_to_read_a_stream() {
        for (gate, resource) in [
            (Gate::Needs("graph-rag:read"), Resource::flow("w", "f")),
            (Gate::Needs("agent"), Resource::workspace("w")),
            (Gate::Authenticated, Resource::workspace("w")),
        ] {
            let kept = Access {
                user: "ann".into(),
                workspace: WorkspaceId::new("w").unwrap(),
                generation: 3,
                needs: (gate, resource),
            };
            let read = access("ann", &shown(&kept)).unwrap();
            assert_eq!(format!("{read:?}"), format!("{kept:?}"));
        }
        let unknown = KeptStreamResponse {
            capability: "of another release".to_owned(),
            workspace: "w".to_owned(),
            ..KeptStreamResponse::default()
        };
        assert!(access("ann", &unknown).is_none());
        assert!(access("ann", &KeptStreamResponse::default()).is_none());
    }
}
