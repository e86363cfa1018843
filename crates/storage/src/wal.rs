//! How long the write-ahead log of a database is, as SQLite says after each commit. Its pages are moved into the file by a thread
//! that may wait for the disk, never by a commit itself.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use rusqlite::Connection;
use rusqlite::hooks::Wal;

use crate::StorageError;

/// Pages of the log (16 MiB) after which they move into the file: pages that change often move once.
pub(crate) const CHECKPOINT: i32 = 4_000;

/// The log's length in pages; 0 until the first commit, and after its pages were moved. None: the database has no log.
#[derive(Debug, Clone, Default)]
pub(crate) struct WalLength(Option<Arc<AtomicI32>>);

impl WalLength {
    /// Watches the log of a connection, whose commits move no pages from now on.
    pub(crate) fn watch(conn: &mut Connection) -> Result<Self, StorageError> {
        let length = Arc::new(AtomicI32::new(0));
        let noted = length.clone();
        let note = move |_: &mut Wal, pages: c_int| {
            noted.store(pages, Ordering::Relaxed);
            Ok::<(), rusqlite::Error>(())
        };
        conn.wal_hook(Some(note))?;
        Ok(Self(Some(length)))
    }

    /// Whether its pages are to be moved.
    pub(crate) fn is_full(&self) -> bool {
        self.pages().is_some_and(|pages| pages >= CHECKPOINT)
    }

    /// Whether a commit only appends to it, and waits for no disk: the first one of a log that begins anew syncs its header.
    pub(crate) fn is_appended_to(&self) -> bool {
        self.pages()
            .is_none_or(|pages| (1..CHECKPOINT).contains(&pages))
    }

    /// Moves its pages into the file if they are to be moved. Pages that somebody still reads stay for the next time.
    pub(crate) fn checkpoint(&self, conn: &Connection) {
        let Some(length) = self.0.as_ref().filter(|_| self.is_full()) else {
            return;
        };
        if let Err(error) = conn.pragma_query(None, "wal_checkpoint", |_| Ok(())) {
            tracing::debug!(%error, "the write-ahead log cannot be moved into its file");
        }
        length.store(0, Ordering::Relaxed);
    }

    fn pages(&self) -> Option<i32> {
        self.0.as_ref().map(|pages| pages.load(Ordering::Relaxed))
    }
}
