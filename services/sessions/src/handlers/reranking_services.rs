//! Reranking services of a workspace, and the agents that are bound to them.

use async_trait::async_trait;
use tg_clients::operations::{Chunks, Handle, Refused};
use tg_mesh::Cx;
use tg_schemas::operations::{
    CreateRerankingService, DeleteRerankingService, Empty, Failure, GetRerankingService,
    ListRerankingServices, NewRerankingService, OneRerankingService, RerankingService,
    RerankingServiceChange, RerankingServices, UpdateRerankingService, WhichRerankingServices,
};

use super::Agents;
use super::services::{self, About, Described};
use crate::engine::definition::{Definition, Reranking};
use crate::engine::reranking_service;
use crate::engine::service_kind::ServiceKind;
use crate::error::SessionsError;

const KIND: ServiceKind = ServiceKind::Reranking;

impl Described for NewRerankingService {
    const KIND: ServiceKind = KIND;
    type Change = RerankingServiceChange;
    type Shown = RerankingService;

    fn wanted_id(&mut self) -> Option<String> {
        self.reranking_service_id.take()
    }

    fn changing(change: &RerankingServiceChange) -> &str {
        &change.reranking_service_id
    }

    fn settled(self) -> Result<Self, Failure> {
        reranking_service::settled(self)
    }

    fn changed(self, change: RerankingServiceChange) -> Result<Self, Failure> {
        reranking_service::changed(self, change)
    }

    fn shown(self, about: About) -> RerankingService {
        RerankingService {
            workspace_id: about.workspace_id,
            reranking_service_id: about.id,
            name: self.name,
            provider: self.provider,
            model_name: self.model_name,
            endpoint_base_url: self.endpoint_base_url,
            endpoint_path: self.endpoint_path,
            credential_ref: self.credential_ref,
            created_at: about.created_at,
            updated_at: about.updated_at,
        }
    }
}

impl Agents {
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
        let kept = self.named_service(cx, KIND, id).await?;
        let service: NewRerankingService = services::read(&kept)?;
        let rerank = Reranking {
            kept: rerank.kept,
            settings: Some(reranking_service::asked(service)),
        };
        Ok(Definition {
            rerank: Some(rerank),
            ..agent
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
        let page = (asked.limit, asked.cursor.as_deref());
        let listed = self.listed_services::<NewRerankingService>(cx, page);
        let (items, next_cursor) = listed.await?;
        Ok(RerankingServices { items, next_cursor })
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
        Ok(self.add_service(cx, like).await?)
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
        let id = &asked.reranking_service_id;
        Ok(self.show_service::<NewRerankingService>(cx, id).await?)
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
        let changed = self.change_service::<NewRerankingService>(cx, change);
        Ok(changed.await?)
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
        let gone = self.remove_service(cx, KIND, &asked.reranking_service_id);
        Ok(gone.await?)
    }
}
