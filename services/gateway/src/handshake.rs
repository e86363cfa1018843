//! From a connection to a secure one, within the time of a request's head. Who speaks plain HTTP gets an error, once.

use std::io;
use std::sync::Arc;

use tg_tls::rustls::ServerConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Duration, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::wire::{HEAD, Wire};

/// What the first byte of a handshake is.
const HANDSHAKE: u8 = 0x16;

/// What a client is told that speaks plain HTTP.
const PLAIN: &str = concat!(
    "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json; charset=utf-8\r\ncontent-length: 44\r\n",
    "connection: close\r\n\r\n",
    r#"{"error":"this port speaks https, not http"}"#
);
/// How long it may go on sending, so that what it is told is not lost with what it sent; and how much.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 64 << 10;

/// Why there is no secure connection.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("it speaks no TLS")]
    Plain,
    #[error("it was too slow")]
    Late,
    #[error("{0}")]
    Broken(#[from] io::Error),
}

impl Failed {
    /// Label in metrics.
    fn label(&self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Late => "late",
            Self::Broken(_) => "broken",
        }
    }
}

/// A secure connection over this one; `None` if the other side does not come to one in time.
pub(crate) async fn secured<H: Unpin>(
    wire: Wire<H>,
    config: Arc<ServerConfig>,
) -> Option<TlsStream<Wire<H>>> {
    let outcome = match timeout(HEAD, begin(wire, config)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Failed::Late),
    };
    let failed = match outcome {
        Ok(stream) => return Some(stream),
        Err(failed) => failed,
    };
    metrics::counter!("tg_gateway_handshakes_failed_total", "reason" => failed.label())
        .increment(1);
    tracing::debug!(fault = %failed, "a connection did not become a secure one");
    None
}

async fn begin<H: Unpin>(
    mut wire: Wire<H>,
    config: Arc<ServerConfig>,
) -> Result<TlsStream<Wire<H>>, Failed> {
    match wire.first().await? {
        None => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
        Some(HANDSHAKE) => Ok(TlsAcceptor::from(config).accept(wire).await?),
        Some(_) => {
            // It may be gone before it has read that.
            let _ = turn_away(&mut wire).await;
            Err(Failed::Plain)
        }
    }
}

/// Says that this port speaks TLS. What the client sent is read away: a connection that is closed with bytes unread takes
/// along what was written to it.
async fn turn_away<H: Unpin>(wire: &mut Wire<H>) -> io::Result<()> {
    wire.write_all(PLAIN.as_bytes()).await?;
    wire.shutdown().await?;
    let mut rest = [0; 4096];
    let mut left = LINGER_BYTES;
    let drained = async {
        while left > 0 {
            match wire.read(&mut rest).await? {
                0 => break,
                read => left = left.saturating_sub(read),
            }
        }
        Ok(())
    };
    timeout(LINGER, drained).await.unwrap_or(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_as_long_as_it_says() {
        let (head, body) = PLAIN.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())));
    }
}
