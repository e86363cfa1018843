//! The handle: opening, writing, reading, closing.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use metrics::Counter;
use parking_lot::Mutex;
use rusqlite::{Connection, Transaction};
use tokio::sync::oneshot;

use crate::erased::{self, Done, Reading, Writing};
use crate::group::{GroupBounds, GroupCommitter};
use crate::lock::OwnerLock;
use crate::mover::Mover;
use crate::reader::{self, CallOff, Read, Readers};
use crate::wal::WalLength;
use crate::writer::{self, Job};
use crate::{Durability, StorageError, connection, identity, private};

/// Bytes of a write that may be committed on the thread of a task ([`Database::write_short`]). A write of so many takes a fraction of
/// a millisecond.
const SHORT: usize = 64 << 10;

/// A database of this process. Clones share it; the last one closes it and waits for queued work.
#[derive(Clone)]
pub struct Database {
    inner: Arc<Inner>,
}

struct Inner {
    writer: GroupCommitter<Job>,
    /// Of the writer's thread, of [`Database::write_here`], [`Database::write_short`] and [`Database::read_short`].
    conn: Arc<Mutex<Connection>>,
    /// Jobs that were queued and have not got the connection yet.
    queued: Arc<AtomicUsize>,
    wal: WalLength,
    call_off: CallOff,
    commits: Counter,
    /// None without a file: then the writer's connection serves reads too.
    readers: Option<Readers>,
    durability: Durability,
    /// Last field: released when all connections are closed.
    _lock: Option<OwnerLock>,
}

impl Database {
    /// Opens or creates the file with its directories, takes the owner's lock and brings the schema up to
    /// date. `migrations` are SQL scripts; the position of a script is its version, so they are only ever
    /// appended. Commits are counted under the file's name without its ending. Blocks: call it at start-up.
    ///
    /// # Errors
    /// [`StorageError::InUse`] while another process owns the file, [`StorageError::TooNew`] where a newer release wrote it,
    /// [`StorageError::Corrupt`] where it is damaged or not a database; else the
    /// file system or a migration fails. What was in it stays.
    pub fn open(
        path: &Path,
        migrations: &'static [&'static str],
        durability: Durability,
    ) -> Result<Self, StorageError> {
        let store = path.file_stem().unwrap_or_default().to_string_lossy();
        Self::open_as(&store, path, migrations, durability)
    }

    /// As [`Self::open`], for one file of many of a store, whose commits are counted together.
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub fn open_as(
        store: &str,
        path: &Path,
        migrations: &'static [&'static str],
        durability: Durability,
    ) -> Result<Self, StorageError> {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(|error| StorageError::from_io(&error))?;
        }
        let lock = OwnerLock::take_beside(path)?;
        private::close(path);
        let (conn, wal) = connection::writer(path, migrations, durability)?;
        identity::ensure(&conn)?;
        let readers = Readers::start(path)?;
        private::close(path);
        let commits = writer::commits_of(store);
        let mover = Mover::of(Some((path.to_owned(), durability)));
        let lock = Some(lock);
        let log = (wal, mover);
        Self::start(conn, log, Some(readers), durability, (commits, lock))
    }

    /// A database without a file, gone with its last handle.
    ///
    /// # Errors
    /// A migration fails, or the thread of the writer cannot be started.
    pub fn in_memory(migrations: &'static [&'static str]) -> Result<Self, StorageError> {
        let conn = connection::memory(migrations)?;
        let commits = writer::commits_of("memory");
        let log = (WalLength::default(), Mover::of(None));
        Self::start(conn, log, None, Durability::Process, (commits, None))
    }

    fn start(
        mut conn: Connection,
        (wal, mut mover): (WalLength, Mover),
        readers: Option<Readers>,
        durability: Durability,
        (commits, lock): (Counter, Option<OwnerLock>),
    ) -> Result<Self, StorageError> {
        // Only reads are ever called off.
        let call_off = match readers {
            Some(_) => CallOff::default(),
            None => CallOff::of(&mut conn)?,
        };
        let conn = Arc::new(Mutex::new(conn));
        let (of_thread, called_off, counted) = (conn.clone(), call_off.clone(), commits.clone());
        let queued = Arc::new(AtomicUsize::new(0));
        let (waited, length) = (queued.clone(), wal.clone());
        let commit = move |group: &mut Vec<Job>| {
            let conn = of_thread.lock();
            // Whoever finds the connection free and none queued comes after these.
            waited.fetch_sub(group.len(), Ordering::SeqCst);
            writer::run(&conn, &called_off, &counted, group);
            drop(conn);
            length.checkpoint_beside(&of_thread, || mover.move_pages());
        };
        let writer = GroupCommitter::start("store-write", GroupBounds::default(), commit)?;
        Ok(Self {
            inner: Arc::new(Inner {
                writer,
                conn,
                queued,
                wal,
                call_off,
                commits,
                readers,
                durability,
                _lock: lock,
            }),
        })
    }

    /// What a committed write survives.
    pub fn durability(&self) -> Durability {
        self.inner.durability
    }

    /// Runs the closure in a transaction and returns its value once that is committed. An error of the
    /// closure undoes what it did and nothing else; use [`StorageError::Refused`] for errors of your own.
    /// Closures that wait together share one commit, in the order of the calls. A queued write runs even
    /// when its future is dropped.
    ///
    /// # Errors
    /// What the closure says; [`StorageError::Full`] or another one where the commit fails. Nothing of this write is kept then.
    /// [`StorageError::Closed`] while the store closes.
    pub async fn write<T: Send + 'static>(
        &self,
        f: impl FnOnce(&Transaction<'_>) -> Result<T, StorageError> + Send + 'static,
    ) -> Result<T, StorageError> {
        erased::value(self.write_queued(erased::writing(f)).await)
    }

    async fn write_queued(&self, f: Writing) -> Done {
        let (job, result) = writer::job(f);
        self.send(job).await?;
        receive(result).await
    }

    /// As [`Self::write`], but on the calling thread, in a transaction of its own: for a thread that has its own groups to commit
    /// and would only wait. Blocks while the writer's thread commits, and until this is committed.
    ///
    /// # Errors
    /// As for [`Self::write`].
    pub fn write_here<T: Send + 'static>(
        &self,
        f: impl FnOnce(&Transaction<'_>) -> Result<T, StorageError> + Send + 'static,
    ) -> Result<T, StorageError> {
        erased::value(self.write_now(erased::writing(f)))
    }

    fn write_now(&self, f: Writing) -> Done {
        let (job, mut result) = writer::job(f);
        let inner = &*self.inner;
        let conn = inner.conn.lock();
        writer::run(&conn, &inner.call_off, &inner.commits, &mut vec![job]);
        inner.wal.checkpoint(&conn);
        result.try_recv().map_err(|_| StorageError::Closed)?
    }

    /// As [`Self::write`], for a few rows of so many bytes. While the writer's thread has nothing to do it is committed on the calling
    /// one, which spares the wakes of two threads. Nothing is synced there: a write that is not short, the first one of a log that
    /// begins anew, and each one that has to survive a loss of power go to the writer's thread, and so does moving the log into the
    /// file.
    ///
    /// # Errors
    /// As for [`Self::write`].
    pub async fn write_short<T: Send + 'static>(
        &self,
        bytes: usize,
        f: impl FnOnce(&Transaction<'_>) -> Result<T, StorageError> + Send + 'static,
    ) -> Result<T, StorageError> {
        erased::value(self.write_soon(bytes, erased::writing(f)).await)
    }

    async fn write_soon(&self, bytes: usize, f: Writing) -> Done {
        let (job, mut result) = writer::job(f);
        match self.commit_at_once(bytes, job) {
            None => result.try_recv().map_err(|_| StorageError::Closed)?,
            Some(job) => {
                self.send(job).await?;
                receive(result).await
            }
        }
    }

    /// Does a job on the calling thread, or gives it back.
    fn commit_at_once(&self, bytes: usize, job: Job) -> Option<Job> {
        let inner = &*self.inner;
        if bytes > SHORT || inner.durability != Durability::Process {
            return Some(job);
        }
        let Some(conn) = inner.conn.try_lock() else {
            return Some(job);
        };
        // What was queued before comes first.
        if inner.queued.load(Ordering::SeqCst) > 0 || !inner.wal.is_appended_to() {
            return Some(job);
        }
        writer::run(&conn, &inner.call_off, &inner.commits, &mut vec![job]);
        drop(conn);
        if inner.wal.wants_moving() {
            let queued = Queued::new(&inner.queued);
            // A full queue wakes the thread as well.
            if inner.writer.try_push(Job::Wake) {
                queued.hand_over();
            }
        }
        None
    }

    /// Runs the closure on a reader thread, over one consistent state of the database. Dropping the future calls
    /// the read off: it is not begun, or its statement ends with [`StorageError::Interrupted`].
    ///
    /// # Errors
    /// What the closure says, or [`StorageError::Closed`] while the store closes.
    pub async fn read<T: Send + 'static>(
        &self,
        f: impl FnOnce(&Connection) -> Result<T, StorageError> + Send + 'static,
    ) -> Result<T, StorageError> {
        self.read_for("", f).await
    }

    /// As [`Self::read`], for an owner, e.g. a workspace: owners take turns, and one that reads much leaves half of
    /// the threads to the others.
    ///
    /// # Errors
    /// As for [`Self::read`].
    pub async fn read_for<T: Send + 'static>(
        &self,
        owner: &str,
        f: impl FnOnce(&Connection) -> Result<T, StorageError> + Send + 'static,
    ) -> Result<T, StorageError> {
        erased::value(self.read_queued(owner, erased::reading(f)).await)
    }

    async fn read_queued(&self, owner: &str, f: Reading) -> Done {
        let (read, _hold, result) = reader::pack(f);
        self.queue(owner, read).await?;
        receive(result).await
    }

    /// As [`Self::read`], for a few rows that are found by an index. While nobody writes it is done on the calling thread, which spares
    /// the wakes of two threads.
    ///
    /// # Errors
    /// As for [`Self::read`].
    pub async fn read_short<T: Send + 'static>(
        &self,
        f: impl FnOnce(&Connection) -> Result<T, StorageError> + Send + 'static,
    ) -> Result<T, StorageError> {
        erased::value(self.read_soon(erased::reading(f)).await)
    }

    async fn read_soon(&self, f: Reading) -> Done {
        let (read, _hold, mut result) = reader::pack(f);
        match self.read_at_once(read) {
            None => result.try_recv().map_err(|_| StorageError::Closed)?,
            Some(read) => {
                self.queue("", read).await?;
                receive(result).await
            }
        }
    }

    /// Does a read on the calling thread, or gives it back.
    fn read_at_once(&self, read: Read) -> Option<Read> {
        let inner = &*self.inner;
        let Some(conn) = inner.conn.try_lock() else {
            return Some(read);
        };
        read(&conn, &inner.call_off);
        None
    }

    /// Queues a read of an owner.
    async fn queue(&self, owner: &str, read: Read) -> Result<(), StorageError> {
        match &self.inner.readers {
            Some(readers) => readers.push(owner, read).await,
            None => self.send(Job::Read(read)).await,
        }
    }

    async fn send(&self, job: Job) -> Result<(), StorageError> {
        let queued = Queued::new(&self.inner.queued);
        self.inner.writer.push(job).await?;
        queued.hand_over();
        Ok(())
    }
}

/// Counts a job that is being queued, unless it never is.
struct Queued<'a>(Option<&'a AtomicUsize>);

impl<'a> Queued<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Some(count))
    }

    /// The writer's thread has it, and counts it down.
    fn hand_over(mut self) {
        self.0 = None;
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        if let Some(count) = self.0 {
            count.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

async fn receive(result: oneshot::Receiver<Done>) -> Done {
    result.await.map_err(|_| StorageError::Closed)?
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(readers) = &mut self.readers {
            readers.close();
        }
    }
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database")
            .field("durability", &self.inner.durability)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
