//! How long the write-ahead log of a database is, as SQLite says after each commit. Its pages are moved into the file by a thread
//! that may wait for the disk, never by a commit itself.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use parking_lot::Mutex;
use rusqlite::Connection;
use rusqlite::hooks::Wal;

use crate::StorageError;

/// Pages of the log (16 MiB) after which they move into the file: pages that change often move once.
pub(crate) const CHECKPOINT: i32 = 4_000;
/// Pages up to which other threads go on with their commits while those before are moved.
const MOST: i32 = 4 * CHECKPOINT;
/// So many pages are moved while those threads wait: a few milliseconds. Where more came meanwhile, they are moved beside the commits
/// as well, so often at most.
const FEW: i32 = 250;
const PASSES: u32 = 3;

/// The log's length in pages; 0 until the first commit, and after its pages were moved. None: the database has no log.
#[derive(Debug, Clone, Default)]
pub(crate) struct WalLength(Option<Arc<Length>>);

#[derive(Debug, Default)]
struct Length {
    pages: AtomicI32,
    /// The writer's thread moves them now.
    moving: AtomicBool,
}

impl WalLength {
    /// Watches the log of a connection, whose commits move no pages from now on.
    pub(crate) fn watch(conn: &mut Connection) -> Result<Self, StorageError> {
        let length = Arc::<Length>::default();
        let noted = length.clone();
        let note = move |_: &mut Wal, pages: c_int| {
            noted.pages.store(pages, Ordering::Relaxed);
            Ok::<(), rusqlite::Error>(())
        };
        conn.wal_hook(Some(note))?;
        Ok(Self(Some(length)))
    }

    /// Whether its pages are to be moved.
    pub(crate) fn is_full(&self) -> bool {
        let length = self.0.as_ref();
        length.is_some_and(|length| length.pages() >= CHECKPOINT)
    }

    /// Whether its pages are to be moved, and nobody does that yet.
    pub(crate) fn wants_moving(&self) -> bool {
        self.is_full() && self.0.as_ref().is_some_and(|length| !length.is_moving())
    }

    /// Whether a commit only appends to it, and waits for no disk: the first one of a log that begins anew syncs its header.
    pub(crate) fn is_appended_to(&self) -> bool {
        self.0.as_ref().is_none_or(|length| {
            let most = match length.is_moving() {
                true => MOST,
                false => CHECKPOINT,
            };
            (1..most).contains(&length.pages())
        })
    }

    /// Moves its pages into the file if they are to be moved. Pages that somebody still reads stay for the next time. While the
    /// writer's thread moves them SQLite would refuse it.
    pub(crate) fn checkpoint(&self, conn: &Connection) {
        let Some(length) = self.0.as_ref().filter(|_| self.wants_moving()) else {
            return;
        };
        log_unmoved(move_pages(conn));
        length.pages.store(0, Ordering::Relaxed);
    }

    /// The same on the writer's thread, which has another connection move them first: other threads commit meanwhile. They wait only
    /// while it moves what they added: a log to which something is always added would never begin anew.
    pub(crate) fn checkpoint_beside(
        &self,
        conn: &Mutex<Connection>,
        mut move_first: impl FnMut() -> Result<(), StorageError>,
    ) {
        let Some(length) = self.0.as_ref().filter(|_| self.is_full()) else {
            return;
        };
        let moving = Moving::begin(length);
        for _ in 0..PASSES {
            let before = length.pages();
            let moved = move_first();
            let failed = moved.is_err();
            log_unmoved(moved);
            if failed || length.pages() - before <= FEW {
                break;
            }
        }
        // The next commit may begin the log anew, and sync its header.
        drop(moving);
        self.checkpoint(&conn.lock());
    }
}

impl Length {
    fn pages(&self) -> i32 {
        self.pages.load(Ordering::Relaxed)
    }

    fn is_moving(&self) -> bool {
        self.moving.load(Ordering::Relaxed)
    }
}

/// The writer's thread moves the pages of a log. It ends with a panic, too, after which that thread goes on.
struct Moving<'a>(&'a Length);

impl<'a> Moving<'a> {
    fn begin(length: &'a Length) -> Self {
        length.moving.store(true, Ordering::Relaxed);
        Self(length)
    }
}

impl Drop for Moving<'_> {
    fn drop(&mut self) {
        self.0.moving.store(false, Ordering::Relaxed);
    }
}

/// Moves the pages that are in the log of a connection now.
pub(crate) fn move_pages(conn: &Connection) -> Result<(), StorageError> {
    Ok(conn.pragma_query(None, "wal_checkpoint", |_| Ok(()))?)
}

fn log_unmoved(moved: Result<(), StorageError>) {
    if let Err(error) = moved {
        tracing::debug!(%error, "the write-ahead log cannot be moved into its file");
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn a_log_is_appended_to_while_its_pages_are_moved_but_not_without_end() {
        let wal = WalLength(Some(Arc::default()));
        let length = wal.0.as_ref().unwrap();
        for (pages, moving, appended, wanted) in [
            (0, false, false, false),
            (CHECKPOINT - 1, false, true, false),
            (CHECKPOINT, false, false, true),
            (CHECKPOINT, true, true, false),
            (MOST, true, false, false),
        ] {
            length.pages.store(pages, Ordering::Relaxed);
            length.moving.store(moving, Ordering::Relaxed);
            assert_eq!(wal.is_appended_to(), appended, "{pages}");
            assert_eq!(wal.wants_moving(), wanted, "{pages}");
        }
        assert!(WalLength::default().is_appended_to());
    }

    #[test]
    fn a_log_is_full_until_nobody_else_moves_its_pages_also_where_that_panicked() {
        let wal = WalLength(Some(Arc::default()));
        let length = wal.0.as_ref().unwrap();
        length.pages.store(CHECKPOINT, Ordering::Relaxed);
        let conn = Mutex::new(Connection::open_in_memory().unwrap());
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            wal.checkpoint_beside(&conn, || {
                wal.checkpoint(&conn.lock());
                assert!(wal.is_full());
                panic!("the pages cannot be moved")
            });
        }));
        assert!(panicked.is_err() && wal.wants_moving());
        wal.checkpoint(&conn.lock());
        assert!(!wal.is_full());
    }
}
