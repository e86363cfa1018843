//! Threads: sessions of a user. A thread that is created without an agent has the first one until its first run says which.

use axum::body::Body as HttpBody;
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use tg_schemas::operations::{
    CompactStrategy, CreateSession, Empty, Failure, FailureCode, ListNamedAgents, NewSession,
    Object, Session,
};

use super::told::{answered, unfit};
use crate::call::Meta;
use crate::engine::langgraph::asked::{History, NewThread};
use crate::engine::langgraph::shown;
use crate::handlers::caller::{Caller, is};
use crate::state::Shared;

/// `POST /langgraph/threads`.
pub(crate) async fn begin(
    State(app): State<Shared>,
    Extension(meta): Extension<Meta>,
    headers: HeaderMap,
    body: HttpBody,
) -> Response {
    answered(app, meta, headers, |caller| async move {
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
        let made = create(&caller, &agent, new.id).await?;
        Ok(caller.reply(&shown::thread(&made, &[], false)).await)
    })
    .await
}

/// `GET /langgraph/threads/{thread_id}`.
pub(crate) async fn thread(
    State(app): State<Shared>,
    Extension(meta): Extension<Meta>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    answered(app, meta, headers, |caller| async move {
        let found = caller.thread(&id).await?;
        shown_as_is(&caller, &found).await
    })
    .await
}

/// `DELETE /langgraph/threads/{thread_id}`.
pub(crate) async fn delete(
    State(app): State<Shared>,
    Extension(meta): Extension<Meta>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    answered(app, meta, headers, |caller| async move {
        caller.remove(&id).await?;
        Ok(StatusCode::NO_CONTENT.into_response())
    })
    .await
}

/// `GET /langgraph/threads/{thread_id}/state`.
pub(crate) async fn state(
    State(app): State<Shared>,
    Extension(meta): Extension<Meta>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    answered(app, meta, headers, |caller| async move {
        let found = caller.thread(&id).await?;
        let messages = caller.messages(&found.id, None).await?;
        Ok(caller.reply(&shown::state(&found, &messages)).await)
    })
    .await
}

/// `POST /langgraph/threads/{thread_id}/history`.
pub(crate) async fn history(
    State(app): State<Shared>,
    Extension(meta): Extension<Meta>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: HttpBody,
) -> Response {
    answered(app, meta, headers, |caller| async move {
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
pub(super) async fn create(
    caller: &Caller,
    agent: &str,
    id: Option<String>,
) -> Result<Session, Object> {
    caller.ask::<CreateSession>(&new(caller, agent, id)).await
}

/// Gives a thread in which nothing was said to another agent.
pub(super) async fn give(caller: &Caller, agent: &str, id: &str) -> Result<Session, Object> {
    let taking = NewSession {
        takes_empty: true,
        ..new(caller, agent, Some(id.to_owned()))
    };
    caller.ask::<CreateSession>(&taking).await
}

fn new(caller: &Caller, agent: &str, id: Option<String>) -> NewSession {
    NewSession {
        name: agent.to_owned(),
        user_id: caller.user.clone(),
        session_id: id,
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
