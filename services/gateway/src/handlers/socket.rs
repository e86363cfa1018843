//! `GET /api/v1/socket` (and `/api/socket`): many questions on one WebSocket.
//!
//! One reader, one writer, and a task per question between them. The writer's queue is bounded: a
//! client that does not read makes its own questions wait, the reader goes on. A client with as many questions under
//! way as it may have is read ahead of, within a bound, and then not read until one of them ends; so that it can
//! always cancel one, that bound is for requests, and frames that cancel are obeyed as soon as they are read.
//! Nothing a client sends closes the socket, except a message beyond the frame limit (1009).

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Extension, Query, Request, State};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use futures::stream::SplitStream;
use serde::Deserialize;
use serde_json::Value;
use tg_mesh::TaskKind;
use tg_schemas::{Error, ErrorCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, sleep_until};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error as WsError, Message};
use tokio_util::sync::CancellationToken;

use super::edge::fresh_traceparent;
use super::heart::Heart;
use super::look_ahead::{LookAhead, Waiting};
use super::narrow::{FrameGate, TOO_LARGE};
use super::socket_frame::{self as frame, Incoming};
use super::socket_task::{self as task, Caller, Entry, UnderWay, text};
use super::socket_writer::{Outgoing, write};
use super::upgrade::{self, Socket};
use crate::auth::{Identity, Lapse};
use crate::budget::Reader;
use crate::call::Meta;
use crate::connection::Peer;
use crate::error::RequestError;
use crate::registry::Gate;
use crate::sending::Room;
use crate::state::{Shared, SocketRoom};
use crate::strangers::Stranger;

/// The query string: the npm client has its token here and sends no auth frame.
#[derive(Debug, Deserialize)]
pub(crate) struct Credentials {
    token: Option<String>,
}

/// Upgrades; always succeeds, except when those who are known have too many sockets.
pub(crate) async fn open(
    State(app): State<Shared>,
    Query(credentials): Query<Credentials>,
    Extension(meta): Extension<Meta>,
    Extension(peer): Extension<Peer>,
    mut request: Request,
) -> Response {
    let (response, upgrade) = match upgrade::accept(&mut request) {
        Ok(accepted) => accepted,
        Err(refused) => return refused.into_response(),
    };
    // A wrong token leaves time to send another.
    let token = credentials.token.or(app.auth.open().then(String::new));
    let known = match &token {
        Some(token) => match app.recognised(Some(token), &meta).await {
            Err(fault @ RequestError::Slowed { .. }) => return fault.into_response(),
            known => known.ok(),
        },
        None => None,
    };
    let (place, known) = match known.zip(token) {
        Some(known) => match app.socket_room(&known.0, meta.address) {
            Ok(_room) => (SocketPermit::Known { _room }, Some(known)),
            Err(fault) => return fault.into_response(),
        },
        None => {
            let address = peer.address.ip().to_canonical();
            (SocketPermit::Stranger(app.strangers.enter(address)), None)
        }
    };
    let sockets = app.sockets.clone();
    let mesh = app.mesh.clone();
    let socket = async move {
        let Ok(upgraded) = upgrade.await else {
            return;
        };
        let limit = app.options.settings.frame_bytes;
        let (socket, gate) = upgrade::socket(&app, upgraded, None, limit).await;
        metrics::gauge!("tg_gateway_sockets").increment(1.0);
        run(app, socket, known, meta, Admission { gate, place }).await;
        metrics::gauge!("tg_gateway_sockets").decrement(1.0);
    };
    mesh.spawn(TaskKind::Connection, sockets.track_future(socket));
    response
}

/// What holds a socket back whose caller is not known.
struct Admission {
    gate: Arc<FrameGate>,
    place: SocketPermit,
}

/// What a socket counts against.
enum SocketPermit {
    Stranger(Stranger),
    Known { _room: SocketRoom },
}

/// Who is known from the start, and their token.
type Known = Option<(Identity, String)>;

async fn run(app: Shared, socket: Socket, known: Known, meta: Meta, admission: Admission) {
    let (sink, stream) = socket.split();
    let (outgoing, queue) = mpsc::channel(app.options.settings.outgoing_frames);
    let gone = CancellationToken::new();
    let session = Session {
        permits: Arc::new(Semaphore::new(app.options.settings.requests_per_socket)),
        under_way: UnderWay::default(),
        waiting: LookAhead::new(app.options.settings.look_ahead()),
        heart: Heart::new(app.options.ping),
        caller: None,
        reader: None,
        lapse: None,
        admission,
        outgoing,
        room: app.sending.room(),
        gone: gone.clone(),
        meta: Meta {
            endpoint: "socket",
            ..meta
        },
        number: 0,
        app: app.clone(),
    };
    let written = CancellationToken::new();
    app.mesh.spawn(
        TaskKind::Connection,
        write(sink, queue, gone.clone(), written.clone()),
    );
    session.serve(stream, known).await;
    written.cancelled().await;
}

struct Session {
    app: Shared,
    permits: Arc<Semaphore>,
    under_way: UnderWay,
    waiting: LookAhead,
    heart: Heart,
    caller: Option<Caller>,
    /// Whose frames and answers wait here; known when the caller is.
    reader: Option<Reader>,
    lapse: Option<Lapse>,
    admission: Admission,
    outgoing: mpsc::Sender<Outgoing>,
    room: Room,
    /// The client is gone: everything ends.
    gone: CancellationToken,
    meta: Meta,
    /// Of the last frame.
    number: u64,
}

/// What a session does next.
enum Event {
    Frame(Option<Result<Message, WsError>>),
    /// A question ended: another may begin.
    Permit(OwnedSemaphorePermit),
    Beat,
    /// The caller's credential is no good any more.
    Lapsed,
    /// Nobody said who is there.
    Late,
    /// Nobody did yet, and another needs the place.
    PushedOut,
    Closing,
    Gone,
}

impl Session {
    async fn serve(mut self, mut stream: SplitStream<Socket>, known: Known) {
        if let Some((identity, token)) = known {
            self.is(&identity, token);
        }
        let late = Instant::now() + self.app.options.settings.stranger_time();
        let close = loop {
            match self.next(&mut stream, late).await {
                Event::Frame(Some(Ok(message))) => self.take(message).await,
                Event::Frame(Some(Err(fault))) => break self.broken(&fault),
                Event::Frame(None) | Event::Gone => break None,
                Event::Permit(permit) => {
                    if let Some(frame) = self.waiting.pop() {
                        self.ask(frame, permit);
                    }
                }
                Event::Beat => {
                    // A full queue means that the client has enough to answer to.
                    let _ = self.outgoing.try_send(Message::Ping(Bytes::new()).into());
                }
                Event::Lapsed => break self.lapsed().await,
                Event::PushedOut => {
                    let reason = "too many sockets without authentication; try again";
                    break Some(goodbye(CloseCode::Again, reason));
                }
                Event::Late => break Some(goodbye(CloseCode::Policy, "no authentication in time")),
                Event::Closing => break self.drain().await,
            }
        };
        match close {
            Some(close) => {
                let closing = self.outgoing.send(Message::Close(Some(close)).into());
                tokio::select! {
                    _ = closing => {}
                    () = self.gone.cancelled() => {}
                }
            }
            None => self.gone.cancel(),
        }
    }

    async fn next(&mut self, stream: &mut SplitStream<Socket>, late: Instant) -> Event {
        let lapse = async {
            match &mut self.lapse {
                Some(lapse) => drop(lapse.await),
                None => std::future::pending().await,
            }
        };
        let pushed_out = async {
            match &self.admission.place {
                SocketPermit::Stranger(stranger) => stranger.pushed_out().cancelled().await,
                SocketPermit::Known { .. } => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.gone.cancelled() => Event::Gone,
            () = self.app.closing.cancelled() => Event::Closing,
            () = lapse => Event::Lapsed,
            () = pushed_out => Event::PushedOut,
            () = sleep_until(late), if self.caller.is_none() => Event::Late,
            message = stream.next(), if self.waiting.has_room() => Event::Frame(message),
            permit = self.permits.clone().acquire_owned(), if !self.waiting.is_empty() => {
                permit.map_or(Event::Gone, Event::Permit)
            }
            () = self.heart.beat() => Event::Beat,
        }
    }

    async fn take(&mut self, message: Message) {
        let bytes = match message {
            Message::Text(text) => text.into(),
            Message::Binary(bytes) => bytes,
            _ => return,
        };
        self.number += 1;
        match frame::parse(&bytes, self.caller.is_some()) {
            Ok(Incoming::Auth(token)) => {
                let reply = match self.admit(token).await {
                    Ok(workspace) => frame::auth_ok(&workspace),
                    Err(
                        fault @ (RequestError::Unchecked
                        | RequestError::NoRoom(_)
                        | RequestError::Slowed { .. }
                        | RequestError::Service(_)),
                    ) => fault.frame(None),
                    Err(_) => frame::auth_failed(),
                };
                self.say(&reply).await;
            }
            Ok(Incoming::Cancel(id)) => self.cancel(&id).await,
            Ok(Incoming::Ask(id)) => {
                let frame = Waiting {
                    id,
                    bytes,
                    number: self.number,
                    _share: None,
                };
                match self.permits.clone().try_acquire_owned() {
                    Ok(permit) if self.waiting.is_empty() => self.ask(frame, permit),
                    _ => self.keep(frame).await,
                }
            }
            Err(refused) => {
                let frame = refused.fault.frame(refused.id.as_ref());
                self.say(&frame).await;
            }
        }
    }

    /// Lets a frame wait, if there is room for it.
    async fn keep(&mut self, frame: Waiting) {
        let Some(reader) = &self.reader else { return };
        match self.app.budget.receive(reader, frame.bytes.len(), 0) {
            Ok(share) => self.waiting.push(Waiting {
                _share: Some(share),
                ..frame
            }),
            Err(fault) => self.say(&frame::failure(&frame.id, &fault)).await,
        }
    }

    /// Who holds a token is the caller from now on; their workspace.
    async fn admit(&mut self, token: String) -> Result<Arc<str>, RequestError> {
        let identity = self.app.recognised(Some(&token), &self.meta).await?;
        if matches!(self.admission.place, SocketPermit::Stranger(_)) {
            let _room = self.app.socket_room(&identity, self.meta.address)?;
            self.admission.place = SocketPermit::Known { _room };
        }
        self.is(&identity, token);
        Ok(identity.workspace)
    }

    /// Who is there, from now on.
    fn is(&mut self, identity: &Identity, token: String) {
        let lapse = (self.app.auth).lapse(identity, Gate::Authenticated, Default::default());
        self.lapse = Some(lapse);
        self.caller = Some(Caller(token.into()));
        self.reader = Some(Reader::known(identity));
        self.admission.gate.open(Reader::known(identity));
    }

    async fn say(&self, frame: &Value) {
        tokio::select! {
            _ = self.outgoing.send(text(frame).into()) => {}
            () = self.gone.cancelled() => {}
        }
    }

    async fn cancel(&mut self, id: &Value) {
        for (_, token) in self
            .under_way
            .lock()
            .get(&id.to_string())
            .into_iter()
            .flatten()
        {
            token.cancel();
        }
        for _ in 0..self.waiting.remove(id) {
            let error = Error::new(ErrorCode::Cancelled, "cancelled");
            self.say(&frame::failure(id, &RequestError::Service(error)))
                .await;
        }
    }

    fn ask(&self, waiting: Waiting, permit: OwnedSemaphorePermit) {
        let Some((caller, reader)) = self.caller.clone().zip(self.reader.clone()) else {
            return;
        };
        let cancel = self.gone.child_token();
        let Waiting {
            id, bytes, number, ..
        } = waiting;
        let entry = Entry::new(&self.under_way, &id, number, cancel.clone(), permit);
        let meta = self.meta.of_next(fresh_traceparent());
        let task = task::answer(task::Task {
            app: self.app.clone(),
            caller,
            reader,
            id,
            bytes,
            number,
            meta,
            cancel,
            gone: self.gone.clone(),
            outgoing: self.outgoing.clone(),
            room: self.room.clone(),
            entry,
        });
        self.app.mesh.spawn(TaskKind::Connection, task);
    }

    /// Every question is told by itself that its caller may not stay; then the socket is.
    async fn lapsed(&self) -> Option<CloseFrame> {
        let bound = std::time::Duration::from_secs(1);
        let _ = tokio::time::timeout(bound, self.idle()).await;
        Some(goodbye(
            CloseCode::Policy,
            "the credential was revoked or has expired",
        ))
    }

    /// The process stops: what runs may end, within the drain time.
    async fn drain(&self) -> Option<CloseFrame> {
        if tokio::time::timeout(self.app.options.drain, self.idle())
            .await
            .is_err()
        {
            tracing::warn!("questions of a socket were cut off at the end of the drain time");
        }
        Some(goodbye(CloseCode::Away, "the gateway is closing"))
    }

    /// Waits until no question is under way.
    async fn idle(&self) {
        let all = u32::try_from(self.app.options.settings.requests_per_socket).unwrap_or(u32::MAX);
        let _ = self.permits.acquire_many(all).await;
    }

    /// A message beyond the limit closes the socket; any other fault says that the client is gone.
    fn broken(&self, fault: &WsError) -> Option<CloseFrame> {
        broken(fault, &self.admission.gate)
    }
}

fn goodbye(code: CloseCode, reason: &'static str) -> CloseFrame {
    CloseFrame {
        code,
        reason: reason.into(),
    }
}

/// How a socket is closed whose bytes cannot be read any more; `None` where the client is gone.
pub(super) fn broken(fault: &WsError, gate: &FrameGate) -> Option<CloseFrame> {
    let capacity = matches!(fault, WsError::Capacity(_));
    (gate.refusal()).or_else(|| capacity.then(|| goodbye(CloseCode::Size, TOO_LARGE)))
}
