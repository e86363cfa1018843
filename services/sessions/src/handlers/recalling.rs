//! What is remembered of users across sessions: found in what they say, sent to the agent, listed and forgotten.

use std::sync::Arc;

use async_trait::async_trait;
use tg_clients::flow_records::ReadyFlows;
use tg_clients::operations::{Chunks, Handle, Refused};
use tg_mesh::{Cx, LeasedStore, clock, warn_of};
use tg_schemas::operations::{
    Empty, Failure, ForgetMemory, ListMemories, Memories, Memory, OneMemory, WhichMemories,
};
use uuid::Uuid;

use super::Agents;
use super::asking::flow_of;
use super::summing::Model;
use crate::engine::definition::Definition;
use crate::engine::memory::{FIND, KEPT, TOLD, facts, told};
use crate::engine::transcript::Said;
use crate::engine::{cursor, request};
use crate::error::SessionsError;
use crate::store::{FactStore, MemoryRow, SessionStore, SqliteSessions, Unsearched};
use crate::trail::ModelCall;
use crate::turns::Turns;

/// What is known of a user, as the agent is told it.
pub(super) async fn recalled(
    store: &SqliteSessions,
    workspace: &str,
    user: &str,
) -> Result<Vec<Said>, SessionsError> {
    let all = store.memories(workspace, user, i64::MIN, KEPT).await?;
    let newest = all.iter().skip(all.len().saturating_sub(TOLD));
    let newest = newest.map(|one| (&*one.subject, &*one.predicate, &*one.object));
    Ok(told(newest).into_iter().collect())
}

/// Messages of a session that are searched after a turn: its own, and those whose search a killed process left, or failed.
const AT_ONCE: usize = 8;
/// Searches of a message that fail before it is given up.
const ATTEMPTS: i64 = 3;

/// A session that had a turn.
pub(super) struct Over<'a> {
    pub(super) agent: &'a Definition,
    pub(super) store: &'a LeasedStore<SqliteSessions>,
    pub(super) turns: &'a Arc<Turns>,
    pub(super) flows: &'a ReadyFlows,
    pub(super) usual_flow: &'a str,
    pub(super) session: &'a str,
}

/// Looks for what the user said of himself or herself in the messages that nobody searched yet. The turn is over; a failure is
/// only logged. Returns the calls of the model.
pub(super) async fn remember(cx: &Cx, over: &Over<'_>) -> Vec<ModelCall> {
    let mut made = Vec::new();
    if let Err(error) = searched(cx, over, &mut made).await {
        warn_of!(cx, ?error, "what a user said is not remembered");
    }
    made
}

async fn searched(
    cx: &Cx,
    over: &Over<'_>,
    made: &mut Vec<ModelCall>,
) -> Result<(), SessionsError> {
    let key = cx.workspace_key();
    // One search after another, so that no message is searched twice.
    let lane = format!("memory {}", over.session);
    let _alone = over.turns.after(key.clone(), &lane).await;
    let store = over.store.get().await?;
    let left = store.unsearched(key.as_str(), over.session, AT_ONCE);
    let left = left.await?;
    drop(store);
    for one in left {
        let found = found(cx, over, &one, made).await;
        let message = (one.session.as_str(), one.seq);
        match found {
            Ok(facts) => {
                let store = over.store.get().await?;
                let kept = store.remember(key.as_str(), message, facts, KEPT);
                kept.await?;
            }
            // The process ends: the next one searches it.
            Err(error) if cx.cancel.is_cancelled() => return Err(error),
            Err(error) => {
                let store = over.store.get().await?;
                let noted = store.search_failed(key.as_str(), message, ATTEMPTS);
                noted.await?;
                warn_of!(cx, ?error, "what a user said is not remembered yet");
            }
        }
    }
    Ok(())
}

/// The facts of a message.
async fn found(
    cx: &Cx,
    over: &Over<'_>,
    said: &Unsearched,
    made: &mut Vec<ModelCall>,
) -> Result<Vec<MemoryRow>, SessionsError> {
    let store = over.store.get().await?;
    let known = store.session(cx.workspace_key().as_str(), &said.session);
    let known = known.await?;
    drop(store);
    let Some(known) = known else {
        return Ok(Vec::new());
    };
    let flow = flow_of(over.flows, cx, over.agent, over.usual_flow)?;
    // Questions about several messages differ, and so does one that is asked again after a failure.
    let turn = cx.headers.id.as_deref().unwrap_or(&cx.id);
    let id = format!("{turn}/{}/{}", said.id, said.failed);
    let mut asks = cx.clone();
    Arc::make_mut(&mut asks.headers).id = Some(id);
    let mut model = Model::new(&asks, &flow, None, "memory")?;
    let text = model.chat(FIND.to_owned(), &said.content).await;
    made.append(&mut model.spent.made);
    let row = |(subject, predicate, object)| MemoryRow {
        id: Uuid::new_v4().to_string(),
        user: known.owner.user.clone(),
        subject,
        predicate,
        object,
        agent: known.owner.agent.clone(),
        session: said.session.clone(),
        message: said.id.clone(),
        at: clock::millis(),
    };
    Ok(facts(&text?).into_iter().map(row).collect())
}

#[async_trait]
impl Handle<ListMemories> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        asked: WhichMemories,
        _: &mut Chunks<'_, ListMemories>,
    ) -> Result<Memories, Refused<Failure>> {
        Ok(self.remembered(cx, &asked).await?)
    }
}

#[async_trait]
impl Handle<ForgetMemory> for Agents {
    async fn handle(
        &self,
        cx: &Cx,
        asked: OneMemory,
        _: &mut Chunks<'_, ForgetMemory>,
    ) -> Result<Empty, Refused<Failure>> {
        let user = request::user(&asked.user_id).map_err(SessionsError::from)?;
        let store = self.store.get().await.map_err(SessionsError::from)?;
        let key = cx.workspace_key();
        let gone = store
            .forget(key.as_str(), user, &asked.memory_id, &cx.id)
            .await;
        match gone.map_err(SessionsError::from)? {
            true => Ok(Empty {}),
            false => Err(SessionsError::NoMemory.into()),
        }
    }
}

impl Agents {
    async fn remembered(&self, cx: &Cx, asked: &WhichMemories) -> Result<Memories, SessionsError> {
        let user = request::user(&asked.user_id)?;
        let most = request::limit(asked.limit)?;
        let after = request::after_memory(asked.cursor.as_deref())?;
        let store = self.store.get().await?;
        let key = cx.workspace_key();
        let mut all = store.memories(key.as_str(), user, after, most + 1).await?;
        let more = all.len() > most;
        all.truncate(most);
        let last = all.last().filter(|_| more).map(|last| last.at);
        let shown = all.into_iter().map(|one| Memory {
            id: one.id,
            subject: one.subject,
            predicate: one.predicate,
            object: one.object,
            agent: one.agent,
            session_id: one.session,
            message_id: one.message,
            created_at: clock::rfc3339_of(one.at),
        });
        Ok(Memories {
            memories: shown.collect(),
            next_cursor: last.map(cursor::of_memory),
        })
    }
}
