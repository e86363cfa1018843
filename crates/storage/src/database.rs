//! The handle: opening, writing, reading, closing.

use std::path::Path;
use std::sync::Arc;

use metrics::Counter;
use parking_lot::Mutex;
use rusqlite::{Connection, Transaction};
use tokio::sync::oneshot;

use crate::group::{GroupBounds, GroupCommitter};
use crate::lock::OwnerLock;
use crate::reader::{self, CallOff, Readers};
use crate::writer::{self, Job};
use crate::{Durability, StorageError, connection, identity, private};

/// A database of this process. Clones share it; the last one closes it and waits for queued work.
#[derive(Clone)]
pub struct Database {
    inner: Arc<Inner>,
}

struct Inner {
    writer: GroupCommitter<Job>,
    /// Of the writer's thread, and of [`Database::write_here`].
    conn: Arc<Mutex<Connection>>,
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
        let conn = connection::writer(path, migrations, durability)?;
        identity::ensure(&conn)?;
        let readers = Readers::start(path)?;
        private::close(path);
        let commits = writer::commits_of(store);
        Self::start(conn, Some(readers), durability, (commits, Some(lock)))
    }

    /// A database without a file, gone with its last handle.
    ///
    /// # Errors
    /// A migration fails, or the thread of the writer cannot be started.
    pub fn in_memory(migrations: &'static [&'static str]) -> Result<Self, StorageError> {
        let conn = connection::memory(migrations)?;
        let commits = writer::commits_of("memory");
        Self::start(conn, None, Durability::Process, (commits, None))
    }

    fn start(
        mut conn: Connection,
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
        let commit = move |group: &mut Vec<Job>| {
            writer::run(&of_thread.lock(), &called_off, &counted, group);
        };
        let writer = GroupCommitter::start("store-write", GroupBounds::default(), commit)?;
        Ok(Self {
            inner: Arc::new(Inner {
                writer,
                conn,
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
        let (job, mut result) = writer::job(f);
        let Inner {
            conn,
            call_off,
            commits,
            ..
        } = &*self.inner;
        writer::run(&conn.lock(), call_off, commits, &mut vec![job]);
        result.try_recv().map_err(|_| StorageError::Closed)?
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
        let (read, _hold, result) = reader::pack(f);
        match &self.inner.readers {
            Some(readers) => readers.push(owner, read).await?,
            None => self.send(Job::Read(read)).await?,
        }
        receive(result).await
    }

    async fn send(&self, job: Job) -> Result<(), StorageError> {
        self.inner.writer.push(job).await
    }
}

async fn receive<T>(result: oneshot::Receiver<Result<T, StorageError>>) -> Result<T, StorageError> {
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
