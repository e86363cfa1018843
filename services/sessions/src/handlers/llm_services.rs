//! LLM services of a workspace, and the agents that are bound to them.

use async_trait::async_trait;
use tg_clients::operations::{Chunks, Handle, Refused};
use tg_mesh::Cx;
use tg_schemas::operations::{
    CreateLlmService, DeleteLlmService, Empty, Failure, GetLlmService, ListLlmServices, LlmService,
    LlmServiceChange, LlmServices, NewLlmService, OneLlmService, UpdateLlmService,
    WhichLlmServices,
};

use super::Agents;
use super::services::{self, About, Described};
use crate::engine::definition::Definition;
use crate::engine::llm_service;
use crate::engine::service_kind::ServiceKind;
use crate::error::SessionsError;

impl Described for NewLlmService {
    const KIND: ServiceKind = ServiceKind::Llm;
    type Change = LlmServiceChange;
    type Shown = LlmService;

    fn wanted_id(&mut self) -> Option<String> {
        self.llm_service_id.take()
    }

    fn changing(change: &LlmServiceChange) -> &str {
        &change.llm_service_id
    }

    fn settled(self) -> Result<Self, Failure> {
        llm_service::settled(self)
    }

    fn changed(self, change: LlmServiceChange) -> Result<Self, Failure> {
        llm_service::changed(self, change)
    }

    fn shown(self, about: About) -> LlmService {
        LlmService {
            workspace_id: about.workspace_id,
            llm_service_id: about.id,
            name: self.name,
            description: self.description,
            status: self.status,
            provider: self.provider,
            engine: self.engine,
            model_name: self.model_name,
            model_version: self.model_version,
            context_window_tokens: self.context_window_tokens,
            max_output_tokens: self.max_output_tokens,
            temperature_min: self.temperature_min,
            temperature_max: self.temperature_max,
            supports_streaming: self.supports_streaming,
            supports_tools: self.supports_tools,
            endpoint_base_url: self.endpoint_base_url,
            endpoint_path: self.endpoint_path,
            request_timeout_ms: self.request_timeout_ms,
            max_batch_size: self.max_batch_size,
            auth_type: self.auth_type,
            credential_ref: self.credential_ref,
            supported_languages: self.supported_languages,
            supported_content: self.supported_content,
            created_at: about.created_at,
            updated_at: about.updated_at,
        }
    }
}

impl Agents {
    /// An agent with the service that answers for it: the one that it names, else that of the operator, if there is one.
    ///
    /// # Errors
    /// Nobody may be asked so.
    pub(super) async fn bound(
        &self,
        cx: &Cx,
        agent: Definition,
        service: Option<&str>,
    ) -> Result<Definition, SessionsError> {
        let (credentials, workspace) = (self.credentials.as_ref(), cx.workspace());
        let most = Some(self.chat.max_tokens);
        let Some(id) = service else {
            if !self.chat.has_model() {
                return Err(SessionsError::NoChatModel);
            }
            let Some(mut like) = self.chat.service.clone() else {
                return Ok(agent);
            };
            like.max_output_tokens = most;
            // Nothing that the workspace has is wrong.
            let bound = llm_service::bound(agent, like, credentials, workspace);
            return bound.map_err(|_| SessionsError::NoChatModel);
        };
        let kept = self.named_service(cx, ServiceKind::Llm, id).await?;
        let mut like: NewLlmService = services::read(&kept)?;
        like.max_output_tokens = like.max_output_tokens.or(most);
        Ok(llm_service::bound(agent, like, credentials, workspace)?)
    }
}

#[async_trait]
impl Handle<ListLlmServices> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        asked: WhichLlmServices,
        _: &mut Chunks<'_, ListLlmServices>,
    ) -> Result<LlmServices, Refused<Failure>> {
        let page = (asked.limit, asked.cursor.as_deref());
        let (items, next_cursor) = self.listed_services::<NewLlmService>(cx, page).await?;
        Ok(LlmServices { items, next_cursor })
    }
}

#[async_trait]
impl Handle<CreateLlmService> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        like: NewLlmService,
        _: &mut Chunks<'_, CreateLlmService>,
    ) -> Result<LlmService, Refused<Failure>> {
        Ok(self.add_service(cx, like).await?)
    }
}

#[async_trait]
impl Handle<GetLlmService> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        asked: OneLlmService,
        _: &mut Chunks<'_, GetLlmService>,
    ) -> Result<LlmService, Refused<Failure>> {
        let found = self.show_service::<NewLlmService>(cx, &asked.llm_service_id);
        Ok(found.await?)
    }
}

#[async_trait]
impl Handle<UpdateLlmService> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        change: LlmServiceChange,
        _: &mut Chunks<'_, UpdateLlmService>,
    ) -> Result<LlmService, Refused<Failure>> {
        Ok(self.change_service::<NewLlmService>(cx, change).await?)
    }
}

#[async_trait]
impl Handle<DeleteLlmService> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        asked: OneLlmService,
        _: &mut Chunks<'_, DeleteLlmService>,
    ) -> Result<Empty, Refused<Failure>> {
        let gone = self.remove_service(cx, ServiceKind::Llm, &asked.llm_service_id);
        Ok(gone.await?)
    }
}
