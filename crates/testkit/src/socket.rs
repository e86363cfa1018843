//! A plain client of the multiplexed WebSocket, as the protocol describes it. For black-box tests.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures::stream::SplitSink;
use futures::{SinkExt, StreamExt};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

type Sink = SplitSink<WebSocketStream<MaybeTlsStream<TcpStream>>, Message>;
type Waiting = Arc<Mutex<HashMap<String, mpsc::Sender<Value>>>>;

/// Frames kept for a reader that is behind.
const BACKLOG: usize = 65_536;

/// One authenticated socket. Requests of different ids run side by side.
pub struct Socket {
    sink: tokio::sync::Mutex<Sink>,
    waiting: Waiting,
    next: AtomicU64,
    /// Named in each request.
    workspace: Option<String>,
    reader: tokio::task::JoinHandle<()>,
}

impl Socket {
    /// Connects and authenticates; an empty token is the anonymous attempt.
    ///
    /// # Errors
    /// The gateway does not take the connection, or the token.
    pub async fn connect(url: &str, token: &str) -> Result<Self> {
        let url = format!("{}api/v1/socket", url.replacen("http", "ws", 1));
        let (stream, _) = tokio_tungstenite::connect_async(&url)
            .await
            .context("socket")?;
        let (mut sink, mut source) = stream.split();
        let auth = json!({"type": "auth", "token": token}).to_string();
        sink.send(Message::text(auth)).await?;
        let first = source.next().await.context("closed at once")??;
        let first: Value = serde_json::from_str(first.to_text()?)?;
        if first["type"] != "auth-ok" {
            bail!("not accepted: {first}");
        }
        let waiting = Waiting::default();
        let inner = waiting.clone();
        let reader = tokio::spawn(async move {
            while let Some(Ok(message)) = source.next().await {
                let Ok(text) = message.to_text() else {
                    continue;
                };
                let Ok(frame) = serde_json::from_str::<Value>(text) else {
                    continue;
                };
                let id = frame["id"].as_str().unwrap_or_default().to_owned();
                let to = inner.lock().get(&id).cloned();
                if let Some(to) = to {
                    let _ = to.try_send(frame);
                }
            }
            inner.lock().clear();
        });
        Ok(Self {
            sink: tokio::sync::Mutex::new(sink),
            waiting,
            next: AtomicU64::new(1),
            workspace: None,
            reader,
        })
    }

    /// Names a workspace in each request from now on.
    pub fn within(mut self, workspace: &str) -> Self {
        self.workspace = Some(workspace.to_owned());
        self
    }

    /// Sends a request and returns its frames as they come.
    ///
    /// # Errors
    /// The connection is closed.
    pub async fn send(&self, envelope: Value) -> Result<Frames> {
        let id = format!("req-{}", self.next.fetch_add(1, Ordering::Relaxed));
        let (tx, rx) = mpsc::channel(BACKLOG);
        self.waiting.lock().insert(id.clone(), tx);
        let mut envelope = envelope;
        envelope["id"] = json!(id);
        if let Some(workspace) = &self.workspace {
            envelope["workspace"] = json!(workspace);
        }
        self.raw(&envelope.to_string()).await?;
        Ok(Frames {
            id,
            frames: rx,
            waiting: self.waiting.clone(),
            ended: false,
        })
    }

    /// Asks a flow service and reads the whole answer.
    ///
    /// # Errors
    /// The connection closes, or the answer does not end within the bound.
    pub async fn ask(&self, service: &str, flow: &str, request: Value) -> Result<Vec<Value>> {
        let envelope = json!({"service": service, "flow": flow, "request": request});
        self.send(envelope)
            .await?
            .all(Duration::from_secs(60))
            .await
    }

    /// Asks a service that belongs to no flow.
    ///
    /// # Errors
    /// The connection closes, the answer does not end within the bound, or has no response.
    pub async fn ask_service(&self, service: &str, request: Value) -> Result<Value> {
        let envelope = json!({"service": service, "request": request});
        let frames = self
            .send(envelope)
            .await?
            .all(Duration::from_secs(60))
            .await?;
        frames.last().cloned().context("no frame")
    }

    /// Sends text as it is.
    ///
    /// # Errors
    /// The connection is closed.
    pub async fn raw(&self, text: &str) -> Result<()> {
        Ok(self
            .sink
            .lock()
            .await
            .send(Message::text(text.to_owned()))
            .await?)
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// The connection is closed.
    pub async fn raw_bytes(&self, bytes: Vec<u8>) -> Result<()> {
        Ok(self.sink.lock().await.send(Message::binary(bytes)).await?)
    }

    /// Whether the server still keeps the socket open.
    pub fn open(&self) -> bool {
        !self.reader.is_finished()
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

/// The frames of one request.
pub struct Frames {
    /// Its id.
    pub id: String,
    frames: mpsc::Receiver<Value>,
    waiting: Waiting,
    ended: bool,
}

impl Frames {
    /// The next frame; `None` after the complete one, or when the socket closed.
    pub async fn next(&mut self) -> Option<Value> {
        if self.ended {
            return None;
        }
        let frame = self.frames.recv().await?;
        self.ended = frame["complete"] == true;
        Some(frame)
    }

    /// All frames; an error when the complete one does not come in time.
    ///
    /// # Errors
    /// The complete one does not come in time.
    pub async fn all(mut self, bound: Duration) -> Result<Vec<Value>> {
        let mut all = Vec::new();
        let read = async {
            while let Some(frame) = self.next().await {
                all.push(frame);
            }
        };
        tokio::time::timeout(bound, read)
            .await
            .with_context(|| format!("no complete frame after {}", brief(&all)))?;
        if !self.ended {
            bail!(
                "the socket closed before the answer was complete: {}",
                brief(&all)
            );
        }
        Ok(all)
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        self.waiting.lock().remove(&self.id);
    }
}

/// Frames as text, without the triples that make them long.
pub fn brief(frames: &[Value]) -> String {
    let mut frames = frames.to_vec();
    for frame in &mut frames {
        if let Some(chunk) = frame["response"].as_object_mut() {
            chunk.remove("explain_triples");
        }
    }
    Value::Array(frames).to_string()
}

/// The contents of all chunks of one message type, joined.
pub fn text_of(frames: &[Value], message_type: &str) -> String {
    frames
        .iter()
        .map(|frame| &frame["response"])
        .filter(|chunk| chunk["message_type"] == message_type)
        .filter_map(|chunk| chunk["content"].as_str())
        .collect()
}
