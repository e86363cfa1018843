//! A gateway made by hand: each test says what its services answer. It keeps what it heard.

use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use serde_json::{Value, json};
use tg_cli::args::Options;
use tg_cli::client::{Error, Result};
use tg_cli::interrupt::Interrupt;
use tg_cli::output::Output;
use tg_cli::registry;
use tg_cli::session::Session;
use tokio::sync::Notify;

/// One thing the gateway heard.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// A REST request: path with query, token, body.
    Rest(String, Option<String>, Value),
    /// A frame of the multiplexed socket.
    Frame(Value),
    /// A frame of the import socket.
    Import(Value),
    /// The client has read what an export that goes on, or a socket, had sent before a ping.
    Read,
    /// The client closed a socket in good form.
    Closed,
}

/// What a socket does in answer to a request.
pub enum Say {
    /// Sends the body, not the last one.
    Part(Value),
    /// Sends the body as the last one.
    Last(Value),
    /// Sends the frame as it is.
    Raw(Value),
    /// Sends a ping: the client answers it once it has read what came before.
    Ping,
    /// Closes the socket.
    Close,
}

type Rest = dyn Fn(&str, &Value) -> (u16, Value) + Send + Sync;
type Frames = dyn Fn(&Value) -> Vec<Say> + Send + Sync;

struct Inner {
    rest: Box<Rest>,
    frames: Box<Frames>,
    heard: Mutex<Vec<Heard>>,
    news: Notify,
}

/// A running gateway.
#[derive(Clone)]
pub struct Fake {
    pub url: String,
    inner: Arc<Inner>,
}

impl Fake {
    /// Starts one whose REST services answer by `rest`, whose socket answers by `frames`.
    pub async fn start(
        rest: impl Fn(&str, &Value) -> (u16, Value) + Send + Sync + 'static,
        frames: impl Fn(&Value) -> Vec<Say> + Send + Sync + 'static,
    ) -> Self {
        let inner = Arc::new(Inner {
            rest: Box::new(rest),
            frames: Box::new(frames),
            heard: Mutex::new(Vec::new()),
            news: Notify::new(),
        });
        let router = Router::new()
            .route("/api/v1/socket", get(socket))
            .route("/api/v1/flow/{flow}/import/{kind}", get(import))
            .route("/api/v1/flow/{flow}/export/{kind}", get(export))
            .fallback(any(rest_door))
            .layer(axum::extract::DefaultBodyLimit::disable())
            .with_state(inner.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("an address"));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, inner }
    }

    /// One with a socket only.
    pub async fn socket(frames: impl Fn(&Value) -> Vec<Say> + Send + Sync + 'static) -> Self {
        Self::start(|_, _| (404, json!({"error": "none"})), frames).await
    }

    /// One with REST only.
    pub async fn rest(rest: impl Fn(&str, &Value) -> (u16, Value) + Send + Sync + 'static) -> Self {
        Self::start(rest, |_| Vec::new()).await
    }

    /// All it heard so far.
    pub fn heard(&self) -> Vec<Heard> {
        self.inner.heard.lock().expect("heard").clone()
    }

    /// Waits until it heard something that fits.
    pub async fn hears(&self, fits: impl Fn(&Heard) -> bool) {
        let wait = async {
            loop {
                let news = self.inner.news.notified();
                if self.heard().iter().any(&fits) {
                    return;
                }
                news.await;
            }
        };
        bounded(wait).await;
    }

    /// Runs a command line against it.
    pub async fn tg(&self, line: &[&str]) -> Ran {
        self.tg_until(line, Interrupt::never()).await
    }

    /// Runs a command line as at a terminal of so many columns.
    pub async fn tg_at(&self, columns: usize, line: &[&str]) -> Ran {
        self.run(line, Interrupt::never(), Some(columns)).await
    }

    /// Runs a command line that may be interrupted.
    pub async fn tg_until(&self, line: &[&str], interrupt: Interrupt) -> Ran {
        self.run(line, interrupt, None).await
    }

    async fn run(&self, line: &[&str], interrupt: Interrupt, columns: Option<usize>) -> Ran {
        let argv: Vec<_> = std::iter::once("tg")
            .chain(line.iter().copied())
            .map(Into::into)
            .collect();
        let prepared = registry::parse(&argv).unwrap_or_else(|error| panic!("{error}"));
        let mut options = prepared.options.clone();
        options.url = Some(self.url.clone());
        let (data, talk) = (Buffer::default(), Buffer::default());
        let out = Output::to(Box::new(data.clone()), Box::new(talk.clone()), options.json);
        let out = match columns {
            Some(columns) => out.wide(columns),
            None => out,
        };
        let mut session = Session::new(options, out, interrupt);
        let result = bounded(prepared.run(&mut session)).await;
        Ran {
            data: data.text(),
            talk: talk.text(),
            result,
        }
    }
}

/// Options for a client of a gateway.
pub fn options(url: &str) -> Options {
    Options {
        url: Some(url.to_owned()),
        token: Some("tg_key".to_owned()),
        timeout: Duration::from_secs(20),
        ..Options::local()
    }
}

/// What a command line did.
#[derive(Debug)]
pub struct Ran {
    pub data: String,
    pub talk: String,
    pub result: Result<()>,
}

impl Ran {
    /// What it printed; it must have worked.
    pub fn printed(self) -> String {
        if let Err(error) = &self.result {
            panic!("{error}\n{}\n{}", self.data, self.talk);
        }
        self.data
    }

    /// Why it failed; it must have.
    pub fn error(self) -> Error {
        self.result.expect_err("it should have failed")
    }
}

/// The bodies of the REST requests a gateway heard.
pub fn asked(fake: &Fake) -> Vec<Value> {
    let body = |heard| match heard {
        Heard::Rest(_, _, body) => Some(body),
        _ => None,
    };
    fake.heard().into_iter().filter_map(body).collect()
}

/// Fails a test that hangs.
pub async fn bounded<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work)
        .await
        .expect("it hangs")
}

#[derive(Clone, Default)]
struct Buffer(Rc<RefCell<Vec<u8>>>);

impl Buffer {
    fn text(&self) -> String {
        String::from_utf8(self.0.borrow().clone()).expect("text")
    }
}

impl io::Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Inner {
    fn hear(&self, heard: Heard) {
        self.heard.lock().expect("heard").push(heard);
        self.news.notify_waiters();
    }
}

async fn rest_door(
    State(inner): State<Arc<Inner>>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let path = uri
        .path_and_query()
        .map(ToString::to_string)
        .unwrap_or_default();
    let token = headers
        .get("authorization")
        .and_then(|value| value.to_str().ok())
        .map(|value| value.replacen("Bearer ", "", 1));
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    inner.hear(Heard::Rest(path.clone(), token, body.clone()));
    let (status, reply) = (inner.rest)(&path, &body);
    let status = StatusCode::from_u16(status).expect("a status");
    match reply {
        Value::String(text) => (status, text).into_response(),
        reply => (status, axum::Json(reply)).into_response(),
    }
}

async fn socket(State(inner): State<Arc<Inner>>, upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(move |socket| async move { talk(inner, socket).await })
}

async fn talk(inner: Arc<Inner>, mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        let text = match message {
            Message::Text(text) => text,
            Message::Close(_) => return inner.hear(Heard::Closed),
            Message::Pong(_) => {
                inner.hear(Heard::Read);
                continue;
            }
            _ => continue,
        };
        let frame: Value = serde_json::from_str(&text).expect("JSON");
        inner.hear(Heard::Frame(frame.clone()));
        let says = match (frame.get("type"), frame.get("token")) {
            (Some(_), Some(token)) if token == "bad" => vec![Say::Raw(
                json!({"type": "auth-failed", "error": "auth failure"}),
            )],
            (Some(_), _) => vec![Say::Raw(
                json!({"type": "auth-ok", "default_workspace": "default"}),
            )],
            _ => (inner.frames)(&frame),
        };
        for say in says {
            let id = &frame["id"];
            let reply = match say {
                Say::Part(body) => json!({"id": id, "response": body, "complete": false}),
                Say::Last(body) => json!({"id": id, "response": body, "complete": true}),
                Say::Raw(frame) => frame,
                Say::Ping => {
                    let _ = socket.send(Message::Ping(Bytes::new())).await;
                    continue;
                }
                Say::Close => return,
            };
            if socket.send(Message::text(reply.to_string())).await.is_err() {
                return;
            }
        }
    }
}

/// The flow decides: `choosy` says what its store makes of each frame, if asked; `refused` is not let in, `cut` is ended after a frame, `told` gets an error
/// frame, all others take everything.
async fn import(
    State(inner): State<Arc<Inner>>,
    Path((flow, _kind)): Path<(String, String)>,
    Query(query): Query<Vec<(String, String)>>,
    upgrade: WebSocketUpgrade,
) -> Response {
    inner.hear(Heard::Rest(format!("import {flow}"), None, json!(query)));
    if flow == "refused" {
        return (
            StatusCode::FORBIDDEN,
            axum::Json(json!({"error": "access denied"})),
        )
            .into_response();
    }
    let ack = query.contains(&("ack".to_owned(), "1".to_owned()));
    if flow == "choosy" && query.contains(&("settled".to_owned(), "1".to_owned())) {
        return upgrade.on_upgrade(move |socket| async move { settle(inner, socket).await });
    }
    upgrade.on_upgrade(move |socket| async move { take(inner, flow, ack, socket).await })
}

/// Two records, then the end that the flow is named after: `stopped`, `whole`, `broken`, or none at all. Where none is, a ping
/// follows the records: the client answers it once it has read them.
async fn export(
    State(inner): State<Arc<Inner>>,
    Path((flow, kind)): Path<(String, String)>,
    Query(query): Query<Vec<(String, String)>>,
    upgrade: WebSocketUpgrade,
) -> Response {
    inner.hear(Heard::Rest(
        format!("export {flow} {kind}"),
        None,
        json!(query),
    ));
    if flow == "refused" {
        let why = json!({"error": "auth failure"});
        return (StatusCode::UNAUTHORIZED, axum::Json(why)).into_response();
    }
    upgrade.on_upgrade(move |mut socket| async move {
        for (id, collection) in [("urn:1", "c"), ("urn:2", "other")] {
            let mut frame = json!({
                "metadata": {"id": id, "root": "", "metadata": [], "collection": collection},
                "chunks": [{"chunk_id": format!("{id}/k"), "vector": [0.5], "vectors": [0.5]}],
            });
            if kind == "rows" {
                frame["schema_name"] = json!("cities");
                frame["values"] = json!([{"name": "Rome"}, {"name": id}]);
            }
            let _ = socket.send(Message::text(frame.to_string())).await;
        }
        let close = |code| {
            let reason = "that is all".into();
            Message::Close(Some(CloseFrame { code, reason }))
        };
        let end = match flow.as_str() {
            "stopped" => close(1001),
            "whole" => close(1000),
            "broken" => close(1011),
            _ => Message::Ping(Bytes::new()),
        };
        let _ = socket.send(end).await;
        while let Some(Ok(message)) = socket.recv().await {
            if matches!(message, Message::Pong(_)) {
                inner.hear(Heard::Read);
            }
        }
        inner.hear(Heard::Closed);
    })
}

/// A store that refuses the second frame and says nothing of the third, slowly: first what was asked, then what was done.
async fn settle(inner: Arc<Inner>, mut socket: WebSocket) {
    let stored = |frames: u64| json!({"stored": {"frames": frames, "rows": 2 * frames}});
    let error = |kind, text| json!({"type": kind, "message": text});
    let mut said = vec![stored(0)];
    let mut frames: u64 = 0;
    loop {
        for word in said.drain(..) {
            let _ = socket.send(Message::text(word.to_string())).await;
        }
        match socket.recv().await {
            Some(Ok(Message::Text(text))) => {
                let frame = serde_json::from_str(&text).expect("JSON");
                inner.hear(Heard::Import(frame));
                frames += 1;
                said.push(match frames {
                    2 => json!({"refused": {"frame": 2, "errors": [
                        {"error": error("bad-content", "values[1].n: must be a number")}]}}),
                    3 => json!({"unconfirmed": {"frame": 3, "error": error("timeout", "not in time")}}),
                    1 => stored(1),
                    _ => stored(frames - 2),
                });
            }
            Some(Ok(Message::Close(_))) | None => return inner.hear(Heard::Closed),
            Some(Ok(_)) => {}
            Some(Err(_)) => return,
        }
    }
}

/// With `ack` each frame is confirmed, and how many rows or chunks that makes.
async fn take(inner: Arc<Inner>, flow: String, ack: bool, mut socket: WebSocket) {
    let (mut frames, mut items) = (0, 0);
    while let Some(Ok(message)) = socket.recv().await {
        match message {
            Message::Text(text) => {
                let frame: Value = serde_json::from_str(&text).expect("JSON");
                let list = frame.get("values").or_else(|| frame.get("chunks"));
                items += list.and_then(Value::as_array).map_or(0, Vec::len);
                frames += 1;
                inner.hear(Heard::Import(frame));
                if ack {
                    let safe = json!({"confirmed": {"frames": frames, "rows": items}});
                    let _ = socket.send(Message::text(safe.to_string())).await;
                }
            }
            Message::Close(_) => return inner.hear(Heard::Closed),
            _ => continue,
        }
        if flow == "told" {
            let error = json!({"error": {"type": "bad-request", "message": "triples: not a list"}});
            let _ = socket.send(Message::text(error.to_string())).await;
        }
        if flow == "cut" || flow == "told" {
            let goodbye = CloseFrame {
                code: 1000,
                reason: "".into(),
            };
            let _ = socket.send(Message::Close(Some(goodbye))).await;
            // Reading on keeps what was said from being lost with the connection.
            while socket.recv().await.is_some_and(|message| message.is_ok()) {}
            return;
        }
    }
}
