//! One question outside of sessions, and one message in a session.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;
use tg_clients::operations::{Chunks, Handle, Refused};
use tg_mesh::{Cx, warn_of};
use tg_schemas::operations::{
    CancelTurn, CancelledTurn, Chat, Empty, Failure, Question, SendMessage, SentMessage,
    TurnResult, WhenBusy,
};
use tg_schemas::{Error, ErrorCode};
use tokio::time::Instant;

use super::Agents;
use super::asking::{Asking, Events, Hearing, flow_of};
use super::conversations::collections;
use super::retrieving::passages;
use super::sessions::{Wanted, message};
use super::streaming::streamed;
use super::summing::may_be_asked;
use super::work::{Work, result, turn_result};
use super::workspace_agents::body;
use crate::engine::definition::Definition;
use crate::engine::request;
use crate::engine::transcript::framing;
use crate::engine::workspace_agent::{self, Usual};
use crate::error::SessionsError;
use crate::store::{AgentStore, Finished, SessionStore};
use crate::trail::{ModelCall, Who};

#[async_trait]
impl Handle<Chat> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        asked: Question,
        out: &mut Chunks<'_, Chat>,
    ) -> Result<TurnResult, Refused<Failure>> {
        let done = match asked.streaming {
            true => {
                let heard = |events| Hearing {
                    events: Some(events),
                    ..Hearing::whole()
                };
                streamed(out, |events| self.chatted(cx, asked, heard(events))).await
            }
            false => self.chatted(cx, asked, Hearing::whole()).await,
        };
        Ok(done?)
    }
}

impl Agents {
    /// The agent of a file with a name, else the agent of the workspace with this id; and what that is told before the first
    /// message.
    pub(super) async fn either(
        &self,
        cx: &Cx,
        name: &str,
    ) -> Result<(Arc<Definition>, Option<String>), SessionsError> {
        if let Ok(agent) = self.agent(name) {
            return Ok((agent.clone(), None));
        }
        let store = self.store.get().await?;
        let id = name.to_lowercase();
        let found = store.agent(cx.workspace_key().as_str(), &id).await?;
        drop(store);
        let like = body(&found.ok_or(SessionsError::NoAgent)?)?;
        let opening = like.user_prompt.clone();
        let service = like.llm_service_id.clone();
        let reranking = like.reranking_service_id.clone();
        let usual = Usual {
            own: &[],
            all: collections(cx),
            chat: &self.chat,
        };
        let agent = workspace_agent::definition(like, usual);
        let agent = self.reranked_by(cx, agent, reranking.as_deref()).await?;
        let agent = self.bound(cx, agent, service.as_deref()).await?;
        Ok((Arc::new(agent), opening))
    }

    async fn chatted(
        &self,
        cx: &Cx,
        asked: Question,
        hearing: Hearing,
    ) -> Result<TurnResult, SessionsError> {
        request::optional_user(&asked.user_id)?;
        let (agent, opening) = self.either(cx, &asked.name).await?;
        let agent = &*agent;
        let question = request::question(asked.message.as_deref(), asked.prompt.as_deref())?;
        let past = request::earlier(&asked.earlier)?;
        request::depth(asked.caller_depth)?;
        request::parent(&asked.parent_request_id)?;
        may_be_asked(cx, agent)?;
        // It has a place among the turns of the workspace, and waits for no other one.
        let lane = format!("chat {}", cx.id);
        let key = cx.workspace_key();
        let turns = &self.turns;
        let turn = turns.enter(key, &lane, WhenBusy::Queue, asked.caller_depth);
        let _turn = turn.await?;
        let settings = self.tenant(cx).await?.effective;
        let usual = settings.agent_flow.as_deref().unwrap_or_default();
        let flow = flow_of(&self.flows, cx, agent, usual)?;
        let found = passages(cx, (&self.flows, &flow), agent, question).await;
        let opened = match opening.filter(|_| past.is_empty()) {
            Some(opening) => format!("{opening}\n\n{question}"),
            None => question.to_owned(),
        };
        let asking = Asking {
            agent,
            question: &opened,
            framing: framing(agent, &found.shown, &past),
            session: "",
            window: "[]",
            flow,
            depth: asked.caller_depth,
        };
        let started = Instant::now();
        let mut made = Vec::new();
        let answered = asking.ask(cx, &hearing, &mut made).await;
        let done = answered.map(|answered| result(cx, &agent.name, None, answered));
        let who = Who {
            surface: "a1",
            agent: agent.name.clone(),
            user: asked.user_id.trim().to_owned(),
            session: None,
            depth: asked.caller_depth,
            parent: asked.parent_request_id.clone(),
            stream: hearing.events.is_some(),
        };
        let took = i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX);
        let ended = done.as_ref().map_err(SessionsError::code);
        let made = made.into_iter();
        let made: Vec<_> = made
            .map(|call| ModelCall::of_agent(who.surface, call))
            .collect();
        self.trail.turn(cx, &who, &made, ended, took).await;
        done
    }
}

#[async_trait]
impl Handle<SendMessage> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        asked: SentMessage,
        out: &mut Chunks<'_, SendMessage>,
    ) -> Result<TurnResult, Refused<Failure>> {
        let started = asked.starts;
        let started = started.then(|| (asked.user_id.clone(), asked.session_id.clone()));
        let done = match asked.streaming {
            true => streamed(out, |events| self.sent(cx, asked, Some(events))).await,
            false => self.sent(cx, asked, None).await,
        };
        if let (Err(_), Some((user, session))) = (&done, &started)
            && let Err(error) = self.unmade(cx, user, session).await
        {
            warn_of!(cx, session, ?error, "an empty session stays");
        }
        Ok(done?)
    }
}

#[async_trait]
impl Handle<CancelTurn> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        asked: CancelledTurn,
        _: &mut Chunks<'_, CancelTurn>,
    ) -> Result<Empty, Refused<Failure>> {
        let wanted = Wanted {
            agent: &asked.name,
            user: &asked.user_id,
            id: &asked.session_id,
        };
        let session = self.session(cx, &wanted).await?;
        // `?message_id=` names no message.
        let message = asked.message_id.as_deref().filter(|id| !id.is_empty());
        self.turns.cancel(&cx.workspace_key(), &session.id, message);
        Ok(Empty {})
    }
}

impl Agents {
    /// Deletes a session that was made for a message that was refused. It stays where another request said something in it.
    async fn unmade(&self, cx: &Cx, user: &str, id: &str) -> Result<(), SessionsError> {
        let wanted = Wanted {
            agent: "",
            user,
            id,
        };
        let session = match self.session(cx, &wanted).await {
            Err(SessionsError::NoSession) => return Ok(()),
            found => found?,
        };
        let store = self.store.get().await?;
        let key = cx.workspace_key();
        store.delete_empty(key.as_str(), &session.id).await?;
        Ok(())
    }

    async fn sent(
        &self,
        cx: &Cx,
        asked: SentMessage,
        events: Option<Events>,
    ) -> Result<TurnResult, SessionsError> {
        let wanted = Wanted {
            agent: &asked.name,
            user: &asked.user_id,
            id: &asked.session_id,
        };
        let (session, settings) = self.session_and_settings(cx, &wanted).await?;
        let text = request::message("message", &asked.message)?;
        request::depth(asked.caller_depth)?;
        request::parent(&asked.parent_request_id)?;
        let agent = self.agent(&asked.name)?;
        may_be_asked(cx, agent)?;
        let work = Work {
            agent: agent.clone(),
            store: self.store.clone(),
            turns: self.turns.clone(),
            pasts: self.pasts.clone(),
            flows: self.flows.clone(),
            settings,
            session: session.id,
            text: text.to_owned(),
            opening: None,
            when_busy: asked.when_busy,
            follows: asked.follows.filter(|id| !id.is_empty()),
            repeats: asked.repeats,
            keeps_failure: false,
            calls: usize::MAX,
            events,
            shows: |_, _, one| json!(message(one)),
            ends_with_reader: false,
            rate: self.rate,
            trail: self.trail.clone(),
            who: Who {
                surface: "a1",
                agent: asked.name.clone(),
                user: session.owner.user,
                session: Some(asked.session_id.clone()),
                depth: asked.caller_depth,
                parent: asked.parent_request_id.clone(),
                stream: asked.streaming,
            },
        };
        let (_, _, finished) = work.run(cx).await?;
        answered(finished)
    }
}

/// What a turn was answered that is kept.
fn answered(finished: Finished) -> Result<TurnResult, SessionsError> {
    let told = turn_result(&finished.result).ok_or_else(|| {
        let text = "the answer that is kept cannot be read";
        Error::new(ErrorCode::Storage, text)
    })?;
    Ok(TurnResult {
        content: finished.message.content,
        ..told
    })
}
