//! How long a broker is waited for.

use std::io::{Error, ErrorKind};
use std::time::Duration;

use tokio::time::timeout;

/// Longest wait for a connection.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);
/// Longest wait for the broker's answer to declarations and deletions. A busy broker makes many durable one after the other; one that is
/// gone is noticed by the heartbeat, which ends the connection and this wait.
pub(super) const ANSWERED: Duration = Duration::from_secs(30);

/// What the broker says, unless it says nothing for too long.
pub(super) async fn patient<T>(work: impl Future<Output = lapin::Result<T>>) -> lapin::Result<T> {
    timeout(TIMEOUT, work)
        .await
        .unwrap_or_else(|_| Err(Error::from(ErrorKind::TimedOut).into()))
}
