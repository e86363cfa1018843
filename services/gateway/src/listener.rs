//! The listener: bounded in connections, over all and from each address, without delay for small writes.
//!
//! There are never more connections than the options say, so that descriptors are left for files; more wait in the
//! backlog of the system. An address that has its share is turned away at once.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::inflight::{InFlight, Permit};
use crate::options::Settings;
use crate::seldom::Seldom;

/// Pause after a failed accept (out of descriptors, as a rule).
const PAUSE: Duration = Duration::from_millis(100);

/// After this silence the system asks whether the other side is there, ...
const KEEP_IDLE: Duration = Duration::from_secs(60);
/// ... again after this, ...
const KEEP_EVERY: Duration = Duration::from_secs(15);
/// ... and after so many without an answer it is gone. A client that is busy or stopped is still there.
const KEEP_TRIES: u32 = 4;

/// Has the system find out when the other side is gone.
fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    use rustix::net::sockopt;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEP_IDLE)?;
    sockopt::set_tcp_keepintvl(stream, KEEP_EVERY)?;
    sockopt::set_tcp_keepcnt(stream, KEEP_TRIES)?;
    Ok(())
}

/// Accepts connections while there is room.
pub(crate) struct Listener {
    inner: TcpListener,
    room: Arc<Semaphore>,
    addresses: InFlight<IpAddr>,
    failed: Seldom,
    refused: Seldom,
}

/// What a connection counts against until it ends.
pub(crate) type ConnectionPermits = (OwnedSemaphorePermit, Permit<IpAddr>);

impl Listener {
    /// Around an open listener.
    pub(crate) fn new(inner: TcpListener, settings: &Settings) -> Self {
        Self {
            inner,
            room: Arc::new(Semaphore::new(settings.connections)),
            addresses: InFlight::new(settings.connections_per_address),
            failed: Seldom::default(),
            refused: Seldom::default(),
        }
    }

    /// The next connection. Faults are told seldom and waited out.
    pub(crate) async fn accept(&self) -> (TcpStream, SocketAddr, ConnectionPermits) {
        loop {
            match self.accept_one().await {
                Ok(Some(accepted)) => return accepted,
                Ok(None) => {}
                Err(fault) => {
                    if let Some(left_out) = self.failed.pass(Instant::now()) {
                        tracing::warn!(%fault, left_out, "connections cannot be accepted");
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn accept_one(&self) -> io::Result<Option<(TcpStream, SocketAddr, ConnectionPermits)>> {
        let room = self.room.clone().acquire_owned().await;
        let room = room.map_err(io::Error::other)?;
        let (stream, address) = self.inner.accept().await?;
        let Some(share) = self.addresses.enter(address.ip().to_canonical()) else {
            if let Some(left_out) = self.refused.pass(Instant::now()) {
                tracing::warn!(
                    left_out,
                    "an address has too many connections; more of it are refused"
                );
            }
            return Ok(None);
        };
        stream.set_nodelay(true)?;
        keep_alive(&stream)?;
        Ok(Some((stream, address, (room, share))))
    }
}
