//! A small MCP server over HTTP, with one session: tools that find, fail, hang, and say too much.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use futures::stream;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::process::client;

/// Bytes of what the tool `much` says.
pub const MUCH: usize = 2 << 20;
/// The header that names a session.
const SESSION: &str = "mcp-session-id";

/// The running server. Its tools: `fail` says what was wrong, `object` answers with structured content, `picture` with an image,
/// `hang` never, `much` with [`MUCH`] bytes, `document` with the text of its argument `id`, `again` with what [`McpServer::again`]
/// says; any other says `found`.
#[derive(Default)]
pub struct McpServer {
    address: String,
    /// Sessions so far.
    pub opened: AtomicUsize,
    /// It has forgotten its session, as after a restart: the next request in it is not found.
    pub forgets: AtomicBool,
    /// Calls so far: name, arguments, and what else was said.
    pub calls: Mutex<Vec<Value>>,
    /// What it says of its tools, in pages; nothing: it has none to list.
    pub listed: Mutex<Vec<Vec<Value>>>,
    /// The page that each page says comes next, in place of the one that does.
    pub next: Mutex<Option<String>>,
    /// How often it was asked for them.
    pub lists: AtomicUsize,
    /// It promises to announce changes of its list.
    pub promises: AtomicBool,
    /// It has the stream that it announces them on. Without it, a promise is not kept.
    pub streams: AtomicBool,
    /// Notify it to announce a change, at the latest to the next client that opens the stream.
    pub changed: Notify,
    /// What `document` answers with.
    pub texts: Mutex<BTreeMap<String, String>>,
    /// Where the tool `again` asks an agent in its turn, as deep as it is told; it answers with the status and the reply.
    pub again: Mutex<String>,
    /// What the last request came with.
    pub authorization: Mutex<Option<String>>,
    /// Events before each answer, which then is one itself; nothing: answers are plain.
    pub before: Mutex<Option<String>>,
    /// Told when a call hangs.
    pub hanging: Notify,
    /// Told when a call was cancelled.
    pub cancelled: Notify,
}

impl McpServer {
    /// Starts on a free port.
    ///
    /// # Errors
    /// When there is none.
    pub async fn start() -> std::io::Result<Arc<Self>> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let server = Arc::new(Self {
            address: listener.local_addr()?.to_string(),
            ..Self::default()
        });
        let one = post(take).get(announce).delete(async || StatusCode::OK);
        let routes = Router::new().route("/mcp", one).with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Ok(server)
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// How often a tool was called.
    pub fn count(&self, tool: &str) -> usize {
        let calls = self.calls.lock();
        calls.iter().filter(|call| call["name"] == tool).count()
    }

    /// A page of its tools.
    fn list(&self, params: &Value) -> Value {
        self.lists.fetch_add(1, Ordering::SeqCst);
        let cursor = params["cursor"].as_str().unwrap_or("0");
        let at: usize = cursor.parse().unwrap_or_default();
        let pages = self.listed.lock();
        let mut page = json!({"tools": pages.get(at).cloned().unwrap_or_default()});
        if at + 1 < pages.len() {
            page["nextCursor"] = (at + 1).to_string().into();
        }
        if let Some(next) = self.next.lock().as_deref() {
            page["nextCursor"] = next.into();
        }
        page
    }

    /// The result of a call; a call that hangs has none.
    async fn call(&self, params: &Value) -> Value {
        self.calls.lock().push(params.clone());
        let text = |text: &str| json!([{"type": "text", "text": text}]);
        match params["name"].as_str().unwrap_or_default() {
            "fail" => json!({"content": text("no such thing"), "isError": true}),
            "object" => json!({"content": [], "structuredContent": {"n": 1}}),
            "picture" => json!({"content": [
                {"type": "text", "text": "see"},
                {"type": "image", "data": "AA==", "mimeType": "image/png"},
            ]}),
            "document" => {
                let id = params["arguments"]["id"].as_str().unwrap_or_default();
                let said = self.texts.lock().get(id).cloned().unwrap_or_default();
                json!({"content": text(&said)})
            }
            "much" => json!({"content": text(&"m".repeat(MUCH))}),
            "again" => {
                let url = self.again.lock().clone();
                let depth = params["_meta"]["threadgraph/caller-depth"].to_string();
                json!({"content": text(&asked_again(&url, &depth).await)})
            }
            "hang" => {
                self.hanging.notify_one();
                std::future::pending().await
            }
            _ => json!({"content": text("found")}),
        }
    }
}

/// What an agent replies that is asked at this depth.
async fn asked_again(url: &str, depth: &str) -> String {
    let asked = async {
        let request = client()?.post(url).header("SPASS-Caller-Depth", depth);
        let reply = request
            .json(&json!({"message": "once more"}))
            .send()
            .await?;
        let status = reply.status().as_u16();
        anyhow::Ok(format!("{status} {}", reply.text().await?))
    };
    asked.await.unwrap_or_else(|error| error.to_string())
}

/// The stream of its announcements.
async fn announce(State(server): State<Arc<McpServer>>) -> Response {
    if !server.streams.load(Ordering::SeqCst) {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let events = stream::unfold(server, |server| async move {
        server.changed.notified().await;
        let note = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        Some((Ok::<_, Infallible>(format!("data: {note}\n\n")), server))
    });
    let kind = (CONTENT_TYPE, "text/event-stream");
    ([kind], Body::from_stream(events)).into_response()
}

async fn take(
    State(server): State<Arc<McpServer>>,
    headers: HeaderMap,
    Json(message): Json<Value>,
) -> Response {
    let said = headers.get(AUTHORIZATION).and_then(|it| it.to_str().ok());
    if let Some(said) = said {
        *server.authorization.lock() = Some(said.to_owned());
    }
    if headers.contains_key(SESSION) && server.forgets.swap(false, Ordering::SeqCst) {
        return StatusCode::NOT_FOUND.into_response();
    }
    let params = &message["params"];
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => {
            server.opened.fetch_add(1, Ordering::SeqCst);
            json!({
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {"listChanged": server.promises.load(Ordering::SeqCst)}},
                "serverInfo": {"name": "fake", "version": "1"},
            })
        }
        "tools/call" => server.call(params).await,
        "tools/list" => server.list(params),
        method => {
            if method == "notifications/cancelled" {
                server.cancelled.notify_one();
            }
            return StatusCode::ACCEPTED.into_response();
        }
    };
    let reply = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    let session = (SESSION, "s1");
    let Some(before) = server.before.lock().clone() else {
        return ([session], Json(reply)).into_response();
    };
    let kind = (CONTENT_TYPE.as_str(), "text/event-stream");
    let events = format!("{before}event: message\nid: 1\ndata: {reply}\n\n");
    ([session, kind], events).into_response()
}
