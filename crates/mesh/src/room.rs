//! How much of large records is handled at once. Never gives a record back, and never holds up a small one.

use std::sync::Arc;

use tg_schemas::limits;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// From so many bytes on a record is large: it counts, and is decoded beside the runtime's threads.
pub(crate) const LARGE: usize = limits::OFFLOAD;
/// Large records that are handled at once, in KiB; one of more is alone.
const AT_ONCE: u32 = 32 << 10;

/// Room for the large records of one subscription: decoded, a record takes several times its size. Of what waits there
/// is only what the bus holds.
pub(crate) struct Room(Arc<Semaphore>);

/// Given back when dropped.
pub(crate) struct Permit(#[expect(dead_code, reason = "held, not read")] OwnedSemaphorePermit);

impl Default for Room {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE as usize)))
    }
}

impl Room {
    /// Waits until there is room for a record of so many bytes. `None` for one that needs none.
    pub(crate) async fn take(&self, bytes: usize) -> Option<Permit> {
        if bytes < LARGE {
            return None;
        }
        let kib = u32::try_from(bytes >> 10).map_or(AT_ONCE, |kib| kib.min(AT_ONCE));
        let permit = self.0.clone().acquire_many_owned(kib).await;
        permit.ok().map(Permit)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn large_records_wait_for_one_another_and_small_ones_for_nobody() {
        let room = Room::default();
        let first = room.take(20 << 20).now_or_never().flatten();
        assert!(first.is_some());
        assert!(room.take(20 << 20).now_or_never().is_none(), "no room");
        assert!(room.take(LARGE - 1).now_or_never().flatten().is_none());
        assert!(room.take(10 << 20).now_or_never().flatten().is_some());
        drop(first);
        let alone = room.take(usize::MAX).now_or_never().flatten();
        assert!(alone.is_some(), "one of any size is handled");
        assert!(room.take(LARGE).now_or_never().is_none());
    }
}
