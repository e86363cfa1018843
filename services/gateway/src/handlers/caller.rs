//! Who asks the sessions in words of others, and how operations are asked for them.

use std::time::Duration;

use axum::body::Body as HttpBody;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use serde_json::Value;
use tg_schemas::limits::CHAT_BODY;
use tg_schemas::operations::{
    CancelledTurn, DeleteSession, Empty, Failure, FailureCode, GetSession, ListMessages, Object,
    OneSession, Operation, SESSIONS, Session, SessionMessage, TENANT, WhenBusy, WhichMessages,
    read as fits, write,
};
use tg_schemas::{Error, ErrorCode};
use tokio_util::sync::CancellationToken;

use crate::ask::Part;
use crate::auth::Identity;
use crate::budget::Reading;
use crate::call::{Call, Leave, Meta, Target};
use crate::engine::langgraph::shown;
use crate::engine::translate::Body;
use crate::error::json_written;
use crate::handlers::asked::Asked;
use crate::handlers::operations::{failed_with, refused, result};
use crate::handlers::read;
use crate::handlers::shape::object_of;
use crate::running::Running;
use crate::state::Shared;

/// The header that names the user; without it the caller is their own user.
const USER: &str = "spass-user-id";
/// Messages of a thread that are told at most: the newest.
const MESSAGES: i64 = 1_000;

/// Who asks, for whom and where.
pub(super) struct Caller {
    pub(super) app: Shared,
    pub(super) identity: Identity,
    pub(super) meta: Meta,
    pub(super) headers: HeaderMap,
    pub(super) workspace: Option<String>,
    pub(super) user: String,
    pub(super) timeout: Option<Duration>,
}

impl Caller {
    pub(super) async fn new(asked: Asked) -> Result<Self, Object> {
        let Asked { app, meta, headers } = asked;
        let identity = app.known(read::key(&headers), &meta).await;
        let identity = identity.map_err(|error| refused(&error))?;
        Self::of(app, identity, meta, headers)
    }

    /// The same of somebody who is known.
    pub(super) fn of(
        app: Shared,
        identity: Identity,
        meta: Meta,
        headers: HeaderMap,
    ) -> Result<Self, Object> {
        let user = named(&headers, USER)?.unwrap_or_else(|| identity.id.to_string());
        Ok(Self {
            workspace: named(&headers, TENANT)?,
            timeout: read::timeout(&headers).map_err(|error| refused(&error))?,
            app,
            identity,
            meta,
            headers,
            user,
        })
    }

    /// The same, whose questions have no more time than the gateway gives an answer that is not streamed.
    pub(super) fn bounded(mut self) -> Self {
        let own = self.app.options.timeout;
        self.timeout = Some(self.timeout.map_or(own, |asked| asked.min(own)));
        self
    }

    /// The body of a request; what is held of it counts. None is an empty one.
    pub(super) async fn body(&self, body: HttpBody) -> Result<(Body, Option<Reading>), Object> {
        let headers = &self.headers;
        let length = headers.get(header::CONTENT_LENGTH);
        let chunked = headers.contains_key(header::TRANSFER_ENCODING);
        if length.map_or(!chunked, |length| length == "0") {
            return Ok((Body::new(), None));
        }
        let read = read::body_of(&self.app, headers, body, Some(&self.identity), CHAT_BODY).await;
        let (body, reading) = read.map_err(|error| refused(&error))?;
        Ok((body, Some(reading)))
    }

    /// Starts an operation. Each is a question of its own.
    pub(super) async fn start<O: Operation>(
        &self,
        request: &O::Request,
        streaming: bool,
    ) -> Result<Running, Object> {
        let mut body = write(request).map_err(|error| failed_with(&error))?;
        body.insert("operation".to_owned(), O::META.name.into());
        body.remove("streaming");
        if streaming {
            body.insert("streaming".to_owned(), true.into());
        }
        let target = Target::service(SESSIONS, &body);
        let call = Call {
            target: target.map_err(|error| refused(&error))?,
            body,
            workspace: self.workspace.clone(),
            timeout: self.timeout,
            leave: Leave::Cancel,
            whole: !streaming,
            meta: Meta {
                number: uuid::Uuid::new_v4().to_string().into(),
                ..self.meta.clone()
            },
        };
        let running = self
            .app
            .start(&self.identity, call, CancellationToken::new());
        running.await.map_err(|error| refused(&error))
    }

    /// Asks an operation, and waits for its reply.
    pub(super) async fn ask<O: Operation>(&self, request: &O::Request) -> Result<O::Reply, Object> {
        let running = self.start::<O>(request, false).await?;
        replied::<O>(running).await
    }

    /// The newest messages of a thread, once its runs are over where that is waited for.
    pub(super) async fn messages(
        &self,
        thread: &str,
        when_busy: Option<WhenBusy>,
    ) -> Result<Vec<SessionMessage>, Object> {
        let which = WhichMessages {
            session_id: thread.to_owned(),
            user_id: self.user.clone(),
            newest: Some(MESSAGES),
            when_busy,
            ..WhichMessages::default()
        };
        let mut newest = self.ask::<ListMessages>(&which).await?.messages;
        // What is told has more bytes than what is kept.
        let mut room = CHAT_BODY;
        let mut told = 0;
        for message in newest.iter().rev() {
            let size = shown::size(message);
            if size > room && told > 0 {
                break;
            }
            room = room.saturating_sub(size);
            told += 1;
        }
        newest.drain(..newest.len() - told);
        Ok(newest)
    }

    /// The messages of a thread as they are, and whether a run of it is in progress.
    pub(super) async fn messages_now(
        &self,
        thread: &str,
    ) -> Result<(Vec<SessionMessage>, bool), Object> {
        match self.messages(thread, Some(WhenBusy::Refuse)).await {
            Err(failure) if is(&failure, FailureCode::SessionBusy) => {
                Ok((self.messages(thread, None).await?, true))
            }
            found => Ok((found?, false)),
        }
    }

    /// The thread with an id, whichever agent it has.
    pub(super) async fn thread(&self, id: &str) -> Result<Session, Object> {
        self.ask::<GetSession>(&self.which(id)).await
    }

    /// A thread with its newest messages, and whether a run of it is in progress.
    pub(super) async fn thread_now(
        &self,
        id: &str,
    ) -> Result<(Session, Vec<SessionMessage>, bool), Object> {
        let thread = self.thread(id).await?;
        let (messages, busy) = self.messages_now(&thread.id).await?;
        Ok((thread, messages, busy))
    }

    /// Deletes a thread.
    pub(super) async fn remove(&self, id: &str) -> Result<(), Object> {
        let gone = self.ask::<DeleteSession>(&self.which(id)).await;
        gone.map(|Empty {}| ())
    }

    /// Names a thread without its agent.
    pub(super) fn which(&self, id: &str) -> OneSession {
        OneSession {
            name: String::new(),
            session_id: id.to_owned(),
            user_id: self.user.clone(),
        }
    }

    /// Names the turn that answers a message: another one of its thread may be in progress by now.
    pub(super) fn turn(&self, thread: &str, message: &str) -> CancelledTurn {
        CancelledTurn {
            name: String::new(),
            session_id: thread.to_owned(),
            user_id: self.user.clone(),
            message_id: Some(message.to_owned()),
        }
    }

    /// A reply of some size.
    pub(super) async fn reply(&self, value: &Value) -> Response {
        let outlet = self.app.sending.outlet(&self.identity);
        let text = outlet.hold_whole(value.to_string().into()).await;
        json_written(StatusCode::OK, text)
    }
}

/// The reply of an operation that was started.
pub(super) async fn replied<O: Operation>(mut running: Running) -> Result<O::Reply, Object> {
    loop {
        match running.next().await {
            Some(Part::Body {
                body,
                last: true,
                failed,
            }) => {
                let reply = fits::<O::Reply>(&result(body.into_tree(), failed)?);
                return reply.map_err(|_| {
                    let text = "the answer could not be read";
                    object_of(&Failure::new(FailureCode::InternalError, text))
                });
            }
            Some(Part::Body { .. }) => {}
            Some(Part::Error(error)) => return Err(failed_with(&error)),
            None => return Err(incomplete()),
        }
    }
}

pub(super) fn incomplete() -> Object {
    failed_with(&Error::new(
        ErrorCode::Interrupted,
        "the answer is incomplete",
    ))
}

/// The text of a header, if it says something.
fn named(headers: &HeaderMap, name: &str) -> Result<Option<String>, Object> {
    let Some(value) = headers.get(name) else {
        return Ok(None);
    };
    let text = value.to_str().map_err(|_| {
        let text = format!("{name}: must consist of visible ASCII characters");
        object_of(&Failure::new(FailureCode::InvalidHeader, text))
    })?;
    let text = text.trim();
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

pub(super) fn code(failure: &Object) -> &str {
    let code = failure.get("code").and_then(Value::as_str);
    code.unwrap_or_default()
}

/// Whether a failure has a code.
pub(super) fn is(failure: &Object, one: FailureCode) -> bool {
    code(failure) == one.as_str()
}
