//! Sessions of users with agents: created, listed, shown, read and deleted. Nobody learns of the sessions of others.

use async_trait::async_trait;
use tg_clients::operations::{Chunks, Handle, Refused};
use tg_mesh::{Cx, clock};
use tg_schemas::limits;
use tg_schemas::operations::{
    CreateSession, DeleteSession, Empty, Failure, GetSession, ListMessages, ListSessions,
    NewSession, OneSession, Session, SessionMessage, SessionMessages, Sessions, TenantSettings,
    WhichMessages, WhichSessions,
};

use super::Agents;
use crate::engine::cursor::{self, Key};
use crate::engine::definition::Definition;
use crate::engine::request;
use crate::error::SessionsError;
use crate::store::{self, Message, Owner, Role, SessionStore, Span, Surface};

/// The session that was found, if it belongs to the user, and to the agent.
fn own(
    found: Option<store::Session>,
    wanted: &Wanted<'_>,
    user: &str,
) -> Result<store::Session, SessionsError> {
    let own = |one: &store::Session| one.owner.surface == Surface::Named && one.owner.user == user;
    let found = found.filter(own).ok_or(SessionsError::NoSession)?;
    match wanted.agent.is_empty() || found.owner.agent == wanted.agent {
        true => Ok(found),
        false => Err(SessionsError::OtherAgent),
    }
}

/// Whose session is meant, and which one.
pub(super) struct Wanted<'a> {
    /// Name of the agent; empty: whichever it has.
    pub(super) agent: &'a str,
    /// The user.
    pub(super) user: &'a str,
    /// Id of the session.
    pub(super) id: &'a str,
}

impl Agents {
    /// A session of a user with an agent. One of another user is as if it were not there.
    ///
    /// # Errors
    /// There is no such agent or session, or the session belongs to another agent.
    pub(super) async fn session(
        &self,
        cx: &Cx,
        wanted: &Wanted<'_>,
    ) -> Result<store::Session, SessionsError> {
        let user = self.may_be_wanted(wanted)?;
        let workspace = cx.workspace_key();
        let store = self.store.get().await?;
        let found = store.session(workspace.as_str(), wanted.id).await?;
        own(found, wanted, user)
    }

    /// The same, with the settings that count in the workspace.
    ///
    /// # Errors
    /// As [`Self::session`].
    pub(super) async fn session_and_settings(
        &self,
        cx: &Cx,
        wanted: &Wanted<'_>,
    ) -> Result<(store::Session, TenantSettings), SessionsError> {
        let user = self.may_be_wanted(wanted)?;
        let (settings, found) = self.settings_and_session(cx, wanted.id).await?;
        Ok((own(found, wanted, user)?, settings))
    }

    /// The user who wants a session, and may: there is such an agent.
    fn may_be_wanted<'a>(&self, wanted: &Wanted<'a>) -> Result<&'a str, SessionsError> {
        let user = request::user(wanted.user)?;
        if !wanted.agent.is_empty() {
            self.agent(wanted.agent)?;
        }
        Ok(user)
    }

    /// Whether this request did its work on something already: it comes again where its answer was lost.
    ///
    /// # Errors
    /// The store failed.
    pub(super) async fn is_done(&self, cx: &Cx, id: &str) -> Result<bool, SessionsError> {
        let store = self.store.get().await?;
        let key = cx.workspace_key();
        Ok(store.is_done(key.as_str(), &cx.id, id).await?)
    }

    /// A session in which nothing was said gets another agent; any other stays as it is. It waits for a turn in progress, which
    /// may be about to keep its message.
    async fn given(
        &self,
        cx: &Cx,
        known: store::Session,
        to: Owner,
    ) -> Result<store::Session, SessionsError> {
        if known.messages > 0 || known.owner.user != to.user || known.owner.surface != to.surface {
            return Ok(known);
        }
        let key = cx.workspace_key();
        let _alone = self.turns.alone(key.clone(), &known.id).await?;
        let store = self.store.get().await?;
        let given = store.give(key.as_str(), &known.id, to).await?;
        Ok(given.unwrap_or(known))
    }
}

/// A session as clients read it.
pub(super) fn shown(session: store::Session, agent: &Definition) -> Session {
    Session {
        id: session.id,
        agent: session.owner.agent,
        user_id: session.owner.user,
        title: session.title,
        model: agent.model.clone(),
        message_count: session.messages,
        live_message_count: session.live,
        compact_strategy: session.strategy,
        compact_keep_last_n: session.keep,
        compact_observation_mask: session.mask,
        parent_session_id: session.parent,
        successor_session_id: session.successor,
        created_at: clock::rfc3339_of(session.created),
        updated_at: clock::rfc3339_of(session.updated),
        archived_at: session.archived.map(clock::rfc3339_of),
    }
}

/// A message as clients read it.
pub(super) fn message(message: Message) -> SessionMessage {
    let role = match message.role {
        Role::Agent => "assistant",
        other => other.as_str(),
    };
    SessionMessage {
        id: message.id,
        role: role.to_owned(),
        content: Some(message.content),
        created_at: clock::rfc3339_of(message.at),
        compacted_at: message.compacted.map(clock::rfc3339_of),
        synthetic: message.synthetic,
        tool_name: message.tool_name,
        tool_calls: Some(message.tool_calls).filter(|calls| !calls.is_empty()),
        usage: message.usage,
    }
}

#[async_trait]
impl Handle<CreateSession> for Agents {
    /// The request's id is the session's: a request that comes again finds the session that it made.
    async fn handle(
        &self,
        cx: &Cx,
        asked: NewSession,
        _: &mut Chunks<'_, CreateSession>,
    ) -> Result<Session, Refused<Failure>> {
        let user = request::user(&asked.user_id).map_err(SessionsError::from)?;
        let agent = self.agent(&asked.name)?;
        let usual = self.tenant(cx).await?.effective;
        let settings = request::settings(&asked, &usual).map_err(SessionsError::from)?;
        let named = request::session_id(asked.session_id.as_deref());
        let named = named.map_err(SessionsError::from)?;
        let owner = Owner {
            surface: Surface::Named,
            agent: asked.name.clone(),
            user: user.to_owned(),
        };
        let new = store::NewSession {
            id: named.unwrap_or_else(|| own_id(cx)),
            owner: owner.clone(),
            title: settings.title,
            knowledge: Vec::new(),
            strategy: settings.strategy,
            keep: settings.keep,
            mask: settings.mask,
            request: cx.id.to_string(),
            at: clock::millis(),
        };
        let store = self.store.get().await.map_err(SessionsError::from)?;
        let made = store.create(cx.workspace_key().as_str(), new).await;
        let mut made = made.map_err(SessionsError::from)?;
        drop(store);
        if asked.takes_empty && made.owner != owner {
            made = self.given(cx, made, owner.clone()).await?;
        }
        match made.owner == owner {
            true => Ok(shown(made, agent)),
            false => Err(SessionsError::SessionTaken.into()),
        }
    }
}

/// An id that a question which comes again has again.
pub(super) fn own_id(cx: &Cx) -> String {
    match uuid::Uuid::parse_str(&cx.id) {
        Ok(id) => id.hyphenated().to_string(),
        Err(_) => uuid::Uuid::new_v4().to_string(),
    }
}

#[async_trait]
impl Handle<ListSessions> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        asked: WhichSessions,
        _: &mut Chunks<'_, ListSessions>,
    ) -> Result<Sessions, Refused<Failure>> {
        let user = request::user(&asked.user_id).map_err(SessionsError::from)?;
        let agent = self.agent(&asked.name)?;
        let most = request::limit(asked.limit).map_err(SessionsError::from)?;
        let after = request::after_session(asked.cursor.as_deref());
        let after = after.map_err(SessionsError::from)?;
        let owner = Owner {
            surface: Surface::Named,
            agent: asked.name.clone(),
            user: user.to_owned(),
        };
        let store = self.store.get().await.map_err(SessionsError::from)?;
        let key = cx.workspace_key();
        let found = store.sessions(key.as_str(), owner, after, most + 1).await;
        let mut found = found.map_err(SessionsError::from)?;
        let more = found.len() > most;
        found.truncate(most);
        let last = found.last().filter(|_| more).map(|last| Key {
            created: last.created,
            id: last.id.clone(),
        });
        Ok(Sessions {
            sessions: found.into_iter().map(|one| shown(one, agent)).collect(),
            next_cursor: last.as_ref().map(cursor::of_session),
        })
    }
}

#[async_trait]
impl Handle<GetSession> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        asked: OneSession,
        _: &mut Chunks<'_, GetSession>,
    ) -> Result<Session, Refused<Failure>> {
        let found = self.session(cx, &wanted(&asked)).await?;
        let agent = self.agent(&found.owner.agent)?;
        Ok(shown(found, agent))
    }
}

pub(super) fn wanted(asked: &OneSession) -> Wanted<'_> {
    Wanted {
        agent: &asked.name,
        user: &asked.user_id,
        id: &asked.session_id,
    }
}

#[async_trait]
impl Handle<DeleteSession> for Agents {
    /// Waits for a turn in progress: its answer would be kept for nobody.
    async fn handle(
        &self,
        cx: &Cx,
        asked: OneSession,
        _: &mut Chunks<'_, DeleteSession>,
    ) -> Result<Empty, Refused<Failure>> {
        if self.is_done(cx, &asked.session_id).await? {
            return Ok(Empty {});
        }
        self.session(cx, &wanted(&asked)).await?;
        let key = cx.workspace_key();
        let alone = self.turns.alone(key.clone(), &asked.session_id);
        let _alone = alone.await?;
        let store = self.store.get().await.map_err(SessionsError::from)?;
        let gone = store.delete(key.as_str(), &asked.session_id, &cx.id).await;
        self.pasts.forget(&key, &asked.session_id).await;
        match gone.map_err(SessionsError::from)? {
            true => Ok(Empty {}),
            false => Err(SessionsError::NoSession.into()),
        }
    }
}

#[async_trait]
impl Handle<ListMessages> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        asked: WhichMessages,
        _: &mut Chunks<'_, ListMessages>,
    ) -> Result<SessionMessages, Refused<Failure>> {
        let most = request::limit(asked.limit).map_err(SessionsError::from)?;
        let after = request::after_message(asked.cursor.as_deref());
        let after = after.map_err(SessionsError::from)?;
        let newest = request::newest(asked.newest).map_err(SessionsError::from)?;
        let wanted = Wanted {
            agent: &asked.name,
            user: &asked.user_id,
            id: &asked.session_id,
        };
        let session = self.session(cx, &wanted).await?;
        if let Some(when_busy) = asked.when_busy {
            request::reading(when_busy).map_err(SessionsError::from)?;
            let key = cx.workspace_key();
            self.turns.settled(key, &session.id, when_busy).await?;
        }
        let store = self.store.get().await.map_err(SessionsError::from)?;
        let key = cx.workspace_key();
        if let Some(most) = newest {
            let found = store.newest(key.as_str(), &session.id, most, limits::SESSION_TEXTS);
            let found = found.await.map_err(SessionsError::from)?;
            return Ok(SessionMessages {
                session_id: session.id,
                messages: found.into_iter().map(message).collect(),
                next_cursor: None,
            });
        }
        let span = Span {
            after,
            live: asked.live,
            plain: false,
            most,
            bytes: limits::PAGE_BYTES,
        };
        let found = store.messages(key.as_str(), &session.id, span).await;
        let found = found.map_err(SessionsError::from)?;
        let last = found.items.last().filter(|_| found.more);
        let last = last.map(|last| last.seq);
        Ok(SessionMessages {
            session_id: session.id,
            messages: found.items.into_iter().map(message).collect(),
            next_cursor: last.map(cursor::of_message),
        })
    }
}
