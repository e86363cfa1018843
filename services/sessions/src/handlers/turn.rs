//! Turns: one question outside of sessions, and one message in a session. A turn goes on when its caller is gone.

use std::sync::Arc;

use async_trait::async_trait;
use tg_clients::operations::{Chunks, Handle, Refused};
use tg_mesh::{Cx, LeasedStore, TaskKind, clock};
use tg_schemas::operations::{Chat, Failure, Question, SendMessage, SentMessage, TurnResult};
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
use crate::store::{self, Asked, Finished, Role, SessionStore};
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
            when_busy: asked.when_busy,
        };
        let mut own = cx.outliving();
        own.cancel = cx.mesh.shutdown().child_token();
        let (tell, told) = oneshot::channel();
        cx.mesh.spawn(TaskKind::Handler, async move {
            // The caller may have gone: what was answered is kept all the same.
            let _ = tell.send(work.done(&own).await);
        });
        let told = told.await.map_err(|_| {
            let text = "the turn was not finished";
            SessionsError::from(Error::new(ErrorCode::Interrupted, text))
        })?;
        Ok(told?)
    }
}

/// A turn of a session.
struct Work {
    agent: Arc<Definition>,
    /// Not held while the agent works: it may have to go to another process meanwhile.
    store: Arc<LeasedStore<store::SqliteSessions>>,
    turns: Arc<Turns>,
    /// Id of the session.
    session: String,
    text: String,
    when_busy: WhenBusy,
}

impl Work {
    /// Waits for its turn, keeps the message, asks the agent, and keeps its answer. A request that comes again goes on where it
    /// stands.
    async fn done(self, cx: &Cx) -> Result<TurnResult, SessionsError> {
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
            return answered_before(finished);
        }
        let past = store.past(workspace, session, began.turn, TOLD).await?;
        let past: Vec<Said<'_>> = past
            .iter()
            .filter(|one| matches!(one.role, Role::User | Role::Agent))
            .map(|one| Said {
                by_user: one.role == Role::User,
                text: &one.content,
            })
            .collect();
        let asking = Asking {
            agent: &self.agent,
            question: &self.text,
            framing: framing(&self.agent, &past),
            session,
            window: &kept.loop_window,
        };
        drop(store);
        let answered = asking.ask(cx).await?;
        let window = serde_json::to_string(&answered.window).unwrap_or_default();
        let mut told = result(cx, &self.agent.name, Some(session.to_owned()), answered);
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
        answered_before(finished.await?.ok_or(SessionsError::NoSession)?)
    }
}

/// What a turn was answered that is kept.
fn answered_before(finished: Finished) -> Result<TurnResult, SessionsError> {
    let told = serde_json::from_slice::<TurnResult>(finished.result.as_bytes());
    let told = told.map_err(|_| {
        let text = "the answer that is kept cannot be read";
        Error::new(ErrorCode::Storage, text)
    })?;
    Ok(TurnResult {
        content: finished.message.content,
        ..told
    })
}
