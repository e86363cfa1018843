//! Turns: one question outside of sessions, and one message in a session. A turn goes on when its caller is gone.

use std::sync::Arc;

use async_trait::async_trait;
use tg_clients::operations::{Chunks, Handle, Refused};
use tg_mesh::{Cx, LeasedStore, TaskKind, clock};
use tg_schemas::operations::{
    Chat, Failure, Question, SendMessage, SentMessage, TurnResult, WhenBusy,
};
use tg_schemas::{Error, ErrorCode};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::Agents;
use super::asking::{Answered, Asking};
use super::sessions::Wanted;
use crate::engine::definition::Definition;
use crate::engine::request;
use crate::engine::transcript::{Said, TOLD, framing};
use crate::error::SessionsError;
use crate::store::{self, Asked, Finished, Message, Role, SessionStore};
use crate::turns::Turns;

/// What a client is answered, of what an agent answered.
fn result(cx: &Cx, agent: &str, session: Option<String>, answered: Answered) -> TurnResult {
    TurnResult {
        request_id: cx.request().unwrap_or(&cx.id).to_owned(),
        agent: agent.to_owned(),
        session_id: session,
        model: answered.model,
        content: answered.content,
        finish_reason: answered.finish_reason,
        stopped: answered.stopped,
        tool_calls: answered.tool_calls,
        usage: answered.usage,
        cost: answered.cost,
        compacted: None,
    }
}

#[async_trait]
impl Handle<Chat> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        asked: Question,
        _: &mut Chunks<'_, Chat>,
    ) -> Result<TurnResult, Refused<Failure>> {
        request::optional_user(&asked.user_id).map_err(SessionsError::from)?;
        let agent = self.agent(&asked.name)?;
        let question = request::question(asked.message.as_deref(), asked.prompt.as_deref());
        let question = question.map_err(SessionsError::from)?;
        request::depth(asked.caller_depth).map_err(SessionsError::from)?;
        let asking = Asking {
            agent,
            question,
            framing: framing(agent, &[]),
            session: "",
            window: "[]",
        };
        let answered = asking.ask(cx).await?;
        Ok(result(cx, &agent.name, None, answered))
    }
}

#[async_trait]
impl Handle<SendMessage> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        asked: SentMessage,
        _: &mut Chunks<'_, SendMessage>,
    ) -> Result<TurnResult, Refused<Failure>> {
        let wanted = Wanted {
            agent: &asked.name,
            user: &asked.user_id,
            id: &asked.session_id,
        };
        let session = self.session(cx, &wanted).await?;
        let text = request::message("message", &asked.message).map_err(SessionsError::from)?;
        request::depth(asked.caller_depth).map_err(SessionsError::from)?;
        let work = Work {
            agent: self.agent(&asked.name)?.clone(),
            store: self.store.clone(),
            turns: self.turns.clone(),
            session: session.id,
            text: text.to_owned(),
            opening: None,
            when_busy: asked.when_busy,
            keeps_failure: false,
        };
        let (_, finished) = work.run(cx).await?;
        Ok(answered(finished)?)
    }
}

/// A turn of a session or of a conversation.
pub(super) struct Work {
    /// Who answers.
    pub(super) agent: Arc<Definition>,
    /// Not held while the agent works: it may have to go to another process meanwhile.
    pub(super) store: Arc<LeasedStore<store::SqliteSessions>>,
    /// In which order.
    pub(super) turns: Arc<Turns>,
    /// Id of the session.
    pub(super) session: String,
    /// What the user says.
    pub(super) text: String,
    /// What the agent is told before the first message of the session.
    pub(super) opening: Option<String>,
    /// What happens while another turn is in progress.
    pub(super) when_busy: WhenBusy,
    /// Whether an agent that fails is kept as an answer.
    pub(super) keeps_failure: bool,
}

impl Work {
    /// Runs the turn beside its caller: it goes on when the caller is gone. Returns its number with its answer.
    pub(super) async fn run(self, cx: &Cx) -> Result<(i64, Finished), SessionsError> {
        let mut own = cx.outliving();
        own.cancel = cx.mesh.shutdown().child_token();
        let (tell, told) = oneshot::channel();
        cx.mesh.spawn(TaskKind::Handler, async move {
            // The caller may have gone: what was answered is kept all the same.
            let _ = tell.send(self.done(&own).await);
        });
        told.await.map_err(|_| {
            let text = "the turn was not finished";
            SessionsError::from(Error::new(ErrorCode::Interrupted, text))
        })?
    }

    /// Waits for its turn, keeps the message, asks the agent, and keeps its answer. A request that comes again goes on where it
    /// stands.
    async fn done(self, cx: &Cx) -> Result<(i64, Finished), SessionsError> {
        let key = cx.workspace_key();
        let (workspace, session) = (key.as_str(), self.session.as_str());
        let turn = self.turns.enter(key.clone(), session, self.when_busy);
        let _turn = turn.await?;
        // Whoever waited finds the session as the turn before left it.
        let store = self.store.get().await?;
        let kept = store.session(workspace, session).await?;
        let kept = kept.ok_or(SessionsError::NoSession)?;
        if kept.archived.is_some() {
            let gone = kept.successor.map(SessionsError::Archived);
            return Err(gone.unwrap_or(SessionsError::Gone));
        }
        let asked = Asked {
            request: cx.id.to_string(),
            id: Uuid::new_v4().to_string(),
            content: self.text.clone(),
            at: clock::millis(),
        };
        let began = store.begin(workspace, session, asked).await?;
        let began = began.ok_or(SessionsError::NoSession)?;
        if let Some(finished) = began.finished {
            return Ok((began.turn, finished));
        }
        let past = store.past(workspace, session, began.turn, TOLD).await?;
        let past: Vec<Said<'_>> = past.iter().filter_map(said).collect();
        let question = match self.opening.as_deref().filter(|_| began.turn == 1) {
            Some(opening) => format!("{opening}\n\n{}", self.text),
            None => self.text.clone(),
        };
        let asking = Asking {
            agent: &self.agent,
            question: &question,
            framing: framing(&self.agent, &past),
            session,
            window: &kept.loop_window,
        };
        drop(store);
        let heard = match asking.ask(cx).await {
            Err(SessionsError::Unanswered(_)) if self.keeps_failure => Answered {
                content: "The agent could not answer. Please try again.".to_owned(),
                finish_reason: FAILED.to_owned(),
                ..Answered::default()
            },
            heard => heard?,
        };
        let window = serde_json::to_string(&heard.window).unwrap_or_default();
        let mut told = result(cx, &self.agent.name, Some(session.to_owned()), heard);
        let content = std::mem::take(&mut told.content);
        let answer = store::Answer {
            id: Uuid::new_v4().to_string(),
            content,
            usage: told.usage,
            // The text stands in the message.
            result: serde_json::to_string(&told).unwrap_or_default(),
            loop_window: window,
            at: clock::millis(),
        };
        let store = self.store.get().await?;
        let finished = store.finish(workspace, session, began.turn, answer);
        let finished = finished.await?.ok_or(SessionsError::NoSession)?;
        Ok((began.turn, finished))
    }
}

/// How a turn ends whose agent failed.
const FAILED: &str = "error";

/// What an agent is told of a message; nothing of one that only says that the agent failed.
fn said(message: &Message) -> Option<Said<'_>> {
    let by_user = message.role == Role::User;
    let of_dialog = by_user || message.role == Role::Agent;
    let failed = message.result.as_deref().and_then(turn_result);
    let failed = failed.is_some_and(|told| told.finish_reason == FAILED);
    (of_dialog && !failed).then_some(Said {
        by_user,
        text: &message.content,
    })
}

/// What a turn was answered, without its text.
pub(super) fn turn_result(kept: &str) -> Option<TurnResult> {
    serde_json::from_slice(kept.as_bytes()).ok()
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
