//! A small MCP server over HTTP, with one session: tools that find, fail, hang, and say too much.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::extract::State;
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;

/// Bytes of what the tool `much` says.
pub const MUCH: usize = 2 << 20;

/// The running server. Its tools: `fail` says what was wrong, `object` answers with structured content, `picture` with an image,
/// `hang` never, `much` with [`MUCH`] bytes; any other says `found`.
#[derive(Default)]
pub struct McpServer {
    address: String,
    /// Sessions so far.
    pub opened: AtomicUsize,
    /// Calls so far: name, arguments, and what else was said.
    pub calls: Mutex<Vec<Value>>,
    /// What the last request came with.
    pub authorization: Mutex<Option<String>>,
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
        let one = post(take).delete(async || StatusCode::OK);
        let routes = Router::new().route("/mcp", one).with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Ok(server)
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
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
            "much" => json!({"content": text(&"m".repeat(MUCH))}),
            "hang" => {
                self.hanging.notify_one();
                std::future::pending().await
            }
            _ => json!({"content": text("found")}),
        }
    }
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
    let params = &message["params"];
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => {
            server.opened.fetch_add(1, Ordering::SeqCst);
            json!({
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "fake", "version": "1"},
            })
        }
        "tools/call" => server.call(params).await,
        method => {
            if method == "notifications/cancelled" {
                server.cancelled.notify_one();
            }
            return StatusCode::ACCEPTED.into_response();
        }
    };
    let reply = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    ([("mcp-session-id", "s1")], Json(reply)).into_response()
}
