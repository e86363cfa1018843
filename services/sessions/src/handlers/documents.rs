//! Sessions as documents: written out, and taken in.

use async_trait::async_trait;
use tg_clients::operations::{Chunks, Handle, Refused};
use tg_mesh::{Cx, clock};
use tg_schemas::limits;
use tg_schemas::operations::{
    ExportSession, FORM, Failure, FailureCode, ImportSession, ImportedSession, NewSession,
    OneSession, Session, SessionDocument, SessionMessage,
};
use uuid::Uuid;

use super::Agents;
use super::sessions::{message, own_id, shown, wanted};
use crate::engine::request;
use crate::error::SessionsError;
use crate::store::{self, LineageStore, Message, Owner, Role, SessionStore, Span, Surface};

/// Most messages of a document.
const MOST: usize = 10_000;

fn invalid(field: &str, reason: &str) -> SessionsError {
    SessionsError::Invalid(Failure::invalid(field, reason))
}

/// A message of a document. It gets an id and a time of its own.
fn taken(told: SessionMessage, at: i64) -> Result<Message, SessionsError> {
    let role = match told.role.as_str() {
        "assistant" => Some(Role::Agent),
        other => Role::parse(other),
    };
    let content = told.content.unwrap_or_default();
    if content.len() > limits::AGENT_REPLY {
        return Err(invalid("document.messages", "has a text that is too long"));
    }
    Ok(Message {
        seq: 0,
        id: Uuid::new_v4().to_string(),
        at,
        role: role.ok_or_else(|| invalid("document.messages", "has a role that is not known"))?,
        content,
        tool_name: told.tool_name,
        tool_calls: told.tool_calls.unwrap_or_default(),
        usage: told.usage,
        synthetic: told.synthetic,
        compacted: None,
        result: None,
    })
}

impl Agents {
    async fn export(&self, cx: &Cx, asked: &OneSession) -> Result<SessionDocument, SessionsError> {
        let session = self.session(cx, &wanted(asked)).await?;
        let store = self.store.get().await?;
        let key = cx.workspace_key();
        let span = Span {
            after: 0,
            live: false,
            plain: false,
            most: MOST,
            bytes: limits::SESSION_TEXTS,
        };
        let said = store.messages(key.as_str(), &session.id, span).await?;
        if said.more {
            let text = "session_id: the session has more than 10,000 messages or 8 MiB of text, which one document cannot hold; \
                        read it in pages";
            let failure = Failure::new(FailureCode::PayloadTooLarge, text);
            return Err(SessionsError::Invalid(failure));
        }
        Ok(SessionDocument {
            form: FORM.to_owned(),
            session: shown(session, self.agent(&asked.name)?),
            messages: said.items.into_iter().map(message).collect(),
        })
    }

    /// The request's id is the session's: a request that comes again finds the session that it made.
    async fn taken_in(&self, cx: &Cx, asked: ImportedSession) -> Result<Session, SessionsError> {
        let user = request::user(&asked.user_id)?;
        let agent = self.agent(&asked.name)?;
        let document = asked.document;
        if document.form != FORM {
            return Err(invalid("document.form", "must be threadgraph-session-1"));
        }
        if document.messages.len() > MOST {
            return Err(invalid(
                "document.messages",
                "must have at most 10,000 entries",
            ));
        }
        let old = document.session;
        let like = NewSession {
            title: old.title,
            compact_strategy: Some(old.compact_strategy),
            compact_keep_last_n: Some(old.compact_keep_last_n),
            compact_observation_mask: Some(old.compact_observation_mask),
            ..NewSession::default()
        };
        let settings = request::settings(&like, &self.tenant(cx).await?.effective)?;
        let now = clock::millis();
        let told = document.messages.into_iter();
        let messages: Vec<Message> = told.map(|one| taken(one, now)).collect::<Result<_, _>>()?;
        let new = store::NewSession {
            id: own_id(cx),
            owner: Owner {
                surface: Surface::Named,
                agent: asked.name.clone(),
                user: user.to_owned(),
            },
            title: settings.title,
            knowledge: Vec::new(),
            strategy: settings.strategy,
            keep: settings.keep,
            mask: settings.mask,
            request: cx.id.to_string(),
            at: now,
        };
        let store = self.store.get().await?;
        let key = cx.workspace_key();
        let made = store.import(key.as_str(), new, messages).await?;
        Ok(shown(made, agent))
    }
}

#[async_trait]
impl Handle<ExportSession> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        asked: OneSession,
        _: &mut Chunks<'_, ExportSession>,
    ) -> Result<SessionDocument, Refused<Failure>> {
        Ok(self.export(cx, &asked).await?)
    }
}

#[async_trait]
impl Handle<ImportSession> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        asked: ImportedSession,
        _: &mut Chunks<'_, ImportSession>,
    ) -> Result<Session, Refused<Failure>> {
        Ok(self.taken_in(cx, asked).await?)
    }
}
