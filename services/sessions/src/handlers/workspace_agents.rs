//! Agents that a workspace makes itself, and the templates of them.

use async_trait::async_trait;
use tg_clients::operations::{Chunks, Handle, Refused};
use tg_mesh::{Cx, clock, warn_of};
use tg_schemas::limits;
use tg_schemas::operations::{
    AgentChange, AgentTemplates, CreateAgent, CreateFromTemplate, DeleteAgent, Empty, Failure,
    FromTemplate, GetAgent, ListAgents, ListTemplates, NewAgent, OneAgent, UpdateAgent,
    WhichAgents, WorkspaceAgent, WorkspaceAgents,
};
use tg_schemas::{Error, ErrorCode};
use uuid::Uuid;

use super::Agents;
use super::sessions::own_id;
use crate::engine::cursor::{self, Key};
use crate::engine::{request, templates, workspace_agent};
use crate::error::SessionsError;
use crate::store::{Agent, AgentRow, AgentStore};

/// Row of a workspace, by type and key: a list of the templates of the agents that it begins with.
pub(crate) const SEED: (&str, &str) = ("agent-seed", "templates");

/// What an agent that is kept is like.
pub(super) fn body(agent: &Agent) -> Result<NewAgent, SessionsError> {
    serde_json::from_slice(agent.body.as_bytes()).map_err(|_| {
        let text = "the agent that is kept cannot be read";
        Error::new(ErrorCode::Storage, text).into()
    })
}

/// How an agent is kept.
fn written(agent: &NewAgent) -> Result<String, SessionsError> {
    serde_json::to_string(agent).map_err(|_| {
        let text = "the agent cannot be written";
        Error::new(ErrorCode::Internal, text).into()
    })
}

/// An agent as clients read it.
fn shown(cx: &Cx, agent: &Agent) -> Result<WorkspaceAgent, SessionsError> {
    let like = body(agent)?;
    Ok(WorkspaceAgent {
        workspace_id: cx.workspace().to_owned(),
        agent_id: agent.id.clone(),
        name: like.name,
        description: like.description,
        system_prompt: like.system_prompt,
        user_prompt: like.user_prompt,
        tool_ids: Vec::new(),
        llm_service_id: like.llm_service_id,
        knowledge_base_ids: like.knowledge_base_ids,
        rag_enabled: like.rag_enabled,
        rag_max_results: like.rag_max_results,
        rag_min_score: like.rag_min_score,
        rerank_enabled: like.rerank_enabled,
        reranking_service_id: like.reranking_service_id,
        rerank_max_results: like.rerank_max_results,
        created_at: clock::rfc3339_of(agent.created),
        updated_at: clock::rfc3339_of(agent.updated),
    })
}

impl Agents {
    /// A workspace that was made for somebody has the agents that it begins with before anybody looks.
    async fn seed(&self, cx: &Cx) -> Result<(), SessionsError> {
        let row = cx.config().get(cx.workspace(), SEED.0, SEED.1);
        let ids = row.and_then(|row| serde_json::from_slice::<Vec<String>>(row.as_bytes()).ok());
        let ids = ids.unwrap_or_default();
        if ids.is_empty() {
            return Ok(());
        }
        let (store, key) = (self.store.get().await?, cx.workspace_key());
        if store.is_seeded(key.as_str()).await? {
            return Ok(());
        }
        let mut agents = Vec::new();
        for id in ids {
            let Some(like) = templates::agent_of(&id) else {
                warn_of!(cx, id, "there is no such template of an agent");
                continue;
            };
            agents.push(AgentRow {
                id: Uuid::new_v4().to_string(),
                request: cx.id.to_string(),
                template: Some(id),
                body: written(&like)?,
                at: clock::millis(),
            });
        }
        Ok(store.seed(key.as_str(), agents).await?)
    }

    /// Adds an agent. Without an id of its own the request's id is the agent's.
    async fn add(
        &self,
        cx: &Cx,
        mut like: NewAgent,
        template: Option<String>,
    ) -> Result<WorkspaceAgent, SessionsError> {
        let id = match like.agent_id.take() {
            Some(id) => workspace_agent::id("agentId", &id)?.to_lowercase(),
            None => own_id(cx),
        };
        let like = workspace_agent::settled(like)?;
        self.is_bound(cx, &like).await?;
        self.seed(cx).await?;
        let new = AgentRow {
            id,
            request: cx.id.to_string(),
            template,
            body: written(&like)?,
            at: clock::millis(),
        };
        let store = self.store.get().await?;
        let added = store.add_agent(cx.workspace_key().as_str(), new).await?;
        shown(cx, &added.ok_or(SessionsError::Taken)?)
    }

    /// An agent of the workspace.
    ///
    /// # Errors
    /// There is none of this id.
    pub(super) async fn kept(&self, cx: &Cx, id: &str) -> Result<Agent, SessionsError> {
        let id = workspace_agent::id("agent_id", id)?.to_lowercase();
        let store = self.store.get().await?;
        let found = store.agent(cx.workspace_key().as_str(), &id).await?;
        found.ok_or(SessionsError::NoWorkspaceAgent)
    }

    /// Changes of one agent follow one another, so that none is lost.
    async fn change(&self, cx: &Cx, change: AgentChange) -> Result<WorkspaceAgent, SessionsError> {
        let key = cx.workspace_key();
        // However it is spelled.
        let lane = format!("agent {}", change.agent_id.to_lowercase());
        let _alone = self.turns.alone(key.clone(), &lane).await?;
        let known = self.kept(cx, &change.agent_id).await?;
        let like = workspace_agent::changed(body(&known)?, change)?;
        self.is_bound(cx, &like).await?;
        let store = self.store.get().await?;
        let done = store.change_agent(key.as_str(), &known.id, written(&like)?, clock::millis());
        shown(cx, &done.await?.ok_or(SessionsError::NoWorkspaceAgent)?)
    }

    async fn page(&self, cx: &Cx, asked: &WhichAgents) -> Result<WorkspaceAgents, SessionsError> {
        let most = request::limit(asked.limit)?;
        let after = request::after_agent(asked.cursor.as_deref())?;
        self.seed(cx).await?;
        let store = self.store.get().await?;
        let key = cx.workspace_key();
        let found = store.agents(key.as_str(), after, most, limits::PAGE_BYTES);
        let found = found.await?;
        let last = found.items.last().filter(|_| found.more).map(|last| Key {
            created: last.created,
            id: last.id.clone(),
        });
        let items = found.items.iter().map(|one| shown(cx, one));
        Ok(WorkspaceAgents {
            items: items.collect::<Result<_, _>>()?,
            next_cursor: last.as_ref().map(cursor::of_agent),
        })
    }
}

#[async_trait]
impl Handle<ListAgents> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        asked: WhichAgents,
        _: &mut Chunks<'_, ListAgents>,
    ) -> Result<WorkspaceAgents, Refused<Failure>> {
        Ok(self.page(cx, &asked).await?)
    }
}

#[async_trait]
impl Handle<CreateAgent> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        like: NewAgent,
        _: &mut Chunks<'_, CreateAgent>,
    ) -> Result<WorkspaceAgent, Refused<Failure>> {
        Ok(self.add(cx, like, None).await?)
    }
}

#[async_trait]
impl Handle<CreateFromTemplate> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        asked: FromTemplate,
        _: &mut Chunks<'_, CreateFromTemplate>,
    ) -> Result<WorkspaceAgent, Refused<Failure>> {
        if asked.template_id.is_empty() {
            let failure = Failure::invalid("templateId", "is required");
            return Err(SessionsError::Invalid(failure).into());
        }
        let like = templates::agent_of(&asked.template_id);
        let like = like.ok_or(SessionsError::NoTemplate)?;
        Ok(self.add(cx, like, Some(asked.template_id)).await?)
    }
}

#[async_trait]
impl Handle<GetAgent> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        asked: OneAgent,
        _: &mut Chunks<'_, GetAgent>,
    ) -> Result<WorkspaceAgent, Refused<Failure>> {
        let found = self.kept(cx, &asked.agent_id).await?;
        Ok(shown(cx, &found)?)
    }
}

#[async_trait]
impl Handle<UpdateAgent> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        change: AgentChange,
        _: &mut Chunks<'_, UpdateAgent>,
    ) -> Result<WorkspaceAgent, Refused<Failure>> {
        Ok(self.change(cx, change).await?)
    }
}

#[async_trait]
impl Handle<DeleteAgent> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        asked: OneAgent,
        _: &mut Chunks<'_, DeleteAgent>,
    ) -> Result<Empty, Refused<Failure>> {
        if self.is_done(cx, &asked.agent_id.to_lowercase()).await? {
            return Ok(Empty {});
        }
        let found = self.kept(cx, &asked.agent_id).await?;
        let store = self.store.get().await.map_err(SessionsError::from)?;
        let key = cx.workspace_key();
        let gone = store.remove_agent(key.as_str(), &found.id, &cx.id).await;
        // The conversations with it go, too. What others said is read anew.
        self.pasts.forget_all(&key).await;
        match gone.map_err(SessionsError::from)? {
            true => Ok(Empty {}),
            false => Err(SessionsError::NoWorkspaceAgent.into()),
        }
    }
}

#[async_trait]
impl Handle<ListTemplates> for Agents {
    async fn handle(
        &self,
        _: &Cx,
        _: Empty,
        _: &mut Chunks<'_, ListTemplates>,
    ) -> Result<AgentTemplates, Refused<Failure>> {
        Ok(AgentTemplates {
            items: templates::all(),
            next_cursor: None,
        })
    }
}
