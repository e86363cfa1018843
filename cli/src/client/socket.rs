//! The multiplexed WebSocket: many calls on one connection, replies matched by id.
//!
//! It never reconnects: a broken connection ends the command.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{SinkExt, StreamExt};
use serde_json::{Map, Value, json};
use tg_schemas::limits;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error as WsError, Message};
use tokio_tungstenite::{
    Connector, MaybeTlsStream, WebSocketStream, connect_async_tls_with_config,
};

use super::error::{Error, Result};
use super::http::base_url;
use super::tls;
use crate::args::Options;
use crate::interrupt::Interrupt;

pub(super) type Stream = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Calls in flight at once; the gateway starts about 15 per socket.
const WINDOW: usize = 10;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// One request to a service.
#[derive(Debug, Clone)]
pub struct Call {
    /// Service, e.g. `config` or `agent`.
    pub service: Cow<'static, str>,
    /// Flow of a flow service.
    pub flow: Option<String>,
    /// The service's own request.
    pub request: Value,
    /// What becomes of it when the socket closes.
    pub on_disconnect: Option<String>,
    /// A run of the agent that is joined again, instead of the request.
    pub resume: Option<Value>,
}

impl Call {
    /// A call to a service of the workspace or the system.
    pub fn global(service: &'static str, request: Value) -> Self {
        Self {
            service: service.into(),
            flow: None,
            request,
            on_disconnect: None,
            resume: None,
        }
    }

    /// A call to a service of a flow.
    pub fn in_flow(flow: &str, service: &'static str, request: Value) -> Self {
        Self {
            service: service.into(),
            flow: Some(flow.to_owned()),
            request,
            on_disconnect: None,
            resume: None,
        }
    }
}

/// An authenticated connection.
#[derive(Debug)]
pub struct Socket {
    stream: Stream,
    workspace: Option<String>,
    sent: u64,
    timeout: Duration,
    interrupt: Interrupt,
}

impl Socket {
    /// Connects and authenticates.
    ///
    /// # Errors
    /// [`Error::Usage`] where the options name no gateway; [`Error::Unreachable`] where none answers; [`Error::Service`] where
    /// it refuses the connection or the token; [`Error::Timeout`] and [`Error::Protocol`] where it does not say whether it
    /// takes the token; [`Error::Interrupted`].
    pub async fn connect(options: &Options, interrupt: Interrupt) -> Result<Self> {
        let url = ws_url(options, "api/v1/socket", &[])?;
        let stream = open(&url, options, &interrupt).await?;
        let mut socket = Self {
            stream,
            workspace: options.workspace.clone(),
            sent: 0,
            timeout: options.timeout,
            interrupt,
        };
        socket
            .authenticate(options.token.as_deref().unwrap_or(""))
            .await?;
        Ok(socket)
    }

    /// The same connection, ended by another interrupt.
    pub fn watching(self, interrupt: Interrupt) -> Self {
        Self { interrupt, ..self }
    }

    async fn authenticate(&mut self, token: &str) -> Result<()> {
        self.write(&json!({"type": "auth", "token": token})).await?;
        let reply = self.read().await?;
        match reply.get("type").and_then(Value::as_str) {
            Some("auth-ok") => Ok(()),
            Some("auth-failed") => Err(Error::Service {
                kind: "auth-failed".to_owned(),
                message: text_or(&reply, "error", "the token was refused"),
            }),
            _ => Err(Error::Protocol("no answer to the auth frame".to_owned())),
        }
    }

    /// Sends one call; its replies are read from what comes back.
    ///
    /// # Errors
    /// [`Error::Service`] (`unavailable`) where the connection is gone.
    pub async fn start(&mut self, call: &Call) -> Result<Replies<'_>> {
        let id = self.send(call).await?;
        Ok(Replies {
            socket: self,
            id,
            done: false,
            run: String::new(),
        })
    }

    /// Sends one call and returns its last reply.
    ///
    /// # Errors
    /// As [`Replies::next`], and [`Error::Protocol`] where the call ends without a reply.
    pub async fn ask(&mut self, call: &Call) -> Result<Value> {
        let mut replies = self.start(call).await?;
        let mut last = None;
        while let Some(reply) = replies.next().await? {
            last = Some(reply);
        }
        last.ok_or_else(|| Error::Protocol("no reply".to_owned()))
    }

    /// Sends many calls, several at a time, and returns each one's last reply in the order asked.
    /// The outer error is the connection's, an inner one that call's own.
    ///
    /// # Errors
    /// The connection's: [`Error::Service`] (`unavailable`) where it breaks, [`Error::Timeout`], [`Error::Protocol`] for a
    /// frame that is not JSON, [`Error::Interrupted`]. Nothing is known of any call then.
    pub async fn ask_all(&mut self, calls: &[Call]) -> Result<Vec<Result<Value>>> {
        let mut outcomes = Vec::with_capacity(calls.len());
        for window in calls.chunks(WINDOW) {
            outcomes.extend(self.ask_window(window).await?);
        }
        Ok(outcomes)
    }

    async fn ask_window(&mut self, calls: &[Call]) -> Result<Vec<Result<Value>>> {
        let mut waiting = HashMap::new();
        for (index, call) in calls.iter().enumerate() {
            waiting.insert(self.send(call).await?, index);
        }
        let mut outcomes: Vec<Option<Result<Value>>> = calls.iter().map(|_| None).collect();
        while !waiting.is_empty() {
            let frame = self.read().await?;
            let id = frame.get("id").and_then(Value::as_str).unwrap_or_default();
            let Some(&index) = waiting.get(id) else {
                continue;
            };
            let id = id.to_owned();
            let (outcome, last) = match Reply::read(frame) {
                Ok(reply) => (Ok(reply.body), reply.last),
                Err(error) => (Err(error), true),
            };
            outcomes[index] = Some(outcome);
            if last {
                waiting.remove(&id);
            }
        }
        let missing = || Err(Error::Protocol("no reply".to_owned()));
        Ok(outcomes
            .into_iter()
            .map(|outcome| outcome.unwrap_or_else(missing))
            .collect())
    }

    /// Says goodbye. Errors do not matter any more.
    pub async fn close(mut self) {
        self.hang_up().await;
    }

    async fn hang_up(&mut self) {
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, self.stream.close(None)).await;
    }

    async fn send(&mut self, call: &Call) -> Result<String> {
        self.sent += 1;
        let id = format!("req-{}", self.sent);
        let mut frame = Map::new();
        frame.insert("id".to_owned(), json!(id));
        if let Some(workspace) = &self.workspace {
            frame.insert("workspace".to_owned(), json!(workspace));
        }
        if let Some(place) = &call.resume {
            frame.insert("resume".to_owned(), place.clone());
            self.write(&Value::Object(frame)).await?;
            return Ok(id);
        }
        frame.insert("service".to_owned(), json!(call.service));
        if let Some(flow) = &call.flow {
            frame.insert("flow".to_owned(), json!(flow));
        }
        if let Some(word) = &call.on_disconnect {
            frame.insert("on-disconnect".to_owned(), json!(word));
        }
        frame.insert("request".to_owned(), call.request.clone());
        self.write(&Value::Object(frame)).await?;
        Ok(id)
    }

    async fn write(&mut self, frame: &Value) -> Result<()> {
        self.stream
            .send(Message::text(frame.to_string()))
            .await
            .map_err(broken)
    }

    /// The next JSON frame, whosever it is.
    async fn read(&mut self) -> Result<Value> {
        let outcome = tokio::select! {
            outcome = tokio::time::timeout(self.timeout, next_text(&mut self.stream)) => outcome,
            () = self.interrupt.wait() => {
                self.hang_up().await;
                return Err(Error::Interrupted);
            }
        };
        match outcome {
            Ok(text) => serde_json::from_slice(text?.as_bytes())
                .map_err(|error| Error::Protocol(format!("a frame is not JSON ({error})"))),
            Err(_) => {
                self.hang_up().await;
                Err(Error::Timeout(self.timeout.as_secs()))
            }
        }
    }
}

/// The replies to one call. Reading ends at the last one or at the first error.
#[derive(Debug)]
pub struct Replies<'a> {
    socket: &'a mut Socket,
    id: String,
    done: bool,
    run: String,
}

impl Replies<'_> {
    /// Id of the run that the last reply was of; empty: of none.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// The next reply; `None` after the last.
    ///
    /// # Errors
    /// [`Error::Service`] with what the service says, or where the connection breaks; [`Error::Timeout`] where nothing came
    /// for as long as the session waits; [`Error::Protocol`] for a frame that is not JSON; [`Error::Interrupted`].
    pub async fn next(&mut self) -> Result<Option<Value>> {
        while !self.done {
            let frame = self.socket.read().await?;
            // An error without an id can only be about what we sent.
            let mine = match frame.get("id") {
                Some(id) => id.as_str() == Some(self.id.as_str()),
                None => frame.get("error").is_some(),
            };
            if !mine {
                continue;
            }
            if let Some(run) = frame.get("run").and_then(Value::as_str) {
                run.clone_into(&mut self.run);
            }
            let reply = Reply::read(frame).inspect_err(|_| self.done = true)?;
            self.done = reply.last;
            return Ok(Some(reply.body));
        }
        Ok(None)
    }
}

struct Reply {
    body: Value,
    last: bool,
}

impl Reply {
    fn read(mut frame: Value) -> Result<Self> {
        let real = |error: &&Value| !error.is_null();
        if let Some(error) = frame.get("error").filter(real) {
            return Err(Error::from_body(error));
        }
        let body = frame
            .get_mut("response")
            .map(Value::take)
            .unwrap_or_else(|| json!({}));
        if let Some(error) = body.get("error").filter(real) {
            return Err(Error::from_body(error));
        }
        let flag = |value: &Value, key: &str| value.get(key).and_then(Value::as_bool) == Some(true);
        let last = flag(&frame, "complete")
            || flag(&body, "end_of_dialog")
            || flag(&body, "end_of_session");
        Ok(Self { body, last })
    }
}

/// The WebSocket address of a path, with a query.
pub(super) fn ws_url(options: &Options, path: &str, query: &[(&str, &str)]) -> Result<String> {
    let base = base_url(options.address())?;
    let mut url = base
        .join(path)
        .map_err(|error| Error::Usage(format!("{path}: {error}")))?;
    if !query.is_empty() {
        url.query_pairs_mut().extend_pairs(query);
    }
    let text = url.to_string();
    Ok(match text.strip_prefix("https") {
        Some(rest) => format!("wss{rest}"),
        None => text.replacen("http", "ws", 1),
    })
}

/// Opens a WebSocket; a refusal becomes the error its status stands for.
pub(super) async fn open(url: &str, options: &Options, interrupt: &Interrupt) -> Result<Stream> {
    super::install_tls();
    let secure = match url.starts_with("wss:") {
        true => Some(Connector::Rustls(Arc::new(tls::config(options)?))),
        false => None,
    };
    let config = WebSocketConfig::default()
        .max_message_size(Some(limits::SOCKET_ANSWER))
        .max_frame_size(Some(limits::SOCKET_ANSWER));
    let connect = connect_async_tls_with_config(url, Some(config), true, secure);
    let outcome = tokio::select! {
        outcome = tokio::time::timeout(CONNECT_TIMEOUT, connect) => outcome,
        () = interrupt.wait() => return Err(Error::Interrupted),
    };
    match outcome {
        Ok(Ok((stream, _))) => Ok(stream),
        Ok(Err(WsError::Http(response))) => {
            let status = response.status().as_u16();
            let body = response
                .body()
                .as_deref()
                .map(String::from_utf8_lossy)
                .unwrap_or_default();
            let said = serde_json::from_slice::<Value>(body.as_bytes());
            // A gateway refuses in JSON; a page or nothing is somebody else's.
            if said.is_ok_and(|said| said.get("error").is_some()) {
                return Err(Error::from_status(status, &body));
            }
            let address = url.split("/api/").next().unwrap_or(url);
            Err(Error::Protocol(format!(
                "no Threadgraph gateway at {address}: status {status} to the request for a socket"
            )))
        }
        Ok(Err(error)) => {
            let reason = tls::reason(&error).unwrap_or_else(|| error.to_string());
            Err(unreachable(url, reason))
        }
        Err(_) => Err(unreachable(url, "no answer".to_owned())),
    }
}

/// The next text of a stream; control frames are not text.
pub(super) async fn next_text(stream: &mut Stream) -> Result<String> {
    loop {
        match stream.next().await {
            Some(Ok(Message::Text(text))) => return Ok(text.to_string()),
            Some(Ok(Message::Binary(bytes))) => {
                return Ok(String::from_utf8_lossy(&bytes).into_owned());
            }
            Some(Ok(Message::Close(_))) | None => {
                return Err(Error::Service {
                    kind: "unavailable".to_owned(),
                    message: "the gateway closed the connection".to_owned(),
                });
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(broken(error)),
        }
    }
}

pub(super) fn broken(error: WsError) -> Error {
    Error::Service {
        kind: "unavailable".to_owned(),
        message: format!("the connection to the gateway broke ({error})"),
    }
}

/// The address without its query, which may hold a token.
fn unreachable(url: &str, reason: String) -> Error {
    let shown = url.split('?').next().unwrap_or(url);
    Error::Unreachable {
        url: shown.to_owned(),
        reason,
    }
}

fn text_or(value: &Value, key: &str, default: &str) -> String {
    value
        .get(key)
        .and_then(Value::as_str)
        .unwrap_or(default)
        .to_owned()
}
