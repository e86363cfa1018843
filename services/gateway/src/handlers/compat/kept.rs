//! Responses that are kept: each is a turn of a session of its user. They are begun, read, deleted and cancelled here, by
//! operations of the sessions.

use axum::extract::Path;
use axum::response::Response;
use serde_json::{Value, json};
use tg_mesh::clock;
use tg_schemas::operations::{
    CancelTurn, CompactStrategy, CreateSession, Empty, FailureCode, ListNamedAgents, NewSession,
    Object, SendMessage, SentMessage, Session, SessionMessage,
};

use super::{of_sessions, part, refused, told};
use crate::engine::compat::agents;
use crate::engine::compat::dialect::Head;
use crate::engine::compat::errors::CompatError;
use crate::engine::compat::responses::kept::{self, Kept, Wish};
use crate::engine::compat::responses::reply::Responses;
use crate::engine::translate::Body;
use crate::handlers::asked::Asked;
use crate::handlers::caller::{Caller, is};
use crate::handlers::read;
use crate::running::Running;

/// A turn whose message is kept.
pub(super) struct Begun {
    /// What the id of the response has behind its prefix.
    pub(super) id: String,
    /// Seconds since 1970, where the session says when it kept the message.
    pub(super) created: Option<i64>,
    pub(super) place: Kept,
    pub(super) running: Running,
}

/// Refuses `X-On-Disconnect` where the response is kept: its turn goes on, whatever the header says.
pub(super) async fn goes_on(caller: &Caller, agent: &str, wish: &Wish) -> Result<(), CompatError> {
    let why = "the turn of a response that is stored goes on when its client has left";
    let Err(error) = read::must_not_say(&caller.headers, why) else {
        return Ok(());
    };
    if !wish.requires() {
        // Agents of the workspace have no sessions: their responses are kept nowhere, and end with their clients.
        let all = caller.ask::<ListNamedAgents>(&Empty {}).await;
        let all = all.map_err(|failure| failed(&failure))?.agents;
        if all.iter().all(|one| one.name != agent) {
            return Ok(());
        }
    }
    Err(refused(error))
}

/// Begins the turn that a response is to be, up to its message being kept. `None`: the response is not kept.
pub(super) async fn begun(
    caller: &Caller,
    agent: &str,
    wish: &Wish,
    said: &str,
) -> Result<Option<Begun>, CompatError> {
    let Some(mut turn) = Turn::of(caller, agent, wish, said).await? else {
        return Ok(None);
    };
    let mut begun = sent(caller, agent, &turn, said).await;
    let is_gone = |fault: &CompatError| fault.is(FailureCode::SessionNotFound);
    if turn.is_own && begun.as_ref().is_err_and(is_gone) {
        // The same request came twice at once. The other one was refused, and took the session of both with it.
        let Some(again) = Turn::of(caller, agent, wish, said).await? else {
            return Ok(None);
        };
        turn = again;
        begun = sent(caller, agent, &turn, said).await;
    }
    let (message, created, running) = begun?;
    let place = place(caller, turn.session).await;
    Ok(Some(Begun {
        id: kept::id(&place, &message),
        created,
        place: Kept {
            session: place,
            previous: wish.previous.clone(),
        },
        running,
    }))
}

/// Sends a message to a session, and waits for the session to keep it. The id of the message, when it was kept, and the turn that
/// answers it. A message that comes again under the id of its request is the one that is kept.
async fn sent(
    caller: &Caller,
    agent: &str,
    turn: &Turn,
    said: &str,
) -> Result<(String, Option<i64>, Running), CompatError> {
    let sent = SentMessage {
        name: agent.to_owned(),
        session_id: turn.session.id.clone(),
        user_id: caller.user.clone(),
        message: said.to_owned(),
        follows: turn.follows.clone(),
        // Nobody was given the id of a session that is its own: it goes where it keeps no message.
        starts: turn.is_own,
        ..SentMessage::default()
    };
    let mut running = caller
        .start::<SendMessage>(&sent, true)
        .await
        .map_err(|failure| failed(&failure))?;
    let (first, _) = part(running.next().await).map_err(|fault| {
        let fault = fault.renamed("message", "input");
        fault.renamed("follows", "previous_response_id")
    })?;
    let text = |key: &str| first.get("data").and_then(|data| data[key].as_str());
    let is_kept = first
        .get("event")
        .is_some_and(|event| event == "user-message");
    match text("id").filter(|_| is_kept) {
        Some(message) => {
            let created = text("created_at").and_then(clock::seconds_of);
            Ok((message.to_owned(), created, running))
        }
        None => {
            let text = "the response could not be followed";
            Err(CompatError::new(502, "upstream_error", text))
        }
    }
}

/// The turn that a response is to be.
struct Turn {
    session: Session,
    /// The message that it is to follow, if one is named.
    follows: Option<String>,
    /// Whether the session was made for it.
    is_own: bool,
}

impl Turn {
    /// In the session of the response that it follows, in the one that is named, or in one of its own, which is never shortened.
    async fn of(
        caller: &Caller,
        agent: &str,
        wish: &Wish,
        said: &str,
    ) -> Result<Option<Self>, CompatError> {
        if let Some(previous) = &wish.previous {
            let behind = Self::behind(caller, previous).await;
            return behind.map(Some);
        }
        if let Some(named) = &wish.conversation {
            let found = caller.thread(named).await;
            let missing = absent("conversation: there is no such session");
            let session = found.map_err(|failure| or_absent(&failure, missing))?;
            return Ok(Some(Self {
                session,
                follows: None,
                is_own: false,
            }));
        }
        let own = own(caller, agent, wish, said).await?;
        Ok(own.map(|session| Self {
            session,
            follows: None,
            is_own: true,
        }))
    }

    /// Behind another response. Whether a third one came between is for the sessions to say: a request that comes again finds its
    /// own turn there.
    async fn behind(caller: &Caller, previous: &str) -> Result<Self, CompatError> {
        let (session, message) = kept::named(previous).unwrap_or_default();
        // Clients that send all items again where a response is gone look for this code.
        let missing = || {
            let text = "previous_response_id: there is no such response";
            CompatError::new(404, "previous_response_not_found", text)
        };
        let found = caller.thread(session).await;
        let session = found.map_err(|failure| or_absent(&failure, missing()))?;
        let messages = caller.messages(&session.id, None).await;
        let messages = messages.map_err(|failure| failed(&failure))?;
        kept::turn(&messages, message).ok_or_else(missing)?;
        Ok(Self {
            session,
            follows: Some(message.to_owned()),
            is_own: false,
        })
    }
}

/// The session that is made for a response. `None`: it is not kept.
async fn own(
    caller: &Caller,
    agent: &str,
    wish: &Wish,
    said: &str,
) -> Result<Option<Session>, CompatError> {
    let request = &*caller.meta.request_id;
    let new = NewSession {
        name: agent.to_owned(),
        user_id: caller.user.clone(),
        session_id: Some(kept::own_session(request, &caller.user, agent, said)),
        compact_strategy: Some(CompactStrategy::Off),
        ..NewSession::default()
    };
    match caller.ask::<CreateSession>(&new).await {
        Ok(made) => Ok(Some(made)),
        // Agents of the workspace have no sessions.
        Err(failure) if is(&failure, FailureCode::AgentNotFound) => match wish.requires() {
            true => {
                let text = "model: must be an agent of a file where the response is stored";
                Err(CompatError::new(400, "validation_error", text))
            }
            false => Ok(None),
        },
        // Nobody asked for it to be stored: it is answered all the same.
        Err(failure) if is(&failure, FailureCode::PayloadTooLarge) && !wish.requires() => Ok(None),
        Err(failure) => Err(failed(&failure)),
    }
}

/// The session that has a turn: one that fills its model was continued by another just before.
async fn place(caller: &Caller, session: Session) -> String {
    if session.compact_strategy == CompactStrategy::Off {
        return session.id;
    }
    let now = caller.thread(&session.id).await.ok();
    now.and_then(|now| now.successor_session_id)
        .unwrap_or(session.id)
}

/// `GET /v1/responses/{response_id}`.
pub(crate) async fn read_response(asked: Asked, Path(id): Path<String>) -> Response {
    answered(asked, |caller| async move {
        let found = Found::of(&caller, &id).await?;
        Ok(caller.reply(&found.shown()).await)
    })
    .await
}

/// `DELETE /v1/responses/{response_id}`: with its session, of which it is the only turn.
pub(crate) async fn delete_response(asked: Asked, Path(id): Path<String>) -> Response {
    answered(asked, |caller| async move {
        let (session, message) = kept::named(&id).unwrap_or_default();
        match caller.thread_now(session).await {
            Ok(now) => {
                let found = Found::among(now, message).ok_or_else(missing)?;
                if !found.alone {
                    let text =
                        "response_id: its conversation has other responses: delete the session";
                    return Err(CompatError::new(409, "conflict", text));
                }
            }
            // The request that deleted it succeeds again: the sessions remember it.
            Err(failure) if is(&failure, FailureCode::SessionNotFound) => {}
            Err(failure) => return Err(failed(&failure)),
        }
        let gone = caller.remove(session).await;
        gone.map_err(|failure| or_absent(&failure, missing()))?;
        let deleted = json!({"id": id, "object": "response", "deleted": true});
        Ok(caller.reply(&deleted).await)
    })
    .await
}

/// `POST /v1/responses/{response_id}/cancel`: ends its turn. One that is over stays as it is.
pub(crate) async fn cancel_response(asked: Asked, Path(id): Path<String>) -> Response {
    answered(asked, |caller| async move {
        let mut found = Found::of(&caller, &id).await?;
        if found.status == IN_PROGRESS {
            let which = caller.turn(&found.session, &found.message);
            let ended = caller.ask::<CancelTurn>(&which);
            ended.await.map_err(|failure| failed(&failure))?;
            found.status = "cancelled";
        }
        Ok(caller.reply(&found.shown()).await)
    })
    .await
}

const IN_PROGRESS: &str = "in_progress";

/// A response that is kept.
struct Found {
    session: String,
    /// The message of the user that it answers.
    message: String,
    head: Head,
    previous: Option<String>,
    answer: Option<Body>,
    status: &'static str,
    /// Whether its session has no other turn.
    alone: bool,
}

impl Found {
    async fn of(caller: &Caller, id: &str) -> Result<Self, CompatError> {
        // Who may not ask is refused first, whatever the id is like.
        let (session, message) = kept::named(id).unwrap_or_default();
        let now = caller.thread_now(session).await;
        let now = now.map_err(|failure| or_absent(&failure, missing()))?;
        Self::among(now, message).ok_or_else(missing)
    }

    /// The turn of a message in its session as that is now, which may be in progress.
    fn among(
        (session, messages, busy): (Session, Vec<SessionMessage>, bool),
        message: &str,
    ) -> Option<Self> {
        let turn = kept::turn(&messages, message)?;
        let all = i64::try_from(messages.len()).unwrap_or(i64::MAX);
        Some(Self {
            head: Head {
                id: kept::id(&session.id, message),
                created: clock::seconds_of(&turn.asked.created_at).unwrap_or_default(),
                model: agents::model(&session.agent),
            },
            previous: turn
                .before
                .map(|before| kept::shown_id(&kept::id(&session.id, before))),
            answer: turn.answer.map(kept::answered),
            status: match (turn.answer, busy && turn.last) {
                (Some(_), _) => "completed",
                (None, true) => IN_PROGRESS,
                (None, false) => "failed",
            },
            message: message.to_owned(),
            alone: turn.before.is_none() && turn.last && session.message_count <= all,
            session: session.id,
        })
    }

    fn shown(&self) -> Value {
        let place = Kept {
            session: self.session.clone(),
            previous: self.previous.clone(),
        };
        Responses::again(place, &self.head, self.answer.as_ref(), self.status)
    }
}

/// Answers, or says what failed.
async fn answered<W, F>(asked: Asked, work: W) -> Response
where
    W: FnOnce(Caller) -> F,
    F: Future<Output = Result<Response, CompatError>>,
{
    let id = asked.meta.request_id.clone();
    let outcome = async {
        let caller = Caller::new(asked).await;
        work(caller.map_err(|failure| failed(&failure))?).await
    };
    outcome
        .await
        .unwrap_or_else(|fault| told::<Responses>(&fault, &id))
}

fn missing() -> CompatError {
    absent("response_id: there is no such response")
}

fn absent(text: &str) -> CompatError {
    CompatError::new(404, "not_found", text)
}

/// What is not there is told in the words of the field that names it.
fn or_absent(failure: &Object, missing: CompatError) -> CompatError {
    match is(failure, FailureCode::SessionNotFound) {
        true => missing,
        false => failed(failure),
    }
}

/// A failure of the sessions in the words of these APIs.
pub(super) fn failed(failure: &Object) -> CompatError {
    let known = FailureCode::all().find(|one| is(failure, *one));
    let text = failure.get("message").and_then(Value::as_str);
    let seconds = failure.get("retry_after").and_then(Value::as_i64);
    let known = known.unwrap_or(FailureCode::InternalError);
    of_sessions(known, text.unwrap_or_default(), seconds)
}
