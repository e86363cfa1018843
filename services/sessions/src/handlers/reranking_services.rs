//! Reranking services of a workspace, and the agents that are bound to them.

use async_trait::async_trait;
use tg_clients::operations::{Chunks, Handle, Refused};
use tg_mesh::{Cx, clock};
use tg_schemas::operations::{
    CreateRerankingService, DeleteRerankingService, Empty, Failure, GetRerankingService,
    ListRerankingServices, NewAgent, NewRerankingService, OneRerankingService, RerankingService,
    RerankingServiceChange, RerankingServices, UpdateRerankingService, WhichRerankingServices,
};
use tg_schemas::{Error, ErrorCode, limits};

use super::Agents;
use super::sessions::own_id;
use crate::engine::cursor::{self, Key};
use crate::engine::definition::{Definition, Reranking};
use crate::engine::{request, reranking_service, workspace_agent};
use crate::error::SessionsError;
use crate::store::{self, LlmServiceRow, LlmServiceStore, Removed, ServiceKind};

const KIND: ServiceKind = ServiceKind::Reranking;

/// What a service that is kept is like.
fn body(kept: &store::LlmService) -> Result<NewRerankingService, SessionsError> {
    serde_json::from_slice(kept.body.as_bytes()).map_err(|_| {
        let text = "the reranking service that is kept cannot be read";
        Error::new(ErrorCode::Storage, text).into()
    })
}

/// How a service is kept.
fn written(service: &NewRerankingService) -> Result<String, SessionsError> {
    serde_json::to_string(service).map_err(|_| {
        let text = "the reranking service cannot be written";
        Error::new(ErrorCode::Internal, text).into()
    })
}

/// A service as clients read it.
fn shown(cx: &Cx, kept: &store::LlmService) -> Result<RerankingService, SessionsError> {
    let like = body(kept)?;
    Ok(RerankingService {
        workspace_id: cx.workspace().to_owned(),
        reranking_service_id: kept.id.clone(),
        name: like.name,
        provider: like.provider,
        model_name: like.model_name,
        endpoint_base_url: like.endpoint_base_url,
        endpoint_path: like.endpoint_path,
        credential_ref: like.credential_ref,
        created_at: clock::rfc3339_of(kept.created),
        updated_at: clock::rfc3339_of(kept.updated),
    })
}

impl Agents {
    /// A service of the workspace that a request names.
    async fn reranking_service(
        &self,
        cx: &Cx,
        id: &str,
    ) -> Result<store::LlmService, SessionsError> {
        let id = workspace_agent::id("reranking_service_id", id)?.to_lowercase();
        self.named_reranking(cx, &id).await
    }

    /// The same of one that an agent names.
    ///
    /// # Errors
    /// It is not there.
    pub(super) async fn named_reranking(
        &self,
        cx: &Cx,
        id: &str,
    ) -> Result<store::LlmService, SessionsError> {
        let store = self.store.get().await?;
        let found = store.service(KIND, cx.workspace_key().as_str(), id).await?;
        found.ok_or(SessionsError::NoRerankingService)
    }

    /// An agent with the service that puts its passages in order: the one that it names, else the reranker of its flow.
    ///
    /// # Errors
    /// The service is not there.
    pub(super) async fn reranked_by(
        &self,
        cx: &Cx,
        agent: Definition,
        service: Option<&str>,
    ) -> Result<Definition, SessionsError> {
        let (Some(rerank), Some(id)) = (&agent.rerank, service) else {
            return Ok(agent);
        };
        let service = body(&self.named_reranking(cx, id).await?)?;
        let rerank = Reranking {
            kept: rerank.kept,
            settings: Some(reranking_service::asked(service)),
        };
        Ok(Definition {
            rerank: Some(rerank),
            ..agent
        })
    }

    async fn add_reranking_service(
        &self,
        cx: &Cx,
        mut like: NewRerankingService,
    ) -> Result<RerankingService, SessionsError> {
        let id = match like.reranking_service_id.take() {
            Some(id) => workspace_agent::id("rerankingServiceId", &id)?.to_lowercase(),
            None => own_id(cx),
        };
        let new = LlmServiceRow {
            id,
            request: cx.id.to_string(),
            body: written(&reranking_service::settled(like)?)?,
            at: clock::millis(),
        };
        let store = self.store.get().await?;
        let key = cx.workspace_key();
        let added = store.add_service(KIND, key.as_str(), new);
        shown(cx, &added.await?.ok_or(SessionsError::Taken)?)
    }

    /// Changes of one service follow one another, so that none is lost.
    async fn change_reranking_service(
        &self,
        cx: &Cx,
        change: RerankingServiceChange,
    ) -> Result<RerankingService, SessionsError> {
        let key = cx.workspace_key();
        // However it is spelled.
        let id = change.reranking_service_id.to_lowercase();
        let lane = format!("reranking-service {id}");
        let _alone = self.turns.alone(key.clone(), &lane).await?;
        let known = self.reranking_service(cx, &id).await?;
        let like = written(&reranking_service::changed(body(&known)?, change)?)?;
        let store = self.store.get().await?;
        let done = store.change_service(KIND, key.as_str(), &known.id, like, clock::millis());
        shown(cx, &done.await?.ok_or(SessionsError::NoRerankingService)?)
    }

    async fn remove_reranking_service(&self, cx: &Cx, id: &str) -> Result<Empty, SessionsError> {
        if self.is_done(cx, &id.to_lowercase()).await? {
            return Ok(Empty {});
        }
        let known = self.reranking_service(cx, id).await?;
        let store = self.store.get().await?;
        let key = cx.workspace_key();
        let removed = store.remove_service(KIND, key.as_str(), &known.id, &cx.id);
        match removed.await? {
            Removed::Gone => Ok(Empty {}),
            Removed::Missing => Err(SessionsError::NoRerankingService),
            Removed::Named(agent) => {
                let agent: NewAgent = serde_json::from_slice(agent.as_bytes()).unwrap_or_default();
                Err(SessionsError::RerankingServiceInUse(agent.name))
            }
        }
    }

    async fn reranking_services(
        &self,
        cx: &Cx,
        asked: &WhichRerankingServices,
    ) -> Result<RerankingServices, SessionsError> {
        let most = request::limit(asked.limit)?;
        let after = request::after_reranking_service(asked.cursor.as_deref())?;
        let store = self.store.get().await?;
        let key = cx.workspace_key();
        let found = store.services(KIND, key.as_str(), after, most, limits::PAGE_BYTES);
        let found = found.await?;
        let last = found.items.last().filter(|_| found.more).map(|last| Key {
            created: last.created,
            id: last.id.clone(),
        });
        let items = found.items.iter().map(|one| shown(cx, one));
        Ok(RerankingServices {
            items: items.collect::<Result<_, _>>()?,
            next_cursor: last.as_ref().map(cursor::of_reranking_service),
        })
    }
}

#[async_trait]
impl Handle<ListRerankingServices> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        asked: WhichRerankingServices,
        _: &mut Chunks<'_, ListRerankingServices>,
    ) -> Result<RerankingServices, Refused<Failure>> {
        Ok(self.reranking_services(cx, &asked).await?)
    }
}

#[async_trait]
impl Handle<CreateRerankingService> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        like: NewRerankingService,
        _: &mut Chunks<'_, CreateRerankingService>,
    ) -> Result<RerankingService, Refused<Failure>> {
        Ok(self.add_reranking_service(cx, like).await?)
    }
}

#[async_trait]
impl Handle<GetRerankingService> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        asked: OneRerankingService,
        _: &mut Chunks<'_, GetRerankingService>,
    ) -> Result<RerankingService, Refused<Failure>> {
        let found = self
            .reranking_service(cx, &asked.reranking_service_id)
            .await?;
        Ok(shown(cx, &found)?)
    }
}

#[async_trait]
impl Handle<UpdateRerankingService> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        change: RerankingServiceChange,
        _: &mut Chunks<'_, UpdateRerankingService>,
    ) -> Result<RerankingService, Refused<Failure>> {
        Ok(self.change_reranking_service(cx, change).await?)
    }
}

#[async_trait]
impl Handle<DeleteRerankingService> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        asked: OneRerankingService,
        _: &mut Chunks<'_, DeleteRerankingService>,
    ) -> Result<Empty, Refused<Failure>> {
        let gone = self.remove_reranking_service(cx, &asked.reranking_service_id);
        Ok(gone.await?)
    }
}
