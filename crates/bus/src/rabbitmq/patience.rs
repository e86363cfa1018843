//! How long a broker is waited for.

use std::io::{Error, ErrorKind};
use std::time::Duration;

use tokio::time::timeout;

/// Longest wait for a connection or for the broker's answer to a declaration.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);

/// What the broker says, unless it says nothing for too long.
pub(super) async fn patient<T>(work: impl Future<Output = lapin::Result<T>>) -> lapin::Result<T> {
    timeout(TIMEOUT, work)
        .await
        .unwrap_or_else(|_| Err(Error::from(ErrorKind::TimedOut).into()))
}
