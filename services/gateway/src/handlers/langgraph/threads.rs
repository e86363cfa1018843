//! Threads: sessions of a user. A thread that is created without an agent has the first one until its first run says which.

use axum::body::Body as HttpBody;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use tg_schemas::limits::CHAT_BODY;
use tg_schemas::operations::{
    CompactStrategy, CreateSession, Empty, ExportSession, Failure, FailureCode, ImportSession,
    ImportedSession, ListMessages, ListNamedAgents, ListSessions, NewSession, Object, OneSession,
    Session, SessionMessage, WhenBusy, WhichMessages, WhichSessions,
};

use super::told::{answered, unfit};
use crate::engine::langgraph::asked::{History, NewThread};
use crate::engine::langgraph::searched::ThreadSearch;
use crate::engine::langgraph::shown;
use crate::handlers::asked::Asked;
use crate::handlers::caller::{Caller, is};

/// Sessions that a search looks at, at most.
const SESSIONS: usize = 1_000;
/// Sessions of a page.
const PAGE: i64 = 200;
/// Threads whose messages one search reads.
const LOOKED: usize = 200;
/// Messages of a thread that a search shows: those by which clients name it.
const FIRST: i64 = 2;

/// `POST /langgraph/threads`.
pub(crate) async fn begin(asked: Asked, body: HttpBody) -> Response {
    answered(asked, |caller| async move {
        let (body, _reading) = caller.body(body).await?;
        let new = NewThread::read(&body).map_err(unfit)?;
        if let Some(id) = &new.id {
            match caller.thread(id).await {
                Ok(found) if new.finds => return shown_as_is(&caller, &found).await,
                Ok(_) => {
                    let text = "thread_id: there is a thread of this id";
                    return Err(unfit(Failure::new(FailureCode::Conflict, text)));
                }
                Err(failure) if is_unknown(&failure) => {}
                Err(failure) => return Err(failure),
            }
        }
        let agent = match new.graph {
            Some(graph) => graph,
            None => first_agent(&caller).await?,
        };
        // Without an id, all threads that a client asks for under one request id would be the same one.
        let id = new.id.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        let made = create(&caller, &agent, id).await?;
        Ok(caller.reply(&shown::thread(&made, &[], false)).await)
    })
    .await
}

/// `POST /langgraph/threads/search`: the threads of a user, each with its first messages.
pub(crate) async fn find(asked: Asked, body: HttpBody) -> Response {
    answered(asked, |caller| async move {
        let (body, _reading) = caller.body(body).await?;
        let asked = ThreadSearch::read(&body).map_err(unfit)?;
        let mut found: Vec<Value> = Vec::new();
        let mut passed = 0;
        let mut room = CHAT_BODY;
        let mut looked = LOOKED;
        for session in asked.sorted(sessions(&caller, asked.agent.as_deref()).await?) {
            if found.len() >= asked.limit {
                break;
            }
            if asked.status.is_none() && passed < asked.offset {
                passed += 1;
                continue;
            }
            // Which status a thread has, its messages say.
            match looked.checked_sub(1) {
                Some(left) => looked = left,
                None => break,
            }
            let Some((mut first, busy)) = beginning(&caller, &session.id).await? else {
                continue;
            };
            let size: usize = first.iter().map(shown::size).sum();
            match room.checked_sub(size) {
                Some(left) => room = left,
                None => first.clear(),
            }
            let shown = shown::thread(&session, &first, busy);
            let fits = asked
                .status
                .as_ref()
                .is_none_or(|status| shown["status"] == **status);
            match fits && passed < asked.offset {
                true => passed += 1,
                false if fits => found.push(shown),
                false => {}
            }
        }
        Ok(caller.reply(&Value::from(found)).await)
    })
    .await
}

/// The sessions of the user with an agent, or with any.
async fn sessions(caller: &Caller, agent: Option<&str>) -> Result<Vec<Session>, Object> {
    let agents = match agent {
        Some(agent) => vec![agent.to_owned()],
        None => {
            let all = caller.ask::<ListNamedAgents>(&Empty {}).await?.agents;
            all.into_iter().map(|agent| agent.name).collect()
        }
    };
    let mut all = Vec::new();
    for name in agents {
        let mut which = WhichSessions {
            name,
            user_id: caller.user.clone(),
            limit: Some(PAGE),
            cursor: None,
        };
        while all.len() < SESSIONS {
            let page = match caller.ask::<ListSessions>(&which).await {
                Ok(page) => page,
                // Nobody has threads with an agent that is not there.
                Err(failure) if is(&failure, FailureCode::AgentNotFound) => break,
                Err(failure) => return Err(failure),
            };
            all.extend(page.sessions);
            which.cursor = page.next_cursor;
            if which.cursor.is_none() {
                break;
            }
        }
    }
    all.truncate(SESSIONS);
    Ok(all)
}

/// The first messages of a thread, and whether a run of it is in progress. `None`: it is gone.
async fn beginning(
    caller: &Caller,
    id: &str,
) -> Result<Option<(Vec<SessionMessage>, bool)>, Object> {
    let mut which = WhichMessages {
        session_id: id.to_owned(),
        user_id: caller.user.clone(),
        limit: Some(FIRST),
        when_busy: Some(WhenBusy::Refuse),
        ..WhichMessages::default()
    };
    let mut first = caller.ask::<ListMessages>(&which).await;
    let refused = |failure: &Object| is(failure, FailureCode::SessionBusy);
    let busy = first.as_ref().is_err_and(refused);
    if busy {
        which.when_busy = None;
        first = caller.ask::<ListMessages>(&which).await;
    }
    match first {
        Ok(first) => Ok(Some((first.messages, busy))),
        Err(failure) if is_unknown(&failure) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// `GET /langgraph/threads/{thread_id}`.
pub(crate) async fn thread(asked: Asked, Path(id): Path<String>) -> Response {
    answered(asked, |caller| async move {
        let found = caller.thread(&id).await?;
        shown_as_is(&caller, &found).await
    })
    .await
}

/// `POST /langgraph/threads/{thread_id}/copy`: another thread with the same messages, under ids of their own.
pub(crate) async fn copy(asked: Asked, Path(id): Path<String>) -> Response {
    answered(asked, |caller| async move {
        let found = caller.thread(&id).await?;
        let which = OneSession {
            name: found.agent.clone(),
            ..caller.which(&found.id)
        };
        let copied = ImportedSession {
            name: found.agent,
            user_id: caller.user.clone(),
            document: caller.ask::<ExportSession>(&which).await?,
        };
        let made = caller.ask::<ImportSession>(&copied).await?;
        shown_as_is(&caller, &made).await
    })
    .await
}

/// `DELETE /langgraph/threads/{thread_id}`.
pub(crate) async fn delete(asked: Asked, Path(id): Path<String>) -> Response {
    answered(asked, |caller| async move {
        caller.remove(&id).await?;
        Ok(StatusCode::NO_CONTENT.into_response())
    })
    .await
}

/// `GET /langgraph/threads/{thread_id}/state`.
pub(crate) async fn state(asked: Asked, Path(id): Path<String>) -> Response {
    answered(asked, |caller| async move {
        let found = caller.thread(&id).await?;
        let messages = caller.messages(&found.id, None).await?;
        Ok(caller.reply(&shown::state(&found, &messages)).await)
    })
    .await
}

/// `POST /langgraph/threads/{thread_id}/history`.
pub(crate) async fn history(asked: Asked, Path(id): Path<String>, body: HttpBody) -> Response {
    answered(asked, |caller| async move {
        let (body, _reading) = caller.body(body).await?;
        let asked = History::read(&body).map_err(unfit)?;
        let found = caller.thread(&id).await?;
        let messages = caller.messages(&found.id, None).await?;
        let which = (asked.limit, asked.before.as_deref());
        let states: Value = shown::history(&found, &messages, which);
        Ok(caller.reply(&states).await)
    })
    .await
}

/// A thread with its messages, and whether a run of it is in progress.
async fn shown_as_is(caller: &Caller, thread: &Session) -> Result<Response, Object> {
    let (messages, busy) = caller.messages_now(&thread.id).await?;
    Ok(caller.reply(&shown::thread(thread, &messages, busy)).await)
}

/// Whether there is no such thread.
pub(super) fn is_unknown(failure: &Object) -> bool {
    is(failure, FailureCode::SessionNotFound)
}

/// Creates a thread. It is never shortened: what continued it would have another id.
pub(super) async fn create(caller: &Caller, agent: &str, id: String) -> Result<Session, Object> {
    caller.ask::<CreateSession>(&new(caller, agent, id)).await
}

/// Gives a thread in which nothing was said to another agent.
pub(super) async fn give(caller: &Caller, agent: &str, id: &str) -> Result<Session, Object> {
    let taking = NewSession {
        takes_empty: true,
        ..new(caller, agent, id.to_owned())
    };
    caller.ask::<CreateSession>(&taking).await
}

fn new(caller: &Caller, agent: &str, id: String) -> NewSession {
    NewSession {
        name: agent.to_owned(),
        user_id: caller.user.clone(),
        session_id: Some(id),
        compact_strategy: Some(CompactStrategy::Off),
        ..NewSession::default()
    }
}

/// The first agent, in the order of the names.
async fn first_agent(caller: &Caller) -> Result<String, Object> {
    let all = caller.ask::<ListNamedAgents>(&Empty {}).await?;
    let first = all.agents.into_iter().next().map(|agent| agent.name);
    first.ok_or_else(|| {
        let text = "there are no agents";
        unfit(Failure::new(FailureCode::AgentNotFound, text))
    })
}
