//! A listener for the metrics of a process alone, for processes that have no gateway. It knows nobody's credentials and
//! tells nothing else, so it listens on a loopback address only.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request, Response, StatusCode};
use axum::response::IntoResponse;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tg_mesh::{Mesh, TaskKind};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::auth::guard::{is_cross_site, is_local};
use crate::error::GatewayError;
use crate::exposition::Exposition;

/// Connections at once; more wait to be accepted.
const CONNECTIONS: usize = 16;
/// How long one may last: a scrape takes milliseconds, and comes on a new connection then.
const LIFE: Duration = Duration::from_secs(120);
/// Longest head of a request, and how long it may take.
const HEAD: usize = 8 << 10;
const HEAD_TIME: Duration = Duration::from_secs(5);
/// Pause after a failed accept (out of descriptors, as a rule).
const PAUSE: Duration = Duration::from_millis(100);

/// Tells the metrics of this process at `GET /metrics` until it stops. Returns where.
///
/// # Errors
/// [`GatewayError::Exposed`] for an address that others can reach, [`GatewayError::Taken`],
/// [`GatewayError::Bind`].
pub async fn serve_metrics(
    mesh: &Mesh,
    listen: SocketAddr,
    metrics: Exposition,
) -> Result<SocketAddr, GatewayError> {
    if !listen.ip().is_loopback() {
        return Err(GatewayError::Exposed { listen });
    }
    let bind = |source| GatewayError::bind(listen, "metrics.listen", source);
    let listener = TcpListener::bind(listen).await.map_err(bind)?;
    let local_addr = listener.local_addr().map_err(bind)?;
    let inner = mesh.clone();
    mesh.spawn(TaskKind::Background, async move {
        accept(&inner, listener, metrics).await;
    });
    tracing::info!(%local_addr, "metrics are served here");
    Ok(local_addr)
}

async fn accept(mesh: &Mesh, listener: TcpListener, metrics: Exposition) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    // It is never closed.
    while let Ok(permit) = room.clone().acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let metrics = metrics.clone();
        mesh.spawn(TaskKind::Background, async move {
            let _ = tokio::time::timeout(LIFE, serve(stream, metrics)).await;
            drop(permit);
        });
    }
}

async fn serve(stream: TcpStream, metrics: Exposition) {
    let service = service_fn(move |request| answer(request, metrics.clone()));
    let served = hyper::server::conn::http1::Builder::new()
        .max_buf_size(HEAD)
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(fault) = served.await {
        tracing::debug!(%fault, "a connection ended early");
    }
}

async fn answer(
    request: Request<Incoming>,
    metrics: Exposition,
) -> Result<Response<Body>, Infallible> {
    // No name that a web page had resolved to this machine, and no page that embeds it.
    if !is_local(request.headers(), request.uri()) || is_cross_site(request.headers()) {
        return Ok(StatusCode::FORBIDDEN.into_response());
    }
    Ok(match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => Exposition::response(metrics.text().await),
        (_, "/metrics") => StatusCode::METHOD_NOT_ALLOWED.into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    })
}
