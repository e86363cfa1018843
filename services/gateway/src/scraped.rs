//! Listeners that report on one process, for processes that have no gateway and for the machinery that runs containers. They
//! know nobody's credentials. The one for metrics alone listens on a loopback address only. The one for health and metrics
//! listens where the operator says: it reports numbers and what the process lacks, and never content of workspaces.

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
use serde_json::json;
use tg_mesh::{Mesh, TaskKind};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::auth::guard::{is_cross_site, is_local};
use crate::error::{GatewayError, json_response};
use crate::exposition::Exposition;
use crate::handlers::health;

/// Connections at once; more wait to be accepted.
const CONNECTIONS: usize = 16;
/// How long one may last: a scrape takes milliseconds, and comes on a new connection then.
const LIFE: Duration = Duration::from_secs(120);
/// Longest head of a request, and how long it may take.
const HEAD: usize = 8 << 10;
const HEAD_TIME: Duration = Duration::from_secs(5);
/// Pause after a failed accept (out of descriptors, as a rule).
const PAUSE: Duration = Duration::from_millis(100);

/// What keeps a process from serving, in words; nothing: it serves.
#[derive(Clone)]
pub struct Readiness(Arc<dyn Fn() -> Vec<String> + Send + Sync>);

impl Readiness {
    /// Around a function that looks at the process. It does not block.
    pub fn new(missing: impl Fn() -> Vec<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(missing))
    }

    fn response(&self) -> Response<Body> {
        let missing = (self.0)();
        let status = match missing.is_empty() {
            true => StatusCode::OK,
            false => StatusCode::SERVICE_UNAVAILABLE,
        };
        let body = json!({"ready": missing.is_empty(), "missing": missing});
        json_response(status, &body)
    }
}

/// What a listener reports.
#[derive(Clone)]
struct Report {
    metrics: Exposition,
    /// `None`: metrics alone.
    readiness: Option<Readiness>,
    /// Only programs of this machine reach the address, and requests have to look like theirs.
    local: bool,
}

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
    let report = Report {
        metrics,
        readiness: None,
        local: true,
    };
    serve_at(mesh, listen, "metrics.listen", report).await
}

/// Reports health and metrics of this process (`GET /health/live`, `/health/ready`, `/metrics`) until it stops. Returns where.
///
/// # Errors
/// [`GatewayError::Taken`], [`GatewayError::Bind`].
pub async fn serve_report(
    mesh: &Mesh,
    listen: SocketAddr,
    metrics: Exposition,
    readiness: Readiness,
) -> Result<SocketAddr, GatewayError> {
    let report = Report {
        metrics,
        readiness: Some(readiness),
        local: listen.ip().is_loopback(),
    };
    serve_at(mesh, listen, "report.listen", report).await
}

async fn serve_at(
    mesh: &Mesh,
    listen: SocketAddr,
    setting: &'static str,
    report: Report,
) -> Result<SocketAddr, GatewayError> {
    let bind = |source| GatewayError::bind(listen, setting, source);
    let listener = TcpListener::bind(listen).await.map_err(bind)?;
    let local_addr = listener.local_addr().map_err(bind)?;
    let what = match report.readiness {
        Some(_) => "health and metrics are served here",
        None => "metrics are served here",
    };
    let inner = mesh.clone();
    mesh.spawn(TaskKind::Background, async move {
        accept(&inner, listener, report).await;
    });
    tracing::info!(%local_addr, "{what}");
    Ok(local_addr)
}

async fn accept(mesh: &Mesh, listener: TcpListener, report: Report) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    // It is never closed.
    while let Ok(permit) = room.clone().acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let report = report.clone();
        mesh.spawn(TaskKind::Background, async move {
            let _ = tokio::time::timeout(LIFE, serve(stream, report)).await;
            drop(permit);
        });
    }
}

async fn serve(stream: TcpStream, report: Report) {
    let service = service_fn(move |request| answer(request, report.clone()));
    let served = hyper::server::conn::http1::Builder::new()
        .max_buf_size(HEAD)
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(fault) = served.await {
        tracing::debug!(%fault, "a connection ended early");
    }
}

async fn answer(request: Request<Incoming>, report: Report) -> Result<Response<Body>, Infallible> {
    // No name that a web page had resolved to this machine, and no page that embeds it.
    let is_foreign = report.local && !is_local(request.headers(), request.uri());
    if is_foreign || is_cross_site(request.headers()) {
        return Ok(StatusCode::FORBIDDEN.into_response());
    }
    let is_get = request.method() == Method::GET;
    Ok(match (request.uri().path(), &report.readiness) {
        ("/metrics" | "/health/live" | "/health/ready", _) if !is_get => {
            StatusCode::METHOD_NOT_ALLOWED.into_response()
        }
        ("/metrics", _) => Exposition::response(report.metrics.text().await),
        ("/health/live", Some(_)) => health::live().await,
        ("/health/ready", Some(readiness)) => readiness.response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    })
}
