//! Conversations with agents of the workspace. They belong to nobody in particular, keep their id, and hide nothing but what tools
//! said.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;
use tg_clients::operations::{Chunks, Handle, Refused};
use tg_mesh::{Cx, clock};
use tg_schemas::limits;
use tg_schemas::operations::{
    ChatMessage, ChatMessages, CompactStrategy, Conversation, ConversationChange, Conversations,
    CreateConversation, DeleteConversation, Empty, Exchange, Failure, GetConversation,
    ListConversationMessages, ListConversations, NewConversation, OneConversation,
    SendConversationMessage, SentContent, TenantSettings, UpdateConversation, WhenBusy, WhichPage,
};

use super::Agents;
use super::asking::{Events, flow_of};
use super::sessions::own_id;
use super::streaming::streamed;
use super::summing::may_be_asked;
use super::work::{Work, turn_result};
use super::workspace_agents::body;
use crate::engine::cursor::{self, Key};
use crate::engine::{request, workspace_agent};
use crate::error::SessionsError;
use crate::store::{Agent, Message, NewSession, Owner, Role, Session, SessionStore, Span, Surface};
use crate::trail::Who;

/// Calls of tools in one turn.
const CALLS: usize = 6;
/// Config type of collections.
const COLLECTION: &str = "collection";

/// A conversation as clients read it.
pub(super) fn shown(cx: &Cx, session: Session) -> Conversation {
    Conversation {
        workspace_id: cx.workspace().to_owned(),
        agent_id: session.owner.agent,
        conversation_id: session.id,
        title: session.title,
        knowledge_base_ids: session.knowledge,
        created_at: clock::rfc3339_of(session.created),
    }
}

/// Whether a message is shown: calls of tools and what these returned are not.
pub(super) fn is_listed(message: &Message) -> bool {
    message.role != Role::Tool && message.tool_calls.is_empty()
}

/// A message as clients read it.
pub(super) fn message(cx: &Cx, conversation: &str, message: Message) -> ChatMessage {
    let told = message.result.as_deref().and_then(turn_result);
    let metadata = told.map_or_else(BTreeMap::new, |told| {
        let json = |value: Result<String, _>| value.unwrap_or_default();
        let fault = told.error_message.clone().unwrap_or_default();
        let (chunks, ids) = match told.context_chunks.as_slice() {
            [] => (String::new(), String::new()),
            all => {
                let ids: Vec<&str> = all
                    .iter()
                    .filter_map(|one| Some(one.first()?.as_str()))
                    .collect();
                (json(serde_json::to_string(all)), ids.join(","))
            }
        };
        [
            ("error_message", fault),
            ("context_chunks", chunks),
            ("context_document_ids", ids),
            ("model", told.model.clone()),
            ("finish_reason", told.finish_reason.clone()),
            ("explain_session", told.explain_session.clone()),
            ("usage", json(serde_json::to_string(&told.usage))),
            ("cost", json(serde_json::to_string(&told.cost))),
        ]
        .into_iter()
        .filter(|(_, text)| !text.is_empty())
        .map(|(key, text)| (key.to_owned(), text))
        .collect()
    });
    ChatMessage {
        workspace_id: cx.workspace().to_owned(),
        conversation_id: conversation.to_owned(),
        message_id: message.id,
        message_ts: clock::rfc3339_of(message.at),
        role: message.role.as_str().to_owned(),
        content: Some(message.content),
        token_count: message.usage.map(|used| used.output),
        metadata,
    }
}

/// The collections of the workspace.
pub(super) fn collections(cx: &Cx) -> Vec<String> {
    let rows = cx.config().values(cx.workspace(), COLLECTION);
    rows.keys().cloned().collect()
}

/// Whose conversations are meant: those with an agent.
fn owner(agent: &Agent) -> Owner {
    Owner {
        surface: Surface::Conversation,
        agent: agent.id.clone(),
        user: String::new(),
    }
}

/// What was found, if it is a conversation with the agent.
fn own(found: Option<Session>, agent: &Agent) -> Result<Session, SessionsError> {
    let own = found.filter(|one| one.owner == owner(agent));
    own.ok_or(SessionsError::NoConversation)
}

impl Agents {
    /// An agent of the workspace, and a conversation with it.
    pub(super) async fn conversation(
        &self,
        cx: &Cx,
        agent: &str,
        id: &str,
    ) -> Result<(Agent, Session), SessionsError> {
        let agent = self.kept(cx, agent).await?;
        let id = workspace_agent::id("conversation_id", id)?.to_lowercase();
        let store = self.store.get().await?;
        let found = store.session(cx.workspace_key().as_str(), &id).await?;
        let found = own(found, &agent)?;
        Ok((agent, found))
    }

    /// The same, with the settings that count in the workspace.
    async fn conversation_and_settings(
        &self,
        cx: &Cx,
        agent: &str,
        id: &str,
    ) -> Result<(Agent, Session, TenantSettings), SessionsError> {
        let agent = self.kept(cx, agent).await?;
        let id = workspace_agent::id("conversation_id", id)?.to_lowercase();
        let (settings, found) = self.settings_and_session(cx, &id).await?;
        let found = own(found, &agent)?;
        Ok((agent, found, settings))
    }

    async fn begin(&self, cx: &Cx, asked: NewConversation) -> Result<Conversation, SessionsError> {
        let agent = self.kept(cx, &asked.agent_id).await?;
        request::title(asked.title.as_deref())?;
        let id = match &asked.conversation_id {
            Some(id) => workspace_agent::id("conversationId", id)?.to_lowercase(),
            None => own_id(cx),
        };
        let knowledge = workspace_agent::collections(asked.knowledge_base_ids)?;
        let new = NewSession {
            id,
            owner: owner(&agent),
            title: asked.title,
            knowledge,
            // Conversations are summed up in place.
            strategy: CompactStrategy::Auto,
            keep: 0,
            mask: true,
            request: cx.id.to_string(),
            at: clock::millis(),
        };
        let store = self.store.get().await?;
        let made = store.create(cx.workspace_key().as_str(), new).await?;
        // A request that comes again finds the conversation that it made.
        let is_own = made.request.as_deref() == Some(&*cx.id);
        match is_own && made.owner == owner(&agent) {
            true => Ok(shown(cx, made)),
            false => Err(SessionsError::Taken),
        }
    }

    async fn renamed(
        &self,
        cx: &Cx,
        change: ConversationChange,
    ) -> Result<Conversation, SessionsError> {
        let key = cx.workspace_key();
        let (agent, id) = (&change.agent_id, &change.conversation_id);
        let (_, known) = self.conversation(cx, agent, id).await?;
        let _alone = self.turns.alone(key.clone(), &known.id).await?;
        let (_, known) = self.conversation(cx, agent, id).await?;
        let title = change.title.unwrap_or(known.title);
        request::title(title.as_deref())?;
        let knowledge = match change.knowledge_base_ids {
            Some(ids) => workspace_agent::collections(ids)?,
            None => known.knowledge,
        };
        let store = self.store.get().await?;
        let done = store.rename(key.as_str(), &known.id, title, knowledge);
        let done = done.await?.ok_or(SessionsError::NoConversation)?;
        Ok(shown(cx, done))
    }

    async fn conversations(
        &self,
        cx: &Cx,
        asked: &WhichPage,
    ) -> Result<Conversations, SessionsError> {
        let agent = self.kept(cx, &asked.agent_id).await?;
        let most = request::limit(asked.limit)?;
        let after = request::after_session(asked.cursor.as_deref())?;
        let store = self.store.get().await?;
        let key = cx.workspace_key();
        let found = store.sessions(key.as_str(), owner(&agent), after, most + 1);
        let mut found = found.await?;
        let more = found.len() > most;
        found.truncate(most);
        let last = found.last().filter(|_| more).map(|last| Key {
            created: last.created,
            id: last.id.clone(),
        });
        Ok(Conversations {
            items: found.into_iter().map(|one| shown(cx, one)).collect(),
            next_cursor: last.as_ref().map(cursor::of_session),
        })
    }

    async fn chat_messages(
        &self,
        cx: &Cx,
        asked: &WhichPage,
    ) -> Result<ChatMessages, SessionsError> {
        let (agent, id) = (&asked.agent_id, &asked.conversation_id);
        let (_, known) = self.conversation(cx, agent, id).await?;
        let most = request::limit(asked.limit)?;
        let after = request::after_message(asked.cursor.as_deref())?;
        let store = self.store.get().await?;
        let key = cx.workspace_key();
        let span = Span {
            after,
            live: false,
            plain: true,
            most,
            bytes: limits::PAGE_BYTES,
        };
        let found = store.messages(key.as_str(), &known.id, span).await?;
        let last = found.items.last().filter(|_| found.more);
        let last = last.map(|last| last.seq);
        let told = found.items.into_iter();
        Ok(ChatMessages {
            items: told.map(|one| message(cx, &known.id, one)).collect(),
            next_cursor: last.map(cursor::of_message),
        })
    }

    async fn exchange(
        &self,
        cx: &Cx,
        asked: SentContent,
        events: Option<Events>,
    ) -> Result<Exchange, SessionsError> {
        let (agent, id) = (&asked.agent_id, &asked.conversation_id);
        let found = self.conversation_and_settings(cx, agent, id).await?;
        let (agent, known, settings) = found;
        let text = request::message("content", &asked.content)?.to_owned();
        request::depth(asked.caller_depth)?;
        request::parent(&asked.parent_request_id)?;
        let like = body(&agent)?;
        let opening = like.user_prompt.clone();
        let service = like.llm_service_id.clone();
        let reranking = like.reranking_service_id.clone();
        let usual = workspace_agent::Usual {
            own: &known.knowledge,
            all: collections(cx),
            chat: &self.chat,
        };
        let agent = workspace_agent::definition(like, usual);
        let agent = self.reranked_by(cx, agent, reranking.as_deref()).await?;
        let agent = Arc::new(self.bound(cx, agent, service.as_deref()).await?);
        may_be_asked(cx, &agent)?;
        let usual = settings.agent_flow.as_deref().unwrap_or_default();
        flow_of(&self.flows, cx, &agent, usual).map_err(|_| SessionsError::NoChat)?;
        let stream = events.is_some();
        let work = Work {
            agent,
            store: self.store.clone(),
            turns: self.turns.clone(),
            pasts: self.pasts.clone(),
            flows: self.flows.clone(),
            settings,
            session: known.id.clone(),
            text,
            opening,
            when_busy: WhenBusy::Queue,
            follows: None,
            repeats: false,
            keeps_failure: true,
            calls: CALLS,
            ends_with_reader: stream,
            events,
            shows: |cx, id, one| json!(message(cx, id, one)),
            rate: self.rate,
            trail: self.trail.clone(),
            who: Who {
                surface: "ws",
                agent: asked.agent_id.clone(),
                session: Some(known.id.clone()),
                depth: asked.caller_depth,
                parent: asked.parent_request_id.clone(),
                stream,
                ..Who::default()
            },
        };
        let (_, user, finished) = work.run(cx).await?;
        Ok(Exchange {
            user: message(cx, &known.id, user),
            assistant: message(cx, &known.id, finished.message),
        })
    }
}

#[async_trait]
impl Handle<ListConversations> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        asked: WhichPage,
        _: &mut Chunks<'_, ListConversations>,
    ) -> Result<Conversations, Refused<Failure>> {
        Ok(self.conversations(cx, &asked).await?)
    }
}

#[async_trait]
impl Handle<CreateConversation> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        asked: NewConversation,
        _: &mut Chunks<'_, CreateConversation>,
    ) -> Result<Conversation, Refused<Failure>> {
        Ok(self.begin(cx, asked).await?)
    }
}

#[async_trait]
impl Handle<GetConversation> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        asked: OneConversation,
        _: &mut Chunks<'_, GetConversation>,
    ) -> Result<Conversation, Refused<Failure>> {
        let (agent, id) = (&asked.agent_id, &asked.conversation_id);
        let (_, found) = self.conversation(cx, agent, id).await?;
        Ok(shown(cx, found))
    }
}

#[async_trait]
impl Handle<UpdateConversation> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        change: ConversationChange,
        _: &mut Chunks<'_, UpdateConversation>,
    ) -> Result<Conversation, Refused<Failure>> {
        Ok(self.renamed(cx, change).await?)
    }
}

#[async_trait]
impl Handle<DeleteConversation> for Agents {
    /// Waits for a turn in progress: its answer would be kept for nobody.
    async fn handle(
        &self,
        cx: &Cx,
        asked: OneConversation,
        _: &mut Chunks<'_, DeleteConversation>,
    ) -> Result<Empty, Refused<Failure>> {
        let (agent, id) = (&asked.agent_id, &asked.conversation_id);
        if self.is_done(cx, &id.to_lowercase()).await? {
            return Ok(Empty {});
        }
        let (_, found) = self.conversation(cx, agent, id).await?;
        let key = cx.workspace_key();
        let _alone = self.turns.alone(key.clone(), &found.id).await?;
        let store = self.store.get().await.map_err(SessionsError::from)?;
        let gone = store.delete(key.as_str(), &found.id, &cx.id).await;
        self.pasts.forget(&key, &found.id).await;
        match gone.map_err(SessionsError::from)? {
            true => Ok(Empty {}),
            false => Err(SessionsError::NoConversation.into()),
        }
    }
}

#[async_trait]
impl Handle<ListConversationMessages> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        asked: WhichPage,
        _: &mut Chunks<'_, ListConversationMessages>,
    ) -> Result<ChatMessages, Refused<Failure>> {
        Ok(self.chat_messages(cx, &asked).await?)
    }
}

#[async_trait]
impl Handle<SendConversationMessage> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        asked: SentContent,
        out: &mut Chunks<'_, SendConversationMessage>,
    ) -> Result<Exchange, Refused<Failure>> {
        let done = match asked.streaming {
            true => streamed(out, |events| self.exchange(cx, asked, Some(events))).await,
            false => self.exchange(cx, asked, None).await,
        };
        Ok(done?)
    }
}
