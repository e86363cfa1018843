//! One connection, made secure where the gateway has a certificate: requests one after the other, each with its peer
//! beside it, until either side ends it.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::http::{Method, Request, Response, StatusCode};
use bytes::Bytes;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tower_service::Service;

use crate::handshake::secured;
use crate::listener::ConnectionPermits;
use crate::slow_body::paced;
use crate::spelling;
use crate::state::Shared;
use crate::wire::{Life, Wire};

/// Longest head of a request.
const HEAD: usize = 64 << 10;

/// Who is at the other end of a request's connection.
#[derive(Clone)]
pub(crate) struct Peer {
    /// Where it comes from.
    pub(crate) address: SocketAddr,
    /// Its progress.
    pub(crate) life: Arc<Life>,
}

/// Serves a connection to its end. When the endpoints close, what runs may end.
pub(crate) async fn serve(
    app: Shared,
    router: Router,
    stream: TcpStream,
    address: SocketAddr,
    held: ConnectionPermits,
) {
    let wire = Wire::new(stream, held);
    let peer = Peer {
        address,
        life: wire.life(),
    };
    let Some(certificate) = &app.certificate else {
        return requests(app, router, wire, peer).await;
    };
    let secure = tokio::select! {
        secure = secured(wire, certificate.config()) => secure,
        // Nobody waits for an answer on it.
        () = app.closing.cancelled() => None,
    };
    if let Some(secure) = secure {
        requests(app, router, secure, peer).await;
    }
}

/// Serves the requests of a connection, secure or not.
async fn requests<S>(app: Shared, router: Router, stream: S, peer: Peer)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let rate = app.options.settings.body_bytes_per_second;
    let service = service_fn(move |request| answer(router.clone(), peer.clone(), rate, request));
    let served = hyper::server::conn::http1::Builder::new()
        .max_buf_size(HEAD)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    tokio::pin!(served);
    let mut closing = false;
    loop {
        tokio::select! {
            outcome = &mut served => {
                if let Err(fault) = outcome {
                    tracing::debug!(%fault, "a connection ended early");
                }
                return;
            }
            () = app.closing.cancelled(), if !closing => {
                closing = true;
                served.as_mut().graceful_shutdown();
            }
            () = app.cut.cancelled() => return,
        }
    }
}

async fn answer(
    mut router: Router,
    peer: Peer,
    rate: usize,
    mut request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let life = peer.life.clone();
    life.serves();
    request.extensions_mut().insert(peer);
    // Without its last slash the address of nothing is that of what it would be in: nobody deletes by a slip.
    let slips = request.method() == Method::DELETE && request.uri().path().ends_with('/');
    if !slips && let Some(meant) = spelling::meant(request.uri()) {
        *request.uri_mut() = meant;
    }
    let request = request.map(|body| paced(body, rate));
    let response = router.call(request).await?;
    // Who becomes a socket never is an HTTP connection again.
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        return Ok(response);
    }
    Ok(response.map(|body| Body::new(Ending { body, life })))
}

/// A response's body; when it is gone, the next request may come.
struct Ending {
    body: Body,
    life: Arc<Life>,
}

impl HttpBody for Ending {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.life.rests();
    }
}
