//! Streams of other services than the agent that may be joined again: which of them this gateway keeps, who may read them, here
//! and at other gateways, and how they are cancelled.

use std::sync::Arc;

use futures::stream::{self, StreamExt};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::admission::Admitted;
use crate::ask::{Part, Parts};
use crate::auth::Identity;
use crate::call::Call;
use crate::detached::Listed;
use crate::engine::scrub::scrub;
use crate::engine::translate::{Body, Fields};
use crate::error::RequestError;
use crate::kept::{Access, Named};
use crate::kept_elsewhere::KeptElsewhere;
use crate::rejoin::{self, Source};
use crate::state::App;

/// The kind of flow service whose runs the agent itself keeps.
const AGENT: &str = "agent";

impl App {
    /// The parts of a request, with the name by which they are joined again and the number of the first: a run of the agent at
    /// the agent, another one that goes on without its caller here.
    pub(crate) fn recorded(
        &self,
        parts: Parts,
        identity: &Identity,
        call: &Call,
        admitted: &Admitted,
        listed: Option<&Listed>,
        cancel: &CancellationToken,
    ) -> (Parts, Option<(Arc<str>, u64)>) {
        let Some(listed) = listed else {
            return (parts, None);
        };
        if call.target.name() == AGENT {
            return (parts, Some((listed.id().into(), 0)));
        }
        if !listed.goes_on() || !call.target.is_kept() {
            return (parts, None);
        }
        let Some((workspace, generation)) = admitted.workspace.clone().zip(admitted.generation)
        else {
            return (parts, None);
        };
        let access = Access {
            user: identity.id.clone(),
            workspace,
            generation,
            needs: admitted.needs.clone(),
        };
        match self.kept.record(listed.id(), access, cancel.clone()) {
            Some(recorder) => {
                let name = self.kept.name(listed.id());
                (recorder.recorded(parts), Some((name, 0)))
            }
            None => (parts, None),
        }
    }

    /// The stream that is kept under a name, here or at another gateway, where its caller may still ask what was asked. `None`: the
    /// name may be of a run of the agent.
    pub(crate) async fn kept_stream(
        &self,
        identity: &Identity,
        whose: (&str, &str),
        run: &str,
    ) -> Result<Option<(Access, Source)>, RequestError> {
        let here = |id: &str| {
            let found = self.kept.find(whose, id);
            found.map(|(access, follower)| (access, Source::Kept(follower)))
        };
        let (access, source) = match self.kept.named(run) {
            Named::Elsewhere { id, mark } => {
                let there = KeptElsewhere::new(&self.mesh, identity, whose, (id, mark))?;
                let access = there.find().await.map_err(scrub)?;
                (access, Source::Elsewhere(Box::new(there)))
            }
            Named::Here(id) => here(id).ok_or_else(rejoin::unknown)?,
            Named::Unmarked(id) => match here(id) {
                Some(found) => found,
                None => return Ok(None),
            },
        };
        self.may_read(identity, &access).await?;
        Ok(Some((access, source)))
    }

    /// Whether a caller may do now what it took to ask for a stream; else it looks as if there were none.
    pub(crate) async fn may_read(
        &self,
        identity: &Identity,
        access: &Access,
    ) -> Result<(), RequestError> {
        let (gate, resource) = &access.needs;
        let owner = (&access.workspace, access.generation);
        self.may_still(identity, (*gate, resource), owner).await
    }

    /// Whether a call names a stream of a gateway, and not a run of the agent.
    pub(crate) fn names_kept(&self, call: &Call) -> bool {
        let run = call.body.get("run").and_then(Value::as_str);
        run.is_some_and(|run| self.kept.knows(run))
    }

    /// Ends the request behind a stream that is kept here or at another gateway.
    pub(crate) async fn cancel_kept(
        &self,
        identity: &Identity,
        call: &Call,
    ) -> Result<Parts, RequestError> {
        let workspace = self.administered(identity, call).await?;
        let whose = (&*identity.id, workspace.as_deref().unwrap_or_default());
        let run = Fields::new(&call.body).required_text("run")?;
        let ended = match self.kept.named(&run) {
            Named::Elsewhere { id, mark } => {
                let there = KeptElsewhere::new(&self.mesh, identity, whose, (id, mark))?;
                there.cancel().await.map_err(scrub)?
            }
            Named::Here(id) | Named::Unmarked(id) => {
                let found = self.kept.find(whose, id);
                let (access, _) = found.ok_or_else(rejoin::unknown)?;
                self.may_read(identity, &access).await?;
                let ended = self.kept.cancel(whose, id);
                ended.ok_or_else(rejoin::unknown)?
            }
        };
        let body = Body::from_iter([
            ("cancelled".to_owned(), json!(run)),
            ("ended".to_owned(), json!(ended)),
        ]);
        let part = Part::Body {
            body: body.into(),
            last: true,
            failed: false,
        };
        Ok(stream::iter([part]).boxed())
    }
}
