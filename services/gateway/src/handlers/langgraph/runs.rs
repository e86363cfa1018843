//! Runs: turns of a session, or one question outside of any. The id of a run is that of the user's message.

use axum::body::Body as HttpBody;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query};
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use tg_schemas::operations::{
    CancelTurn, Chat, Empty, Failure, FailureCode, ListMessages, Object, Question, SendMessage,
    SentMessage, Session, SessionMessage, TurnResult, WhenBusy, WhichMessages,
};

use super::stream::{Begun, Stream, begun, ended};
use super::threads;
use super::told::{answered, unfit};
use crate::budget::Reading;
use crate::engine::langgraph::asked::{Modes, Run};
use crate::engine::langgraph::events::Told;
use crate::engine::langgraph::shown::{self, Status, plain};
use crate::handlers::asked::Asked;
use crate::handlers::caller::{Caller, is, replied};

/// Runs of a page where nobody says how many.
const RUNS: usize = 10;
/// Messages behind the head that a client knows, at most: those of runs without an answer.
const BEHIND: i64 = 50;
/// The header by which clients learn the id of a run that they wait for.
const PLACE: HeaderName = HeaderName::from_static("content-location");

/// `POST /langgraph/threads/{thread_id}/runs`: begins a run, and waits for nothing of it.
pub(crate) async fn create(asked: Asked, Path(thread): Path<String>, body: HttpBody) -> Response {
    answered(asked, |caller| async move {
        let (_, session, begun) = starts(&caller, &thread, body).await?;
        // The turn goes on without its reader.
        let run = shown::run(&session, &[], &begun.run, "running");
        let mut response = caller.reply(&run).await;
        response.headers_mut().extend(place(&thread, &begun.run));
        Ok(response)
    })
    .await
}

/// `POST /langgraph/threads/{thread_id}/runs/stream`.
pub(crate) async fn stream(asked: Asked, Path(thread): Path<String>, body: HttpBody) -> Response {
    answered(asked, |caller| async move {
        let (run, session, begun) = starts(&caller, &thread, body).await?;
        let place = place(&thread, &begun.run);
        let told = Told::new(run.modes, (&session.id, &begun.run), &session.agent);
        let mut events = Stream::new(caller, session.id, told);
        if run.cancels {
            events = events.ends_with_its_client(&begun.run)?;
        }
        let mut response = events.of(begun).await?;
        response.headers_mut().extend(place);
        Ok(response)
    })
    .await
}

/// `POST /langgraph/threads/{thread_id}/runs/wait`.
pub(crate) async fn wait(asked: Asked, Path(thread): Path<String>, body: HttpBody) -> Response {
    answered(asked, |caller| async move {
        let (body, reading) = caller.body(body).await?;
        let run = Run::read(&body).map_err(unfit)?;
        drop(body);
        if run.cancels {
            let caller = caller.bounded();
            let (session, begun) = begins(&caller, &thread, &run, reading).await?;
            let place = place(&thread, &begun.run);
            ended(&caller, &session.id, begun).await?;
            let messages = caller.messages(&session.id, None).await?;
            let mut response = caller.reply(&shown::values(&messages)).await;
            response.headers_mut().extend(place);
            return Ok(response);
        }
        let (session, sent) = place_of(&caller, &thread, &run).await?;
        let mut running = caller.start::<SendMessage>(&sent, false).await?;
        if let Some(reading) = reading {
            running = running.holding(reading);
        }
        let replied = replied::<SendMessage>(running).await;
        replied.map_err(|failure| of_run(failure, &sent))?;
        let messages = caller.messages(&session.id, None).await?;
        let last = shown::runs(&messages).next().map(|run| place(&thread, run));
        let mut response = caller.reply(&shown::values(&messages)).await;
        response.headers_mut().extend(last.into_iter().flatten());
        Ok(response)
    })
    .await
}

/// Which runs are listed.
#[derive(Debug, Deserialize)]
pub(crate) struct Page {
    limit: Option<usize>,
    offset: Option<usize>,
    status: Option<String>,
}

/// `GET /langgraph/threads/{thread_id}/runs`: the runs of a thread, the newest first.
pub(crate) async fn list(
    asked: Asked,
    Path(thread): Path<String>,
    page: Result<Query<Page>, QueryRejection>,
) -> Response {
    answered(asked, |caller| async move {
        let Query(page) = page.map_err(|_| {
            let text = "limit, offset: must be whole numbers from 0 on, each given once";
            unfit(Failure::new(FailureCode::ValidationError, text))
        })?;
        let (session, messages, busy) = caller.thread_now(&thread).await?;
        let all = shown::runs(&messages).map(|run| {
            let how = how(&messages, run, busy).unwrap_or("error");
            shown::run(&session, &messages, run, how)
        });
        let wanted = |run: &Value| {
            page.status
                .as_ref()
                .is_none_or(|how| run["status"] == **how)
        };
        let some = all.filter(wanted).skip(page.offset.unwrap_or(0));
        let all: Vec<Value> = some.take(page.limit.unwrap_or(RUNS)).collect();
        Ok(caller.reply(&Value::from(all)).await)
    })
    .await
}

/// `GET /langgraph/threads/{thread_id}/runs/{run_id}`.
pub(crate) async fn one(asked: Asked, Path((thread, run)): Path<(String, String)>) -> Response {
    answered(asked, |caller| async move {
        let (session, messages, busy) = caller.thread_now(&thread).await?;
        let how = how(&messages, &run, busy).ok_or_else(unknown)?;
        let shown = shown::run(&session, &messages, &run, how);
        Ok(caller.reply(&shown).await)
    })
    .await
}

/// What is to become of a run that is cancelled.
#[derive(Debug, Deserialize)]
pub(crate) struct Cancelling {
    action: Option<String>,
}

/// `POST /langgraph/threads/{thread_id}/runs/{run_id}/cancel`: ends a run. One that is over stays as it is.
pub(crate) async fn cancel(
    asked: Asked,
    Path((thread, run)): Path<(String, String)>,
    how_to: Result<Query<Cancelling>, QueryRejection>,
) -> Response {
    answered(asked, |caller| async move {
        let action = how_to.map(|Query(how_to)| how_to.action);
        let known = action.is_ok_and(|action| action.is_none_or(|action| action == "interrupt"));
        if !known {
            let reason = "must be interrupt: what was said stays";
            return Err(unfit(Failure::invalid("action", reason)));
        }
        let (session, messages, busy) = caller.thread_now(&thread).await?;
        let how = how(&messages, &run, busy).ok_or_else(unknown)?;
        if how == "running" {
            let which = caller.turn(&session.id, &run);
            let Empty {} = caller.ask::<CancelTurn>(&which).await?;
        }
        Ok(caller.reply(&json!({})).await)
    })
    .await
}

/// `GET /langgraph/threads/{thread_id}/runs/{run_id}/join`: waits for the end of a run.
pub(crate) async fn join(asked: Asked, Path((thread, run)): Path<(String, String)>) -> Response {
    answered(asked, |caller| async move {
        let messages = joined(&caller, &thread, &run).await?;
        Ok(caller.reply(&shown::values(&messages)).await)
    })
    .await
}

/// `GET /langgraph/threads/{thread_id}/runs/{run_id}/stream`: the same, as events. Pieces that were told are not told again.
pub(crate) async fn stream_joined(
    asked: Asked,
    Path((thread, run)): Path<(String, String)>,
) -> Response {
    answered(asked, |caller| async move {
        let session = caller.thread(&thread).await?;
        let messages = caller.messages(&session.id, None).await?;
        shown::status(&messages, &run).ok_or_else(unknown)?;
        drop(messages);
        let which = WhichMessages {
            session_id: session.id.clone(),
            user_id: caller.user.clone(),
            limit: Some(1),
            when_busy: Some(WhenBusy::Queue),
            ..WhichMessages::default()
        };
        let running = caller.start::<ListMessages>(&which, false).await?;
        let told = Told::new(Modes::of_values(), (&session.id, &run), &session.agent);
        Ok(Stream::new(caller, session.id, told).until(running))
    })
    .await
}

/// `POST /langgraph/runs/wait`: one question, of which nothing is kept.
pub(crate) async fn stateless(asked: Asked, body: HttpBody) -> Response {
    answered(asked, |caller| async move {
        let (_, mut values, result) = ask_once(&caller, body).await?;
        values["messages"][1]["response_metadata"] =
            json!({"model_name": result.model, "finish_reason": result.finish_reason});
        Ok(caller.reply(&values).await)
    })
    .await
}

/// `POST /langgraph/runs/stream`: the same, as events once the answer is there.
pub(crate) async fn stateless_stream(asked: Asked, body: HttpBody) -> Response {
    answered(asked, |caller| async move {
        let (run, values, result) = ask_once(&caller, body).await?;
        let told = Told::new(run.modes, ("", &result.request_id), &run.assistant);
        Ok(Stream::new(caller, String::new(), told).whole(&result.content, &values))
    })
    .await
}

/// Asks one question outside of any thread.
async fn ask_once(caller: &Caller, body: HttpBody) -> Result<(Run, Value, TurnResult), Object> {
    let (body, _reading) = caller.body(body).await?;
    let run = Run::read(&body).map_err(unfit)?;
    if run.head.is_some() {
        return Err(unfit(Failure::invalid(
            "checkpoint",
            "must be null without a thread",
        )));
    }
    let question = Question {
        name: run.assistant.clone(),
        message: Some(run.message.clone()),
        user_id: caller.user.clone(),
        ..Question::default()
    };
    let result = caller.ask::<Chat>(&question).await?;
    let id = &result.request_id;
    let human = plain("human", &format!("input-{id}"), &run.message);
    let mut answer = plain("ai", &format!("run-{id}"), &result.content);
    answer["tool_calls"] = json!([]);
    answer["invalid_tool_calls"] = json!([]);
    let values = json!({"messages": [human, answer]});
    Ok((run, values, result))
}

/// Begins the run that a request asks for, up to its message being kept.
async fn starts(
    caller: &Caller,
    thread: &str,
    body: HttpBody,
) -> Result<(Run, Session, Begun), Object> {
    let (body, reading) = caller.body(body).await?;
    let run = Run::read(&body).map_err(unfit)?;
    drop(body);
    let (session, begun) = begins(caller, thread, &run, reading).await?;
    Ok((run, session, begun))
}

/// Begins a run that was read.
async fn begins(
    caller: &Caller,
    thread: &str,
    run: &Run,
    reading: Option<Reading>,
) -> Result<(Session, Begun), Object> {
    let (session, sent) = place_of(caller, thread, run).await?;
    let mut running = caller.start::<SendMessage>(&sent, true).await?;
    if let Some(reading) = reading {
        running = running.holding(reading);
    }
    let begun = begun(running).await;
    let begun = begun.map_err(|failure| of_run(failure, &sent))?;
    Ok((session, begun))
}

/// The thread of a run, and the message that is its turn. A run that does not go on from the last state has to be one that the same
/// request began before: its own answer is among what came since.
async fn place_of(
    caller: &Caller,
    thread: &str,
    run: &Run,
) -> Result<(Session, SentMessage), Object> {
    let session = thread_of(caller, thread, run).await?;
    let sent = sent(caller, &session, run);
    let Some(head) = &run.head else {
        return Ok((session, sent));
    };
    let which = WhichMessages {
        session_id: session.id.clone(),
        user_id: caller.user.clone(),
        newest: Some(BEHIND),
        ..WhichMessages::default()
    };
    let newest = caller.ask::<ListMessages>(&which).await?.messages;
    let sent = match is_head(&newest, head) {
        true => sent,
        false => SentMessage {
            repeats: true,
            // It takes the place of no other run.
            when_busy: WhenBusy::Queue,
            ..sent
        },
    };
    Ok((session, sent))
}

/// Why a run failed. One that had to be a repetition and was none goes on from an earlier state.
fn of_run(failure: Object, sent: &SentMessage) -> Object {
    if !sent.repeats || !is(&failure, FailureCode::Conflict) {
        return failure;
    }
    let reason = "must be the last one of the thread: runs go on from no earlier state";
    unfit(Failure::invalid("checkpoint", reason))
}

/// Whether no later state than that of a message is among these. Runs that failed or were ended left none, and neither does what is
/// announced: their clients still know the state before.
fn is_head(newest: &[SessionMessage], head: &str) -> bool {
    let at = newest.iter().rposition(|one| one.id == head);
    let later = at.and_then(|at| newest.get(at + 1..));
    later.is_some_and(|later| later.iter().all(|one| one.synthetic || one.role == "user"))
}

/// The thread of a run. One in which nothing was said yet takes the agent of its first run; where another run was first, it is
/// refused.
async fn thread_of(caller: &Caller, thread: &str, run: &Run) -> Result<Session, Object> {
    let found = match caller.thread(thread).await {
        Ok(found) => found,
        Err(failure) if threads::is_unknown(&failure) && run.creates => {
            return threads::create(caller, &run.assistant, thread.to_owned()).await;
        }
        Err(failure) => return Err(failure),
    };
    if found.agent == run.assistant {
        return Ok(found);
    }
    if found.message_count > 0 {
        let text = "assistant_id: the thread belongs to another agent";
        return Err(unfit(Failure::new(FailureCode::SessionAgentMismatch, text)));
    }
    threads::give(caller, &run.assistant, &found.id).await
}

fn sent(caller: &Caller, session: &Session, run: &Run) -> SentMessage {
    SentMessage {
        name: session.agent.clone(),
        session_id: session.id.clone(),
        user_id: caller.user.clone(),
        message: run.message.clone(),
        when_busy: run.when_busy,
        ..SentMessage::default()
    }
}

/// The messages of a thread once a run of it is over.
async fn joined(caller: &Caller, thread: &str, run: &str) -> Result<Vec<SessionMessage>, Object> {
    let messages = caller.messages(thread, Some(WhenBusy::Queue)).await?;
    match shown::status(&messages, run) {
        Some(_) => Ok(messages),
        None => Err(unknown()),
    }
}

/// How a run goes. `None`: there is no such run.
fn how(messages: &[SessionMessage], run: &str, busy: bool) -> Option<&'static str> {
    let newest = shown::runs(messages).next() == Some(run);
    Some(match shown::status(messages, run)? {
        Status::Success => "success",
        Status::Unanswered if busy && newest => "running",
        Status::Unanswered => "error",
    })
}

fn unknown() -> Object {
    let text = "run_id: there is no such run";
    unfit(Failure::new(FailureCode::NotFound, text))
}

/// Where a run is found.
fn place(thread: &str, run: &str) -> Option<(HeaderName, HeaderValue)> {
    let place = format!("/threads/{thread}/runs/{run}");
    Some((PLACE, HeaderValue::from_str(&place).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_without_an_answer_and_announcements_leave_the_state_before() {
        let said = |id: &str, role: &str, synthetic: bool| SessionMessage {
            id: id.to_owned(),
            role: role.to_owned(),
            synthetic,
            ..SessionMessage::default()
        };
        let mut newest = vec![
            said("m1", "user", false),
            said("m2", "assistant", false),
            said("m3", "user", false),
            said("m4", "assistant", true),
        ];
        assert!(is_head(&newest, "m2") && is_head(&newest, "m4"));
        assert!(!is_head(&newest, "m1") && !is_head(&newest, "m9"));
        newest.push(said("m5", "assistant", false));
        assert!(is_head(&newest, "m5") && !is_head(&newest, "m2"));
    }
}
