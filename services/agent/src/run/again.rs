//! When a call of a model or a tool is made again: its process died over it, or no process serves it for the moment.

use std::time::Duration;

use tg_mesh::Cx;
use tg_mesh::tg_bus::pause::after;
use tg_schemas::{Error, ErrorCode};
use tokio::time::Instant;

/// Times a call that broke off is made again.
pub(super) const RETRIES: u32 = 2;
/// How long a call waits for a process that serves it: whoever looks after processes has started a killed one again by then.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Pauses between two tries: doubling up to the second.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// Whether a call that failed may be made again.
pub(super) fn broke_off(error: &Error) -> bool {
    matches!(
        error.code(),
        ErrorCode::Interrupted | ErrorCode::Unavailable
    )
}

/// A call that no process has taken. It asked nobody, so it counts as none.
#[derive(Default)]
pub(super) struct Unserved {
    since: Option<Instant>,
    tries: u32,
}

impl Unserved {
    /// Waits a moment if the call failed only because no process serves it. `false`: it is not made again, as it failed otherwise,
    /// has waited long enough, or its caller has gone.
    pub(super) async fn waits(&mut self, cx: &Cx, error: &Error) -> bool {
        // In a system of one process no other one comes.
        if error.code() != ErrorCode::NobodyServes || cx.mesh.bus().in_process() {
            return false;
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        if since.elapsed() >= TIMEOUT {
            return false;
        }
        let pause = after(PAUSES.0, self.tries, PAUSES.1);
        self.tries += 1;
        tokio::select! {
            () = tokio::time::sleep(pause) => true,
            () = cx.cancel.cancelled() => false,
            () = cx.deadline.reached() => false,
        }
    }
}
