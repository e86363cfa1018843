//! From a request to a WebSocket whose frames are small until its caller is known.
//!
//! The library that speaks the protocol makes room for a whole frame as soon as it has read the frame's head, and
//! its limit cannot change. So the heads are read here first, as long as the peer is a stranger.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

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

/// The socket of an upgraded connection: messages of at most `limit` bytes, of `stranger` bytes until the gate opens.
pub(super) async fn socket(
    upgraded: Upgraded,
    limit: usize,
    stranger: usize,
) -> (Socket, Arc<FrameGate>) {
    let gate = Arc::new(FrameGate {
        open: AtomicBool::new(false),
        refused: AtomicBool::new(false),
        limit: stranger as u64,
    });
    let narrow = Narrow {
        inner: TokioIo::new(upgraded),
        gate: gate.clone(),
        heads: Heads::default(),
    };
    let config = WebSocketConfig::default()
        .max_message_size(Some(limit))
        .max_frame_size(Some(limit));
    let socket = WebSocketStream::from_raw_socket(narrow, Role::Server, Some(config)).await;
    (socket, gate)
}

/// Says when frames may be large.
#[derive(Debug)]
pub(super) struct FrameGate {
    open: AtomicBool,
    refused: AtomicBool,
    limit: u64,
}

impl FrameGate {
    /// The caller is known.
    pub(super) fn open(&self) {
        self.open.store(true, Ordering::Release);
    }

    /// A frame was too large for a stranger.
    pub(super) fn refused(&self) -> bool {
        self.refused.load(Ordering::Acquire)
    }
}

/// Bytes of a socket; looks at the frames' heads while the gate is closed.
pub(super) struct Narrow<S> {
    inner: S,
    gate: Arc<FrameGate>,
    heads: Heads,
}

/// Where in the frames the bytes are.
#[derive(Debug, Default)]
struct Heads {
    head: [u8; 10],
    filled: usize,
    /// Bytes until the next head: of mask and payload.
    skip: u64,
    /// Payload of the message so far.
    message: u64,
}

impl Heads {
    /// Walks over bytes; `false` if a message is larger than the limit.
    fn walk(&mut self, mut bytes: &[u8], limit: u64) -> bool {
        while !bytes.is_empty() {
            if self.skip > 0 {
                let step = usize::try_from(self.skip).map_or(bytes.len(), |n| n.min(bytes.len()));
                self.skip -= step as u64;
                bytes = &bytes[step..];
                continue;
            }
            self.head[self.filled] = bytes[0];
            self.filled += 1;
            bytes = &bytes[1..];
            let Some(length) = self.length() else {
                continue;
            };
            let masked = self.head[1] & 0x80 != 0;
            // A continuation adds to its message; control frames are small by the protocol.
            self.message = match self.head[0] & 0x0f {
                0 => self.message.saturating_add(length),
                1 | 2 => length,
                _ if length > 125 => return false,
                _ => self.message,
            };
            if self.message > limit {
                return false;
            }
            self.skip = length + if masked { 4 } else { 0 };
            self.filled = 0;
        }
        true
    }

    /// The payload's length, once the head is there.
    fn length(&self) -> Option<u64> {
        if self.filled < 2 {
            return None;
        }
        let (size, length) = match self.head[1] & 0x7f {
            126 => (
                4,
                u64::from(u16::from_be_bytes([self.head[2], self.head[3]])),
            ),
            127 => {
                let mut long = [0; 8];
                long.copy_from_slice(&self.head[2..]);
                (10, u64::from_be_bytes(long))
            }
            short => (2, u64::from(short)),
        };
        (self.filled == size).then_some(length)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Narrow<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut self.inner).poll_read(cx, buffer);
        if self.gate.open.load(Ordering::Acquire) {
            return outcome;
        }
        if matches!(outcome, Poll::Ready(Ok(()))) {
            let limit = self.gate.limit;
            if !self.heads.walk(&buffer.filled()[before..], limit) {
                buffer.set_filled(before);
                self.gate.refused.store(true, Ordering::Release);
                return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
            }
        }
        outcome
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Narrow<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// Whether a stranger may send these bytes, which come in pieces.
#[cfg(test)]
pub(super) fn walked<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limit: u64) -> bool {
    let mut heads = Heads::default();
    pieces.into_iter().all(|piece| heads.walk(piece, limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(opcode: u8, length: u64) -> Vec<u8> {
        let mut bytes = vec![opcode];
        match length {
            0..126 => bytes.push(0x80 | length as u8),
            126..65536 => {
                bytes.push(0x80 | 126);
                bytes.extend((length as u16).to_be_bytes());
            }
            _ => {
                bytes.push(0x80 | 127);
                bytes.extend(length.to_be_bytes());
            }
        }
        bytes.extend([0; 4]);
        bytes
    }

    fn with_payload(opcode: u8, length: u64) -> Vec<u8> {
        let mut bytes = frame(opcode, length);
        bytes.resize(bytes.len() + length as usize, 7);
        bytes
    }

    #[test]
    fn heads_are_found_wherever_the_bytes_are_cut() {
        let mut bytes = with_payload(0x81, 3);
        bytes.extend(with_payload(0x89, 0));
        bytes.extend(with_payload(0x82, 4096));
        bytes.extend(with_payload(0x81, 126));
        for size in [1, 2, 3, 7, 4096] {
            let mut heads = Heads::default();
            assert!(bytes.chunks(size).all(|piece| heads.walk(piece, 4096)));
            assert!(!heads.walk(&frame(0x81, 4097), 4096), "{size}");
        }
    }

    #[test]
    fn what_is_too_large_is_refused_at_its_head_and_in_pieces() {
        for length in [4097, 70_000, 50 << 20, u64::MAX] {
            assert!(!Heads::default().walk(&frame(0x81, length), 4096));
        }
        let mut heads = Heads::default();
        assert!(heads.walk(&with_payload(0x01, 4000), 4096));
        assert!(heads.walk(&with_payload(0x89, 100), 4096));
        assert!(!heads.walk(&with_payload(0x00, 100), 4096));
    }
}
