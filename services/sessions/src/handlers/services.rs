//! What is done with the services that a workspace names, whatever they are for: they are kept, shown, changed and removed alike.

use serde::Serialize;
use serde::de::DeserializeOwned;
use tg_mesh::{Cx, clock};
use tg_schemas::operations::{Empty, Failure, NewAgent};
use tg_schemas::{Error, ErrorCode, limits};

use super::Agents;
use super::sessions::own_id;
use crate::engine::cursor::{self, Key};
use crate::engine::service_kind::ServiceKind;
use crate::engine::{request, workspace_agent};
use crate::error::SessionsError;
use crate::store::{LlmService, LlmServiceRow, LlmServiceStore, Removed};

/// What a service of a kind is like, as a client writes it and as it is kept.
pub(super) trait Described: Serialize + DeserializeOwned + Send {
    const KIND: ServiceKind;
    /// What changes of one.
    type Change: Send;
    /// One as a client reads it.
    type Shown;

    /// Takes the id that a client wants for it.
    fn wanted_id(&mut self) -> Option<String>;

    /// The id of the one that changes.
    fn changing(change: &Self::Change) -> &str;

    /// The same, once its fields are known to be within their ranges.
    ///
    /// # Errors
    /// The first field that is not.
    fn settled(self) -> Result<Self, Failure>;

    /// The same with what changes of it.
    ///
    /// # Errors
    /// As of [`Described::settled`].
    fn changed(self, change: Self::Change) -> Result<Self, Failure>;

    /// As a client reads it.
    fn shown(self, about: About) -> Self::Shown;
}

/// What is known of a service beside what it is like.
pub(super) struct About {
    pub(super) workspace_id: String,
    pub(super) id: String,
    pub(super) created_at: String,
    pub(super) updated_at: String,
}

/// What a service that is kept is like.
///
/// # Errors
/// It is not of this kind.
pub(super) fn read<S: Described>(kept: &LlmService) -> Result<S, SessionsError> {
    serde_json::from_slice(kept.body.as_bytes()).map_err(|_| {
        let text = format!("the {} that is kept cannot be read", S::KIND.noun());
        Error::new(ErrorCode::Storage, text).into()
    })
}

/// How a service is kept.
fn written<S: Described>(service: &S) -> Result<String, SessionsError> {
    serde_json::to_string(service).map_err(|_| {
        let text = format!("the {} cannot be written", S::KIND.noun());
        Error::new(ErrorCode::Internal, text).into()
    })
}

/// A service as clients read it.
fn shown<S: Described>(cx: &Cx, kept: &LlmService) -> Result<S::Shown, SessionsError> {
    let about = About {
        workspace_id: cx.workspace().to_owned(),
        id: kept.id.clone(),
        created_at: clock::rfc3339_of(kept.created),
        updated_at: clock::rfc3339_of(kept.updated),
    };
    Ok(read::<S>(kept)?.shown(about))
}

impl Agents {
    /// A service of the workspace that a request names.
    async fn requested(
        &self,
        cx: &Cx,
        kind: ServiceKind,
        id: &str,
    ) -> Result<LlmService, SessionsError> {
        let id = workspace_agent::id(kind.parameter(), id)?.to_lowercase();
        self.named_service(cx, kind, &id).await
    }

    /// The same of one that an agent names.
    ///
    /// # Errors
    /// It is not there.
    pub(super) async fn named_service(
        &self,
        cx: &Cx,
        kind: ServiceKind,
        id: &str,
    ) -> Result<LlmService, SessionsError> {
        let store = self.store.get().await?;
        let found = store.service(kind, cx.workspace_key().as_str(), id).await?;
        found.ok_or(SessionsError::NoService(kind))
    }

    /// Whether an agent may be kept as it is: the services that it names are there.
    ///
    /// # Errors
    /// One is not.
    pub(super) async fn is_bound(&self, cx: &Cx, agent: &NewAgent) -> Result<(), SessionsError> {
        for (kind, id) in [
            (ServiceKind::Llm, &agent.llm_service_id),
            (ServiceKind::Reranking, &agent.reranking_service_id),
        ] {
            if let Some(id) = id {
                self.named_service(cx, kind, id).await?;
            }
        }
        Ok(())
    }

    /// Adds a service to the workspace.
    ///
    /// # Errors
    /// It is not as one may be, or another one has its id.
    pub(super) async fn add_service<S: Described>(
        &self,
        cx: &Cx,
        mut like: S,
    ) -> Result<S::Shown, SessionsError> {
        let id = match like.wanted_id() {
            Some(id) => workspace_agent::id(S::KIND.field(), &id)?.to_lowercase(),
            None => own_id(cx),
        };
        let new = LlmServiceRow {
            id,
            request: cx.id.to_string(),
            body: written(&like.settled()?)?,
            at: clock::millis(),
        };
        let store = self.store.get().await?;
        let key = cx.workspace_key();
        let added = store.add_service(S::KIND, key.as_str(), new);
        shown::<S>(cx, &added.await?.ok_or(SessionsError::Taken)?)
    }

    /// Shows a service.
    ///
    /// # Errors
    /// It is not there.
    pub(super) async fn show_service<S: Described>(
        &self,
        cx: &Cx,
        id: &str,
    ) -> Result<S::Shown, SessionsError> {
        let found = self.requested(cx, S::KIND, id).await?;
        shown::<S>(cx, &found)
    }

    /// Changes of one service follow one another, so that none is lost.
    ///
    /// # Errors
    /// It is not there, or would not be as one may be.
    pub(super) async fn change_service<S: Described>(
        &self,
        cx: &Cx,
        change: S::Change,
    ) -> Result<S::Shown, SessionsError> {
        let key = cx.workspace_key();
        // However it is spelled.
        let id = S::changing(&change).to_lowercase();
        let lane = format!("{}-service {id}", S::KIND.as_str());
        let _alone = self.turns.alone(key.clone(), &lane).await?;
        let known = self.requested(cx, S::KIND, &id).await?;
        let like = written(&read::<S>(&known)?.changed(change)?)?;
        let store = self.store.get().await?;
        let done = store.change_service(S::KIND, key.as_str(), &known.id, like, clock::millis());
        let missing = SessionsError::NoService(S::KIND);
        shown::<S>(cx, &done.await?.ok_or(missing)?)
    }

    /// Removes a service that no agent names.
    ///
    /// # Errors
    /// It is not there, or an agent names it.
    pub(super) async fn remove_service(
        &self,
        cx: &Cx,
        kind: ServiceKind,
        id: &str,
    ) -> Result<Empty, SessionsError> {
        if self.is_done(cx, &id.to_lowercase()).await? {
            return Ok(Empty {});
        }
        let known = self.requested(cx, kind, id).await?;
        let store = self.store.get().await?;
        let key = cx.workspace_key();
        let removed = store.remove_service(kind, key.as_str(), &known.id, &cx.id);
        match removed.await? {
            Removed::Gone => Ok(Empty {}),
            Removed::Missing => Err(SessionsError::NoService(kind)),
            Removed::Named(agent) => {
                let agent: NewAgent = serde_json::from_slice(agent.as_bytes()).unwrap_or_default();
                Err(SessionsError::ServiceInUse(kind, agent.name))
            }
        }
    }

    /// A page of services, the oldest first, and the cursor of the next one.
    ///
    /// # Errors
    /// The page cannot be asked for so.
    pub(super) async fn listed_services<S: Described>(
        &self,
        cx: &Cx,
        (limit, cursor): (Option<i64>, Option<&str>),
    ) -> Result<(Vec<S::Shown>, Option<String>), SessionsError> {
        let most = request::limit(limit)?;
        let after = request::after_service(S::KIND, cursor)?;
        let store = self.store.get().await?;
        let key = cx.workspace_key();
        let found = store.services(S::KIND, key.as_str(), after, most, limits::PAGE_BYTES);
        let found = found.await?;
        let last = found.items.last().filter(|_| found.more).map(|last| Key {
            created: last.created,
            id: last.id.clone(),
        });
        let items = found.items.iter().map(|one| shown::<S>(cx, one));
        let next = last.map(|last| cursor::of_service(S::KIND, &last));
        Ok((items.collect::<Result<_, _>>()?, next))
    }
}
