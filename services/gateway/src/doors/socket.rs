//! `GET /api/v1/socket` (and `/api/socket`): many questions on one WebSocket.
//!
//! One reader, one writer, and a task per question between them. The writer's queue is bounded: a
//! client that does not read makes its own questions wait, the reader goes on. Nothing a client sends
//! closes the socket, except a message beyond the frame limit (1009).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Extension, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use tg_mesh::TaskKind;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_tungstenite::tungstenite::Error as WsError;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::edge::fresh_traceparent;
use super::socket_frame::{self as frame, Incoming, Question};
use crate::auth::Identity;
use crate::dispatch::{Call, Meta};
use crate::fault::{Fault, json_response};
use crate::state::Shared;
use crate::translate::error_body;

/// A client that takes nothing for this long is gone.
const STUCK: Duration = Duration::from_secs(60);

/// The query string: the npm client has its token here and sends no auth frame.
#[derive(Debug, Deserialize)]
pub(crate) struct Credentials {
    token: Option<String>,
}

/// Upgrades; always succeeds, except when there are too many sockets.
pub(crate) async fn open(
    State(app): State<Shared>,
    Query(credentials): Query<Credentials>,
    Extension(meta): Extension<Meta>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let Some(room) = app.socket_room() else {
        return no_room();
    };
    let limit = app.options.limits.frame;
    upgrade
        .max_message_size(limit)
        .max_frame_size(limit)
        .on_upgrade(move |socket| {
            let sockets = app.sockets.clone();
            sockets.track_future(async move {
                metrics::gauge!("tg_gateway_sockets").increment(1.0);
                run(app, socket, credentials.token, meta).await;
                metrics::gauge!("tg_gateway_sockets").decrement(1.0);
                drop(room);
            })
        })
}

/// Too many sockets.
pub(super) fn no_room() -> Response {
    let Fault::Service(error) = Fault::busy("here") else {
        return Response::new(axum::body::Body::empty());
    };
    json_response(StatusCode::SERVICE_UNAVAILABLE, &error_body(&error))
}

async fn run(app: Shared, socket: WebSocket, token: Option<String>, meta: Meta) {
    let (sink, stream) = socket.split();
    let (outgoing, queue) = mpsc::channel(app.options.limits.outgoing);
    let gone = CancellationToken::new();
    let session = Session {
        permits: Arc::new(Semaphore::new(app.options.limits.per_socket)),
        running: Arc::default(),
        outgoing,
        gone: gone.clone(),
        meta: Meta {
            door: "socket",
            ..meta
        },
        app: app.clone(),
    };
    let written = CancellationToken::new();
    app.mesh.spawn(
        TaskKind::Connection,
        write(sink, queue, gone.clone(), written.clone()),
    );
    session.serve(stream, token).await;
    written.cancelled().await;
}

/// Questions under way by the text of their id, each with its token.
type Running = Arc<Mutex<HashMap<String, Vec<(u64, CancellationToken)>>>>;

/// An authenticated caller, with the credential to look at again: a revoked key ends a session, too.
#[derive(Clone)]
struct Caller {
    identity: Identity,
    token: Arc<str>,
}

struct Session {
    app: Shared,
    permits: Arc<Semaphore>,
    running: Running,
    outgoing: mpsc::Sender<Message>,
    /// The client is gone: everything ends.
    gone: CancellationToken,
    meta: Meta,
}

impl Session {
    async fn serve(self, mut stream: SplitStream<WebSocket>, token: Option<String>) {
        let mut caller = match token {
            Some(token) => self.known(token).await,
            None if self.app.auth.open() => self.known(String::new()).await,
            None => None,
        };
        let mut number = 0;
        let close = loop {
            let message = tokio::select! {
                message = stream.next() => message,
                () = self.gone.cancelled() => break None,
                () = self.app.closing.cancelled() => break self.drain().await,
            };
            let bytes = match message {
                Some(Ok(Message::Text(text))) => text.into(),
                Some(Ok(Message::Binary(bytes))) => bytes,
                Some(Ok(_)) => continue,
                Some(Err(fault)) => break too_big(fault),
                None => break None,
            };
            number += 1;
            match frame::parse(&bytes, caller.is_some()) {
                Ok(Incoming::Auth(token)) => match self.known(token).await {
                    Some(known) => {
                        self.say(&frame::auth_ok(&known.identity.workspace)).await;
                        caller = Some(known);
                    }
                    None => self.say(&frame::auth_failed()).await,
                },
                Ok(Incoming::Cancel(id)) => self.cancel(&id),
                Ok(Incoming::Ask(question)) => match &caller {
                    Some(caller) => self.ask(caller.clone(), *question, number).await,
                    None => self.refuse(&question.id, Fault::AuthFailure).await,
                },
                Err(refused) => {
                    let frame = refused.fault.frame(refused.id.as_ref());
                    self.say(&frame).await;
                }
            }
        };
        match close {
            Some(close) => {
                let _ = self.outgoing.send(Message::Close(Some(close))).await;
            }
            None => self.gone.cancel(),
        }
    }

    /// Who holds a token.
    async fn known(&self, token: String) -> Option<Caller> {
        let identity = self.app.auth.authenticate(Some(&token)).await.ok()?;
        Some(Caller {
            identity,
            token: token.into(),
        })
    }

    async fn say(&self, frame: &Value) {
        let message = Message::Text(frame.to_string().into());
        tokio::select! {
            _ = self.outgoing.send(message) => {}
            () = self.gone.cancelled() => {}
        }
    }

    async fn refuse(&self, id: &Value, fault: Fault) {
        self.say(&frame::failure(id, &fault)).await;
    }

    fn cancel(&self, id: &Value) {
        let running = self.running.lock();
        for (_, token) in running.get(&id.to_string()).into_iter().flatten() {
            token.cancel();
        }
    }

    async fn ask(&self, caller: Caller, question: Question, number: u64) {
        let Ok(permit) = self.permits.clone().try_acquire_owned() else {
            self.refuse(&question.id, Fault::busy("on this socket"))
                .await;
            return;
        };
        let cancel = self.gone.child_token();
        let key = question.id.to_string();
        let entry = Entry {
            running: self.running.clone(),
            key: key.clone(),
            number,
            _permit: permit,
        };
        let mut running = self.running.lock();
        let same = running.entry(key).or_default();
        same.push((number, cancel.clone()));
        drop(running);
        let meta = Meta {
            traceparent: fresh_traceparent(),
            ..self.meta.clone()
        };
        let span = tracing::info_span!(
            "question",
            request = %meta.request_id,
            number,
            service = question.target.name(),
        );
        let task = answer(Task {
            app: self.app.clone(),
            caller,
            question,
            meta,
            cancel,
            gone: self.gone.clone(),
            outgoing: self.outgoing.clone(),
            _entry: entry,
        });
        self.app
            .mesh
            .spawn(TaskKind::Connection, task.instrument(span));
    }

    /// The process stops: what runs may end, within the drain time.
    async fn drain(&self) -> Option<CloseFrame> {
        let all = u32::try_from(self.app.options.limits.per_socket).unwrap_or(u32::MAX);
        let idle = self.permits.acquire_many(all);
        if tokio::time::timeout(self.app.options.drain, idle)
            .await
            .is_err()
        {
            tracing::warn!("questions of a socket were cut off at the end of the drain time");
        }
        Some(CloseFrame {
            code: close_code::AWAY,
            reason: "the gateway is closing".into(),
        })
    }
}

/// A message beyond the limit closes the socket; any other fault says that the client is gone.
pub(super) fn too_big(fault: axum::Error) -> Option<CloseFrame> {
    let inner = fault.into_inner();
    let capacity = matches!(inner.downcast_ref::<WsError>(), Some(WsError::Capacity(_)));
    capacity.then(|| CloseFrame {
        code: close_code::SIZE,
        reason: "the message is larger than the limit".into(),
    })
}

/// A question in the list of those under way; leaves it when dropped.
struct Entry {
    running: Running,
    key: String,
    number: u64,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut running = self.running.lock();
        if let Some(same) = running.get_mut(&self.key) {
            same.retain(|(number, _)| *number != self.number);
            if same.is_empty() {
                running.remove(&self.key);
            }
        }
    }
}

struct Task {
    app: Shared,
    caller: Caller,
    question: Question,
    meta: Meta,
    cancel: CancellationToken,
    gone: CancellationToken,
    outgoing: mpsc::Sender<Message>,
    _entry: Entry,
}

/// Carries the parts of one answer to the writer. Ends with the socket.
async fn answer(task: Task) {
    let gone = task.gone.clone();
    tokio::select! {
        () = forward(task) => {}
        () = gone.cancelled() => {}
    }
}

async fn forward(task: Task) {
    let Question {
        id,
        target,
        body,
        workspace,
        timeout,
        detach,
    } = task.question;
    let call = Call {
        target,
        body,
        workspace,
        timeout,
        detach,
        whole: false,
        meta: task.meta,
    };
    let started = async {
        let token = Some(&*task.caller.token);
        let identity = task.app.auth.authenticate(token).await?;
        task.app.start(&identity, call, task.cancel).await
    };
    let mut running = match started.await {
        Ok(running) => running,
        Err(fault) => {
            let frame = frame::failure(&id, &fault);
            let _ = task.outgoing.send(text(&frame)).await;
            return;
        }
    };
    while let Some(part) = running.next().await {
        if task
            .outgoing
            .send(text(&frame::part(&id, part)))
            .await
            .is_err()
        {
            return;
        }
    }
}

fn text(frame: &Value) -> Message {
    Message::Text(frame.to_string().into())
}

/// Writes until everybody who could send is gone, or the client is. Whatever is ready goes out in one
/// flush.
async fn write(
    mut sink: SplitSink<WebSocket, Message>,
    mut queue: mpsc::Receiver<Message>,
    gone: CancellationToken,
    written: CancellationToken,
) {
    let _done = written.drop_guard();
    loop {
        let message = tokio::select! {
            message = queue.recv() => message,
            () = gone.cancelled() => None,
        };
        let Some(mut message) = message else { break };
        let batch = async {
            loop {
                let last = matches!(message, Message::Close(_));
                sink.feed(message).await?;
                match queue.try_recv() {
                    Ok(next) if !last => message = next,
                    _ => {
                        sink.flush().await?;
                        return Ok::<bool, axum::Error>(last);
                    }
                }
            }
        };
        match tokio::time::timeout(STUCK, batch).await {
            Ok(Ok(false)) => {}
            Ok(Ok(true)) => break,
            Ok(Err(_)) | Err(_) => break,
        }
    }
    gone.cancel();
    // Whoever still waits for room in the queue learns that nobody reads it.
    drop(queue);
    let _ = tokio::time::timeout(Duration::from_secs(1), sink.close()).await;
}
