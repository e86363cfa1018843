//! The service of sessions, played: what the doors of agents and sessions show of its answers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tg_schemas::msg::{OperationRequest, OperationResponse};
use tg_schemas::{Error, ErrorCode};
use tg_testkit::fakes::{Play, Played};
use tokio::sync::watch;

fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

fn done(data: Value) -> OperationResponse {
    OperationResponse {
        data: object(data),
        last: true,
        ..OperationResponse::default()
    }
}

/// Sessions that answer what they were asked, as the title of a session or the text of a turn. The session `old` is archived,
/// nobody has the session `none`, and in `empty` nothing was said when it was looked at. Sessions of `keeper` are the one that has
/// a turn, those of `sleeper` are one whose turn does not end, those of `mute` are one that keeps no message, and `maven` has none.
/// A stream of `priced` is its last event, which says what it cost. Sessions of `fresh` have the id that they are asked for under, and without one all are `s`. A guard stops each turn of `circles`. What
/// names a session or an agent by a code behind [`FAILS`] fails with that code. The first session of `raced` is deleted before its
/// message comes, and the session `both` has two turns.
pub fn sessions(
    ended: Arc<watch::Sender<usize>>,
) -> Arc<Played<OperationRequest, OperationResponse>> {
    let gone = Gone::default();
    let raced = AtomicBool::default();
    Played::new(
        move |cx, ask: OperationRequest| -> Result<Play<OperationResponse>, Error> {
            if ask.operation == "cancel-turn" {
                ended.send_modify(|turns| *turns += 1);
            }
            let failed = |code, failure: Value| OperationResponse {
                error: Some(Error::new(code, "m")),
                failure: object(failure),
                last: true,
                ..OperationResponse::default()
            };
            let mut told = ask.request.clone();
            told.insert("workspace".to_owned(), cx.workspace().into());
            let told = Value::Object(told).to_string();
            let session = ask.request.get("session_id").and_then(Value::as_str);
            let says = |field: &str| ask.request.get(field) == Some(&json!(true));
            let (streaming, takes_empty) = (says("streaming"), says("takes_empty"));
            if let Some(refused) = refused(&gone, &ask, cx.request()) {
                return Ok(vec![refused].into());
            }
            if let Some(told) = in_known(session, &ask, &raced) {
                return Ok(told.into());
            }
            match session {
                Some(SLOW) if ask.operation == "send-message" => {
                    let mut told = begun();
                    told.truncate(1);
                    return Ok(Play::of(told).hanging());
                }
                _ => {}
            }
            let agent = ask.request.get("name").and_then(Value::as_str);
            if streaming && (agent == Some("fresh") || session != Some("none")) {
                return Ok(events_of(agent).into());
            }
            let answer = vec![match (ask.operation.as_str(), session) {
                (_, Some("none")) => failed(
                    ErrorCode::NotFound,
                    json!({"code": "session_not_found", "message": "there is no such session"}),
                ),
                ("send-message", Some("old")) => failed(
                    ErrorCode::Conflict,
                    json!({"code": "session_archived", "message": "m", "successor_session_id": "new"}),
                ),
                ("send-message", Some("lost")) => OperationResponse {
                    error: Some(Error::new(ErrorCode::Storage, "at /var/lib/threadgraph")),
                    last: true,
                    ..OperationResponse::default()
                },
                ("chat", _) if ask.request["name"] == "nobody" => failed(
                    ErrorCode::NotFound,
                    json!({"code": "agent_not_found", "message": "m"}),
                ),
                ("list-named-agents", _) => done(json!({"agents": [{"name": "concise"}]})),
                ("list-agents", _) => {
                    done(json!({"items": [{"agentId": "maven", "name": "Maven"}]}))
                }
                ("send-message" | "chat", _) => done(said_by(agent, &told)),
                ("get-session", Some("empty")) => done(json!({"id": "empty", "agent": "ann"})),
                // Meanwhile something was said in it.
                ("create-session", Some("empty")) if takes_empty => failed(
                    ErrorCode::Conflict,
                    json!({"code": "conflict", "message": "m"}),
                ),
                ("create-session", _) if agent == Some("maven") => failed(
                    ErrorCode::NotFound,
                    json!({"code": "agent_not_found", "message": "m"}),
                ),
                ("create-session", Some(id)) if agent == Some("fresh") => done(json!({"id": id})),
                ("create-session", _) if of_agent(agent).is_some() => {
                    done(json!({"id": of_agent(agent)}))
                }
                ("create-session" | "get-session", _) => done(json!({"id": "s", "title": told})),
                ("import-session", _) => {
                    let document = ask.request.get("document");
                    let said = document.and_then(|document| document["messages"].as_array());
                    let id = format!("copy-of-{}", said.map_or(0, Vec::len));
                    done(json!({"id": id, "agent": agent}))
                }
                ("list-messages", _) => done(json!({"session_id": told})),
                ("list-sessions", _) if agent == Some("lists") => done(json!({"sessions": [
                    {"id": THREAD, "agent": "lists", "created_at": "2026-01-02"},
                    {"id": BUSY, "agent": "lists", "created_at": "2026-01-01"}]})),
                ("compact-session", _) => done(json!({"cost": said_by(agent, "")["cost"]})),
                ("put-tenant-config", _) => done(json!({"tenant": told})),
                _ => done(json!({})),
            }];
            Ok(answer.into())
        },
    )
}

/// Sessions that were deleted, each with the request that did it.
type Gone = Mutex<BTreeMap<String, Option<String>>>;

/// A session that another request deletes.
const RACED: &str = "raced";

/// A session that has two turns.
const BOTH: &str = "both";

/// What happens in it.
fn in_both(ask: &OperationRequest) -> Vec<OperationResponse> {
    let says = |field: &str, text: &str| ask.request.get(field) == Some(&json!(text));
    match ask.operation.as_str() {
        "get-session" => vec![done(
            json!({"id": BOTH, "agent": "ann", "message_count": 4}),
        )],
        "list-messages" => vec![done(json!({"session_id": BOTH, "messages": [
            {"id": "m1", "role": "user", "content": "x"},
            {"id": "m2", "role": "assistant", "content": "a"},
            {"id": "m3", "role": "user", "content": "y"},
            {"id": "m4", "role": "assistant", "content": "b"}]}))],
        // The request of the second turn comes again.
        "send-message" if says("follows", "m1") && says("message", "y") => {
            let mut told = events_of(None);
            told[0].data.insert("id".to_owned(), json!("m3"));
            told
        }
        _ => vec![failing(ErrorCode::Conflict, "conflict")],
    }
}

/// The request whose message was sent before.
pub const REPEATED: &str = "again";

/// Begins the ids of what fails.
pub const FAILS: &str = "fails-";

/// A request that names what fails. Also notes that a session is deleted: the request that did it succeeds again, and no other finds
/// the session.
fn refused(
    gone: &Gone,
    ask: &OperationRequest,
    request: Option<&str>,
) -> Option<OperationResponse> {
    let named = |field| ask.request.get(field).and_then(Value::as_str);
    let of = named("session_id").or(named("agent_id"));
    if let Some(code) = of.and_then(|id| id.strip_prefix(FAILS)) {
        return Some(failing(ErrorCode::Internal, code));
    }
    let repeats = ask.request.get("repeats") == Some(&json!(true));
    if repeats && request != Some(REPEATED) {
        return Some(failing(ErrorCode::Conflict, "conflict"));
    }
    let session = named("session_id").filter(|id| [THREAD, MUTE].contains(id))?;
    let deletes = ask.operation == "delete-session";
    let refuses = session == MUTE && ask.request.get("starts") == Some(&json!(true));
    let by = gone.lock().get(session).cloned();
    match by {
        Some(by) if deletes && by.as_deref() == request => Some(done(json!({}))),
        Some(_) => Some(failing(ErrorCode::NotFound, "session_not_found")),
        None if deletes || refuses => {
            let by = request.map(str::to_owned);
            gone.lock().insert(session.to_owned(), by);
            None
        }
        None => None,
    }
}

fn failing(error: ErrorCode, code: &str) -> OperationResponse {
    let mut failure = json!({"code": code, "message": "m"});
    if code == "rate_limited" {
        failure["retry_after"] = json!(7);
    }
    OperationResponse {
        error: Some(Error::new(error, "m")),
        failure: object(failure),
        last: true,
        ..OperationResponse::default()
    }
}

/// The answer of a turn.
fn said_by(agent: Option<&str>, told: &str) -> Value {
    let mut said = json!({
        "content": told,
        "cost": {"usd": 0.25, "source": "upstream", "sub_calls": 2},
    });
    if agent == Some("circles") {
        said["stopped"] = true.into();
        said["finish_reason"] = "loop".into();
    }
    said
}

/// The session that an agent has.
fn of_agent(agent: Option<&str>) -> Option<&'static str> {
    match agent? {
        "keeper" => Some(THREAD),
        "sleeper" => Some(SLOW),
        "raced" => Some(RACED),
        "mute" => Some(MUTE),
        _ => None,
    }
}

/// What happens in a session that the test knows.
fn in_known(
    session: Option<&str>,
    ask: &OperationRequest,
    raced: &AtomicBool,
) -> Option<Vec<OperationResponse>> {
    match session? {
        THREAD => Some(in_thread(ask)),
        BUSY => Some(in_busy(ask)),
        MUTE => Some(in_mute(ask)),
        BOTH => Some(in_both(ask)),
        RACED if ask.operation == "send-message" => {
            Some(match raced.swap(true, Ordering::Relaxed) {
                false => vec![failing(ErrorCode::NotFound, "session_not_found")],
                true => begun(),
            })
        }
        _ => None,
    }
}

/// A session whose turn does not end.
const SLOW: &str = "slow";

/// A session that has one turn.
pub const THREAD: &str = "thread";

/// What happens in it.
fn in_thread(ask: &OperationRequest) -> Vec<OperationResponse> {
    let said = json!([{"id": "m1", "role": "user", "content": "x"},
        {"id": "m2", "role": "assistant", "content": "a\nb"}]);
    match ask.operation.as_str() {
        "get-session" => vec![done(
            json!({"id": THREAD, "agent": "ann", "message_count": 2}),
        )],
        "list-messages" => vec![done(json!({"session_id": THREAD, "messages": said}))],
        "export-session" => vec![done(json!({"form": "f", "messages": said}))],
        "delete-session" | "cancel-turn" => vec![done(json!({}))],
        _ => begun(),
    }
}

/// A turn whose message has an id.
fn begun() -> Vec<OperationResponse> {
    let mut told = events_of(None);
    told[0].data.insert("id".to_owned(), json!("m1"));
    told
}

/// A session whose turn is in progress.
pub const BUSY: &str = "busy";

/// What happens in it.
fn in_busy(ask: &OperationRequest) -> Vec<OperationResponse> {
    let refuses = ask.request.get("when_busy") == Some(&json!("refuse"));
    vec![match ask.operation.as_str() {
        "get-session" => done(json!({"id": BUSY, "agent": "ann", "message_count": 3})),
        "list-messages" if refuses => failing(ErrorCode::Conflict, "session_busy"),
        "list-messages" => {
            let said = json!([{"id": "m1", "role": "user", "content": "x"}]);
            done(json!({"session_id": BUSY, "messages": said}))
        }
        // Another turn may be in progress by then.
        "cancel-turn" if ask.request.get("message_id") != Some(&json!("m1")) => OperationResponse {
            error: Some(Error::new(ErrorCode::BadRequest, "m")),
            last: true,
            ..OperationResponse::default()
        },
        _ => done(json!({})),
    }]
}

/// A session that keeps no message.
const MUTE: &str = "mute";

/// What happens in it.
fn in_mute(ask: &OperationRequest) -> Vec<OperationResponse> {
    vec![match ask.operation.as_str() {
        "get-session" => done(json!({"id": MUTE, "agent": "mute"})),
        "delete-session" => done(json!({})),
        _ => failing(ErrorCode::BadRequest, "llm_credential_missing"),
    }]
}

/// A turn as it is streamed.
fn events_of(agent: Option<&str>) -> Vec<OperationResponse> {
    if agent == Some("fresh") {
        return begun();
    }
    let event = |event: &str, data: Value, last: bool| OperationResponse {
        event: event.to_owned(),
        last,
        ..done(data)
    };
    if agent == Some("priced") {
        return vec![event("done", said_by(agent, "x"), true)];
    }
    vec![
        event("user-message", json!({"content": "x"}), false),
        event("token", json!({"delta": "a\nb"}), false),
        event("done", json!({"content": "a\nb"}), true),
    ]
}
