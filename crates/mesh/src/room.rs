//! How much of what is large is handled at once: of records in each subscription, of questions in the process, where one
//! workspace has a part. Never gives a record back, and never holds up what is small.

use std::sync::Arc;

use tg_schemas::limits;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::fair::{Pool, Share};

/// From so many bytes on a record is large: it counts, and is decoded beside the runtime's threads.
pub(crate) const LARGE: usize = limits::OFFLOAD;
/// Large records that are handled at once, in KiB; one of more is alone.
const RECORDS: u32 = 32 << 10;
/// A question of no more bytes does not count: how many there may be is bound enough.
const SMALL: usize = 16 << 10;
/// What a question takes, roughly, in bodies: what is read of it, and what is made of that.
const IN_PROGRESS: usize = 2;
/// Of the whole, one workspace may have this part. A question of more counts as that, so that it passes alone and leaves others
/// theirs.
const WORKSPACE_PART: usize = 2;
/// Units of the pool, in bytes.
const UNIT: usize = 1 << 10;

/// Room for the large records of one subscription: decoded, a record takes several times its size. Of what waits there
/// is only what the bus holds; no subscription waits for what another one does.
pub(crate) struct RecordRoom(Arc<Semaphore>);

/// Given back when dropped.
pub(crate) struct Permit(#[expect(dead_code, reason = "held, not read")] OwnedSemaphorePermit);

impl Default for RecordRoom {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(RECORDS as usize)))
    }
}

impl RecordRoom {
    /// Waits until there is room for a record of so many bytes. `None` for one that needs none.
    pub(crate) async fn take(&self, bytes: usize) -> Option<Permit> {
        if bytes < LARGE {
            return None;
        }
        let kib = u32::try_from(bytes >> 10).map_or(RECORDS, |kib| kib.min(RECORDS));
        let permit = self.0.clone().acquire_many_owned(kib).await;
        permit.ok().map(Permit)
    }
}

/// Room for the large questions of a process, which never wait.
pub(crate) struct QuestionRoom(Pool);

/// The place of a question in progress, until it is dropped.
pub(crate) struct InProgress(Share);

/// There is no room for a question now.
#[derive(Debug)]
pub(crate) struct NoRoom;

impl QuestionRoom {
    /// With so many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        let units = (bytes / UNIT).max(1);
        Self(Pool::new(units, units.div_ceil(WORKSPACE_PART)))
    }

    /// Takes room for a question of so many bytes. `None` for one that needs none, whose workspace is not asked for.
    pub(crate) fn take(
        &self,
        workspace: impl FnOnce() -> String,
        bytes: usize,
    ) -> Result<Option<InProgress>, NoRoom> {
        if bytes <= SMALL {
            return Ok(None);
        }
        let units = bytes.saturating_mul(IN_PROGRESS) / UNIT;
        let units = units.min(self.0.each());
        let share = self.0.try_take(&Arc::from(workspace()), units);
        share.map(InProgress::new).map(Some).ok_or(NoRoom)
    }
}

impl InProgress {
    fn new(share: Share) -> Self {
        gauge().increment((share.units() * UNIT) as f64);
        Self(share)
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        gauge().decrement((self.0.units() * UNIT) as f64);
    }
}

fn gauge() -> metrics::Gauge {
    metrics::gauge!("tg_questions_in_progress_bytes")
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn large_records_wait_for_one_another_and_small_ones_for_nobody() {
        let room = RecordRoom::default();
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

    #[test]
    fn large_questions_are_refused_beyond_a_workspaces_part_and_the_whole() {
        let room = QuestionRoom::new(8 << 20);
        let take = |of: &str, bytes| room.take(|| of.to_owned(), bytes);
        let first = take("acme", 1 << 20);
        let second = take("acme", 1 << 20);
        assert!(first.is_ok() && second.is_ok());
        assert!(take("acme", 100 << 10).is_err(), "its part");
        let small = room.take(|| panic!("whose it is does not matter"), SMALL);
        assert!(matches!(small, Ok(None)));
        let other = take("other", 2 << 20);
        assert!(other.is_ok(), "others have theirs");
        assert!(take("third", 100 << 10).is_err(), "no room");
        drop(first);
        assert!(take("third", 100 << 10).is_ok(), "there is again");
        drop((second, other));
        let alone = take("acme", usize::MAX);
        assert!(alone.is_ok(), "one of any size passes");
        assert!(take("acme", 100 << 10).is_err());
        let other = take("other", 100 << 10);
        assert!(other.is_ok(), "and leaves others theirs");
    }
}
