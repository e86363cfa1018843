//! What was decided, on its way to the iam service: reported once a second, and again until it is known to be kept.

use std::net::IpAddr;
use std::time::Duration;

use tg_clients::audit::{self, AuditBuffer};
use tg_mesh::Mesh;
use tg_schemas::ErrorCode;
use tg_schemas::msg::AuditEntry;
use tokio_util::sync::CancellationToken;

/// How long what was decided is in memory only.
const PAUSE: Duration = Duration::from_secs(1);
/// How long the last of it may take when the process stops.
const LAST: Duration = Duration::from_secs(2);

/// What waits to be told.
pub(crate) struct Trail {
    buffer: AuditBuffer,
    client: audit::Audit,
    /// As which the iam service knows this process.
    source: String,
    /// Whether there is somebody who keeps it.
    on: bool,
    sending: tokio::sync::Mutex<Sending>,
}

/// The batch under way: it keeps its number until it is known to be kept.
#[derive(Default)]
struct Sending {
    sequence: i64,
    entries: Vec<AuditEntry>,
}

impl Trail {
    /// Without access control nothing is decided, and a foreign iam service keeps nothing.
    pub(crate) fn new(mesh: &Mesh, open: bool) -> Self {
        let client = audit::Audit::new(mesh);
        Self {
            on: !open && client.is_kept(),
            buffer: AuditBuffer::default(),
            client,
            source: format!("gateway-{}", uuid::Uuid::new_v4()),
            sending: tokio::sync::Mutex::default(),
        }
    }

    /// Whether somebody keeps it.
    pub(crate) fn is_on(&self) -> bool {
        self.on
    }

    /// Counts what was decided now.
    pub(crate) fn note(&self, entry: AuditEntry) {
        self.buffer.note(entry);
    }

    /// Tells what was decided, as long as the endpoints are open.
    pub(crate) async fn run(&self, closing: &CancellationToken) {
        if !self.on {
            return;
        }
        loop {
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => self.flush().await,
                () = closing.cancelled() => return,
            }
        }
    }

    /// Tells the last of it.
    pub(crate) async fn close(&self) {
        let _ = tokio::time::timeout(LAST, self.flush()).await;
    }

    /// Tells everything that waits. What cannot be told now is told later.
    async fn flush(&self) {
        let mut sending = self.sending.lock().await;
        loop {
            if sending.entries.is_empty() {
                sending.entries = self.buffer.take();
                sending.sequence += 1;
            }
            if sending.entries.is_empty() {
                return;
            }
            let entries = sending.entries.clone();
            let kept = self.client.keep(&self.source, sending.sequence, entries);
            match kept.await {
                Ok(()) => sending.entries.clear(),
                // What is wrong with it stays wrong; the others are not to wait for it.
                Err(error) if error.code() == ErrorCode::BadRequest => {
                    tracing::error!(%error, "the audit refuses what was decided");
                    self.buffer.refused(std::mem::take(&mut sending.entries));
                }
                Err(error) => {
                    tracing::debug!(%error, "the audit waits");
                    return;
                }
            }
        }
    }
}

/// An address; of IPv6 what its network is.
pub(crate) fn shown(address: Option<IpAddr>) -> String {
    match address.map(|address| address.to_canonical()) {
        None => String::new(),
        Some(IpAddr::V6(address)) if !address.is_loopback() => {
            let [a, b, c, d, ..] = address.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
        Some(address) => address.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_told_as_its_network() {
        let shown = |text: &str| shown(text.parse().ok());
        assert_eq!(shown("10.0.0.1"), "10.0.0.1");
        assert_eq!(shown("::ffff:10.0.0.1"), "10.0.0.1");
        assert_eq!(shown("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
        assert_eq!(shown("::1"), "::1");
        assert_eq!(super::shown(None), "");
    }
}
