//! How much of what is large a process handles at once, all that it hosts together; of that one workspace has a part. Never
//! gives a record back, and never holds up what is small.

use std::sync::Arc;

use tg_schemas::limits;

use crate::fair::{Pool, Share};

/// From so many bytes on a record is large: it counts, and is decoded beside the runtime's threads.
pub(crate) const LARGE: usize = limits::OFFLOAD;
/// Large records that are handled at once, in bytes; one of more is alone.
const RECORDS: usize = 32 << 20;
/// A question of no more bytes does not count: how many there may be is bound enough.
const SMALL: usize = 16 << 10;
/// What a question takes, roughly, in bodies: what is read of it, and what is made of that.
const IN_PROGRESS: usize = 2;
/// Of the whole, one workspace may have this part; or one large message.
const WORKSPACE_PART: usize = 2;
/// Units of the pools, in bytes.
const UNIT: usize = 1 << 10;

/// Room for the large messages of a process: decoded, they take several times their size. Of records that wait there is
/// only what the bus holds; questions never wait.
pub(crate) struct Room {
    records: Pool,
    questions: Pool,
}

/// The place of a question in progress, until it is dropped.
pub(crate) struct InProgress(Share);

/// There is no room for a question now.
#[derive(Debug)]
pub(crate) struct NoRoom;

impl Room {
    /// With so many bytes for questions in progress.
    pub(crate) fn new(questions: usize) -> Self {
        let pool = |bytes: usize| {
            let units = (bytes / UNIT).max(1);
            Pool::new(units, units.div_ceil(WORKSPACE_PART))
        };
        Self {
            records: pool(RECORDS),
            questions: pool(questions),
        }
    }

    /// Waits until there is room for a record of so many bytes. `None` for one that needs none.
    pub(crate) async fn record(&self, workspace: &str, bytes: usize) -> Option<Share> {
        if bytes < LARGE {
            return None;
        }
        let units = (bytes / UNIT).min(self.records.total());
        self.records.take(&Arc::from(workspace), units).await
    }

    /// Takes room for a question of so many bytes. `None` for one that needs none.
    pub(crate) fn question(
        &self,
        workspace: &str,
        bytes: usize,
    ) -> Result<Option<InProgress>, NoRoom> {
        if bytes <= SMALL {
            return Ok(None);
        }
        let units = bytes.saturating_mul(IN_PROGRESS) / UNIT;
        let units = units.min(self.questions.total());
        let share = self.questions.try_take(&Arc::from(workspace), units);
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
        let room = Room::new(1);
        let now = |workspace, bytes| room.record(workspace, bytes).now_or_never();
        let first = now("acme", 14 << 20).flatten();
        assert!(first.is_some());
        assert!(now("acme", 3 << 20).is_none(), "it has its part");
        assert!(now("acme", LARGE - 1).unwrap().is_none(), "needs no room");
        let other = now("other", 18 << 20).flatten();
        assert!(other.is_some(), "who holds nothing may have more");
        assert!(now("third", LARGE).is_none(), "no room");
        drop((first, other));
        let alone = now("acme", usize::MAX).flatten();
        assert!(alone.is_some(), "one of any size is handled");
        assert!(now("other", LARGE).is_none());
    }

    #[test]
    fn large_questions_are_refused_beyond_a_workspaces_part_and_the_whole() {
        let room = Room::new(8 << 20);
        let first = room.question("acme", 1 << 20);
        let second = room.question("acme", 1 << 20);
        assert!(first.is_ok() && second.is_ok());
        assert!(room.question("acme", 100 << 10).is_err(), "its part");
        assert!(matches!(room.question("acme", SMALL), Ok(None)));
        let other = room.question("other", 2 << 20);
        assert!(other.is_ok(), "others have theirs");
        assert!(room.question("third", 100 << 10).is_err(), "no room");
        drop(first);
        assert!(room.question("third", 100 << 10).is_ok(), "there is again");
        drop((second, other));
        let alone = room.question("acme", usize::MAX);
        assert!(alone.is_ok(), "one of any size passes");
        assert!(room.question("other", 100 << 10).is_err());
    }
}
