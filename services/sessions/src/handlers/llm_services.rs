//! LLM services of a workspace, and the agents that are bound to them.

use async_trait::async_trait;
use tg_clients::operations::{Chunks, Handle, Refused};
use tg_mesh::{Cx, clock};
use tg_schemas::operations::{
    CreateLlmService, DeleteLlmService, Empty, Failure, GetLlmService, ListLlmServices, LlmService,
    LlmServiceChange, LlmServices, NewAgent, NewLlmService, OneLlmService, UpdateLlmService,
    WhichLlmServices,
};
use tg_schemas::{Error, ErrorCode, limits};

use super::Agents;
use super::sessions::own_id;
use crate::engine::cursor::{self, Key};
use crate::engine::definition::Definition;
use crate::engine::{llm_service, request, workspace_agent};
use crate::error::SessionsError;
use crate::store::{self, LlmServiceRow, LlmServiceStore, Removed, ServiceKind};

/// What a service that is kept is like.
fn body(kept: &store::LlmService) -> Result<NewLlmService, SessionsError> {
    serde_json::from_slice(kept.body.as_bytes()).map_err(|_| {
        let text = "the LLM service that is kept cannot be read";
        Error::new(ErrorCode::Storage, text).into()
    })
}

/// How a service is kept.
fn written(service: &NewLlmService) -> Result<String, SessionsError> {
    serde_json::to_string(service).map_err(|_| {
        let text = "the LLM service cannot be written";
        Error::new(ErrorCode::Internal, text).into()
    })
}

/// A service as clients read it.
fn shown(cx: &Cx, kept: &store::LlmService) -> Result<LlmService, SessionsError> {
    let like = body(kept)?;
    Ok(LlmService {
        workspace_id: cx.workspace().to_owned(),
        llm_service_id: kept.id.clone(),
        name: like.name,
        description: like.description,
        status: like.status,
        provider: like.provider,
        engine: like.engine,
        model_name: like.model_name,
        model_version: like.model_version,
        context_window_tokens: like.context_window_tokens,
        max_output_tokens: like.max_output_tokens,
        temperature_min: like.temperature_min,
        temperature_max: like.temperature_max,
        supports_streaming: like.supports_streaming,
        supports_tools: like.supports_tools,
        endpoint_base_url: like.endpoint_base_url,
        endpoint_path: like.endpoint_path,
        request_timeout_ms: like.request_timeout_ms,
        max_batch_size: like.max_batch_size,
        auth_type: like.auth_type,
        credential_ref: like.credential_ref,
        supported_languages: like.supported_languages,
        supported_content: like.supported_content,
        created_at: clock::rfc3339_of(kept.created),
        updated_at: clock::rfc3339_of(kept.updated),
    })
}

impl Agents {
    /// A service of the workspace that a request names.
    async fn llm_service(&self, cx: &Cx, id: &str) -> Result<store::LlmService, SessionsError> {
        let id = workspace_agent::id("llm_service_id", id)?.to_lowercase();
        self.named_service(cx, &id).await
    }

    /// The same of one that an agent names.
    async fn named_service(&self, cx: &Cx, id: &str) -> Result<store::LlmService, SessionsError> {
        let store = self.store.get().await?;
        let found = store
            .service(ServiceKind::Llm, cx.workspace_key().as_str(), id)
            .await?;
        found.ok_or(SessionsError::NoLlmService)
    }

    /// Whether an agent may be kept as it is: the services that it names are there.
    ///
    /// # Errors
    /// One is not.
    pub(super) async fn is_bound(&self, cx: &Cx, agent: &NewAgent) -> Result<(), SessionsError> {
        if let Some(id) = &agent.llm_service_id {
            self.named_service(cx, id).await?;
        }
        if let Some(id) = &agent.reranking_service_id {
            self.named_reranking(cx, id).await?;
        }
        Ok(())
    }

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
        let mut like = body(&self.named_service(cx, id).await?)?;
        like.max_output_tokens = like.max_output_tokens.or(most);
        Ok(llm_service::bound(agent, like, credentials, workspace)?)
    }

    async fn add_llm_service(
        &self,
        cx: &Cx,
        mut like: NewLlmService,
    ) -> Result<LlmService, SessionsError> {
        let id = match like.llm_service_id.take() {
            Some(id) => workspace_agent::id("llmServiceId", &id)?.to_lowercase(),
            None => own_id(cx),
        };
        let new = LlmServiceRow {
            id,
            request: cx.id.to_string(),
            body: written(&llm_service::settled(like)?)?,
            at: clock::millis(),
        };
        let store = self.store.get().await?;
        let added = store
            .add_service(ServiceKind::Llm, cx.workspace_key().as_str(), new)
            .await?;
        shown(cx, &added.ok_or(SessionsError::Taken)?)
    }

    /// Changes of one service follow one another, so that none is lost.
    async fn change_llm_service(
        &self,
        cx: &Cx,
        change: LlmServiceChange,
    ) -> Result<LlmService, SessionsError> {
        let key = cx.workspace_key();
        // However it is spelled.
        let lane = format!("llm-service {}", change.llm_service_id.to_lowercase());
        let _alone = self.turns.alone(key.clone(), &lane).await?;
        let known = self.llm_service(cx, &change.llm_service_id).await?;
        let like = written(&llm_service::changed(body(&known)?, change)?)?;
        let store = self.store.get().await?;
        let done = store.change_service(
            ServiceKind::Llm,
            key.as_str(),
            &known.id,
            like,
            clock::millis(),
        );
        shown(cx, &done.await?.ok_or(SessionsError::NoLlmService)?)
    }

    async fn remove_llm_service(&self, cx: &Cx, id: &str) -> Result<Empty, SessionsError> {
        if self.is_done(cx, &id.to_lowercase()).await? {
            return Ok(Empty {});
        }
        let known = self.llm_service(cx, id).await?;
        let store = self.store.get().await?;
        let key = cx.workspace_key();
        let removed = store.remove_service(ServiceKind::Llm, key.as_str(), &known.id, &cx.id);
        match removed.await? {
            Removed::Gone => Ok(Empty {}),
            Removed::Missing => Err(SessionsError::NoLlmService),
            Removed::Named(agent) => {
                let agent: NewAgent = serde_json::from_slice(agent.as_bytes()).unwrap_or_default();
                Err(SessionsError::LlmServiceInUse(agent.name))
            }
        }
    }

    async fn llm_services(
        &self,
        cx: &Cx,
        asked: &WhichLlmServices,
    ) -> Result<LlmServices, SessionsError> {
        let most = request::limit(asked.limit)?;
        let after = request::after_llm_service(asked.cursor.as_deref())?;
        let store = self.store.get().await?;
        let key = cx.workspace_key();
        let found = store.services(
            ServiceKind::Llm,
            key.as_str(),
            after,
            most,
            limits::PAGE_BYTES,
        );
        let found = found.await?;
        let last = found.items.last().filter(|_| found.more).map(|last| Key {
            created: last.created,
            id: last.id.clone(),
        });
        let items = found.items.iter().map(|one| shown(cx, one));
        Ok(LlmServices {
            items: items.collect::<Result<_, _>>()?,
            next_cursor: last.as_ref().map(cursor::of_llm_service),
        })
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
        Ok(self.llm_services(cx, &asked).await?)
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
        Ok(self.add_llm_service(cx, like).await?)
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
        let found = self.llm_service(cx, &asked.llm_service_id).await?;
        Ok(shown(cx, &found)?)
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
        Ok(self.change_llm_service(cx, change).await?)
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
        Ok(self.remove_llm_service(cx, &asked.llm_service_id).await?)
    }
}
