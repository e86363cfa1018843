//! The listener: bounded in connections, without delay for small writes.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Pause after a failed accept (out of descriptors, as a rule).
const PAUSE: Duration = Duration::from_millis(100);

/// Accepts at most so many connections at once; more wait in the backlog of the system.
pub(crate) struct Listener {
    inner: TcpListener,
    room: Arc<Semaphore>,
}

/// A connection that makes room when it ends.
pub(crate) struct Connection {
    stream: TcpStream,
    _room: OwnedSemaphorePermit,
}

impl Listener {
    /// Around an open listener.
    pub(crate) fn new(inner: TcpListener, connections: usize) -> Self {
        Self {
            inner,
            room: Arc::new(Semaphore::new(connections)),
        }
    }

    async fn accept_one(&self) -> io::Result<(Connection, SocketAddr)> {
        let room = self.room.clone().acquire_owned().await;
        let room = room.map_err(io::Error::other)?;
        let (stream, address) = self.inner.accept().await?;
        stream.set_nodelay(true)?;
        let connection = Connection {
            stream,
            _room: room,
        };
        Ok((connection, address))
    }
}

impl axum::serve::Listener for Listener {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            match self.accept_one().await {
                Ok(accepted) => return accepted,
                Err(fault) => {
                    tracing::debug!(%fault, "a connection was not accepted");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
