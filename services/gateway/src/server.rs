//! Opens the listener, keeps the endpoints open until the process stops, closes them in order.

use std::net::SocketAddr;
use std::sync::Arc;

use tg_mesh::{Mesh, TaskKind};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::certificate::Certificate;
use crate::connection;
use crate::error::GatewayError;
use crate::inflight::InFlight;
use crate::listener::Listener;
use crate::options::GatewayOptions;
use crate::routes;
use crate::state::App;

/// A running gateway.
#[derive(Clone)]
pub struct GatewayHandle {
    local_addr: SocketAddr,
    certificate: Option<Arc<Certificate>>,
    in_flight: InFlight,
    closing: CancellationToken,
    closed: CancellationToken,
}

impl GatewayHandle {
    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// The same as clients of this machine name it.
    pub fn url(&self) -> String {
        let scheme = if self.certificate.is_some() {
            "https"
        } else {
            "http"
        };
        format!("{scheme}://{}/", self.local_addr)
    }

    /// Has a new certificate looked for now, and not only at the next look. Says whether it has one at all.
    pub fn renew_certificate(&self) -> bool {
        self.certificate
            .as_ref()
            .inspect(|shown| shown.renew())
            .is_some()
    }

    /// Questions that clients wait for at the moment.
    pub fn answering(&self) -> usize {
        self.in_flight.all()
    }

    /// Closes the endpoints: no new requests, running ones may end within the drain time. Returns when all
    /// are closed. To be called before the mesh stops, so that answers still come.
    pub async fn close(&self) {
        self.closing.cancel();
        self.closed.cancelled().await;
    }
}

/// Opens the endpoints. The mesh must host [`crate::processors`].
///
/// # Errors
/// [`GatewayError::Open`], [`GatewayError::Certificate`], [`GatewayError::Taken`] or [`GatewayError::Bind`].
pub async fn serve(mesh: Mesh, options: GatewayOptions) -> Result<GatewayHandle, GatewayError> {
    options.check()?;
    let certificate = match options.settings.certificate() {
        Some(files) => Some(Arc::new(Certificate::load(files).await?)),
        None => None,
    };
    let listen = options.listen;
    let bind = |source| GatewayError::bind(listen, "--listen", source);
    let listener = TcpListener::bind(listen).await.map_err(bind)?;
    let local_addr = listener.local_addr().map_err(bind)?;
    let listener = Listener::new(listener, &options.settings);
    let app = Arc::new(App::new(mesh.clone(), options, certificate.clone()));
    let handle = GatewayHandle {
        local_addr,
        certificate: certificate.clone(),
        in_flight: app.in_flight.clone(),
        closing: app.closing.clone(),
        closed: CancellationToken::new(),
    };
    if let Some(certificate) = certificate {
        mesh.spawn(TaskKind::Background, certificate.follow());
    }
    mesh.spawn(TaskKind::Background, app.flows.clone().watch());
    mesh.spawn(TaskKind::Background, app.auth.clone().watch());
    mesh.spawn(TaskKind::Background, app.clone().tell_decisions());
    mesh.spawn(TaskKind::Closing, app.clone().answer_gateways());
    mesh.spawn(
        TaskKind::Connection,
        keep_open(listener, app, handle.closed.clone()),
    );
    tracing::info!(%local_addr, "gateway listens");
    Ok(handle)
}

async fn keep_open(listener: Listener, app: Arc<App>, closed: CancellationToken) {
    let router = routes::router(app.clone());
    loop {
        let (stream, address, held) = tokio::select! {
            accepted = listener.accept() => accepted,
            () = app.closing.cancelled() => break,
        };
        let served = connection::serve(app.clone(), router.clone(), stream, address, held);
        let tracked = app.connections.track_future(served);
        app.mesh.spawn(TaskKind::Connection, tracked);
    }
    drop(listener);
    app.connections.close();
    let ended = tokio::time::timeout(app.drain_bound(), app.connections.wait()).await;
    if ended.is_err() {
        tracing::warn!("requests were cut off at the end of the drain time");
        app.cut.cancel();
    }
    app.sockets_closed().await;
    app.tell_last_decisions().await;
    closed.cancel();
}

/// Whether this build has the page at `/`, and not only the one that says how to make it.
pub fn has_page() -> bool {
    tg_console::is_built()
}
