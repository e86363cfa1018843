//! From a request to a WebSocket.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::narrow::{FrameGate, Narrow, Sizes};
use crate::budget::Reader;
use crate::state::App;

/// Bytes that a socket reads at once. Its codec zeroes as many before each read, also before one that finds nothing, and keeps
/// room for them while the socket is idle: its own default is 128 KiB.
const READ: usize = 16 << 10;

/// A socket.
pub(super) type Socket = WebSocketStream<Narrow<TokioIo<Upgraded>>>;

/// Why a request does not become one.
pub(super) type Refusal = (StatusCode, &'static str);

/// The response that turns a request into a socket, and what becomes one.
pub(super) fn accept(request: &mut Request) -> Result<(Response, OnUpgrade), Refusal> {
    let headers = request.headers();
    let refused = |status: StatusCode, text: &'static str| Err((status, text));
    if !has_word(headers, header::CONNECTION, "upgrade")
        || !has_word(headers, header::UPGRADE, "websocket")
    {
        return refused(
            StatusCode::BAD_REQUEST,
            "this is a WebSocket: the request must ask for an upgrade",
        );
    }
    if headers.get(header::SEC_WEBSOCKET_VERSION) != Some(&HeaderValue::from_static("13")) {
        return refused(StatusCode::BAD_REQUEST, "sec-websocket-version: must be 13");
    }
    let Some(key) = headers.get(header::SEC_WEBSOCKET_KEY) else {
        return refused(StatusCode::BAD_REQUEST, "sec-websocket-key: is required");
    };
    let accepted = derive_accept_key(key.as_bytes());
    let upgrade = hyper::upgrade::on(request);
    let response = Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header(header::CONNECTION, "upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_ACCEPT, accepted)
        .body(Body::empty());
    match response {
        Ok(response) => Ok((response, upgrade)),
        Err(_) => refused(StatusCode::BAD_REQUEST, "sec-websocket-key: is malformed"),
    }
}

fn has_word(headers: &HeaderMap, name: header::HeaderName, word: &str) -> bool {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|one| one.trim().eq_ignore_ascii_case(word))
}

/// The socket of an upgraded connection, and what says how large its messages may be.
pub(super) async fn socket(
    app: &App,
    upgraded: Upgraded,
    known: Option<Reader>,
    limit: usize,
) -> (Socket, Arc<FrameGate>) {
    let gate = Arc::new(FrameGate::new(known));
    let limits = &app.options.settings;
    let sizes = Sizes {
        limit,
        stranger: limits.stranger_bytes,
        rate: limits.body_bytes_per_second,
    };
    let io = TokioIo::new(upgraded);
    let narrow = Narrow::new(io, gate.clone(), sizes, app.budget.clone());
    let config = WebSocketConfig::default()
        .read_buffer_size(READ)
        .max_message_size(Some(limit))
        .max_frame_size(Some(limit));
    let socket = WebSocketStream::from_raw_socket(narrow, Role::Server, Some(config)).await;
    (socket, gate)
}
