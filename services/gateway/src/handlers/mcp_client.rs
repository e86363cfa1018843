//! What a client of the Model Context Protocol can be asked and hears of, and what it answers.

use std::sync::Arc;

use rmcp::model::RequestId;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::mcp::Caller;
use super::mcp_answer::Tells;
use super::read;
use super::whole::Whole;
use crate::call::{Call, Leave, Target};
use crate::calls::Name;
use crate::engine::mcp::completion::{self, Source};
use crate::engine::mcp::confirm;
use crate::engine::mcp::level::Level;
use crate::engine::mcp::message::{Request, RpcError};
use crate::engine::mcp::resources;
use crate::engine::mcp::revision::Revision;
use crate::engine::mcp::session::Declared;
use crate::engine::translate::Body;
use crate::error::RequestError;
use crate::registry;

/// The key below which a request says what its client can be asked.
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The key below which it says what it wants to hear of.
const LEVEL: &str = "io.modelcontextprotocol/logLevel";

impl Caller {
    /// What the client of a request can be asked.
    pub(super) fn declared(
        &self,
        request: &Request,
        revision: Revision,
        session: Option<&str>,
    ) -> Declared {
        match revision {
            Revision::Handshake => session.map(Declared::of_session).unwrap_or_default(),
            Revision::Stateless => {
                let said = request
                    .params
                    .get("_meta")
                    .and_then(|meta| meta.get(CAPABILITIES));
                said.map(Declared::of).unwrap_or_default()
            }
        }
    }

    /// From which level on it hears of a log.
    pub(super) fn level(
        &self,
        request: &Request,
        revision: Revision,
        session: Option<&str>,
    ) -> Option<Level> {
        match revision {
            Revision::Handshake => self.app.levels.of(&self.identity.id, session?),
            Revision::Stateless => {
                let said = request.params.get("_meta")?.get(LEVEL)?;
                Level::of(said.as_str()?)
            }
        }
    }

    /// What it hears before the answer to a call.
    pub(super) fn tells(
        &self,
        request: &Request,
        revision: Revision,
        session: Option<&str>,
    ) -> Tells {
        let declared = self.declared(request, revision, session);
        Tells {
            token: request.meta.get_progress_token(),
            level: self.level(request, revision, session),
            // Since then, no request is sent before an answer.
            asks: revision == Revision::Handshake && declared.elicitation,
        }
    }

    /// Notes from which level on a session wants to hear of a log.
    pub(super) fn set_level(
        &self,
        request: &Request,
        session: Option<&str>,
    ) -> Result<Value, RpcError> {
        let level = Level::of(request.text("level")?);
        let level = level.ok_or_else(|| RpcError::params("level: must be one of debug, info, notice, warning, error, critical, alert and emergency"))?;
        if let Some(session) = session {
            let user: &Arc<str> = &self.identity.id;
            self.app.levels.set(user, session, level);
        }
        Ok(json!({}))
    }

    /// What is proposed for an argument. Whoever may read no documents is proposed none.
    pub(super) async fn completed(&self, request: &Request) -> Result<Value, RpcError> {
        let none = || completion::values("", &Body::new());
        let written = match completion::source(request)? {
            Source::Documents(written) => written,
            Source::Nothing => return Ok(none()),
        };
        match self.of_library(resources::LISTS, completion::page()).await {
            Ok(body) => Ok(completion::values(&written, &body)),
            Err(RequestError::AccessDenied) => Ok(none()),
            Err(fault) => Err(RpcError::internal(fault.error().message)),
        }
    }

    /// Takes what a client answers to what it was asked. An answer that nobody waits for is taken, too.
    pub(super) async fn replied(
        &self,
        session: Option<String>,
        id: Option<RequestId>,
        result: Option<Value>,
    ) -> Result<(), RpcError> {
        let (Some(session), Some(id)) = (session, id) else {
            return Ok(());
        };
        let name = Name {
            user: self.identity.id.clone(),
            session,
            id,
        };
        if self.app.asked.answered(&name, result.as_ref()) {
            return Ok(());
        }
        let answer = result.and_then(|result| confirm::answer(&name.id, &result));
        let Some(body) = answer else { return Ok(()) };
        let confirmed = self.confirm(body).await;
        confirmed.map_err(|fault| RpcError::invalid(fault.error().message))
    }

    /// Passes on what a user answers to a run of the agent: it is the operation that it is at its own endpoint.
    async fn confirm(&self, body: Body) -> Result<(), RequestError> {
        let call = Call {
            target: Target::service(registry::REQUESTS, &body)?,
            body,
            workspace: self.at.workspace.clone(),
            timeout: read::timeout(&self.headers)?,
            leave: Leave::Cancel,
            whole: true,
            meta: self.meta.clone(),
        };
        let running = self
            .app
            .start(&self.identity, call, CancellationToken::new());
        Whole::Last.collect(&mut running.await?).await.map(drop)
    }
}
