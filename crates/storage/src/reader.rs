//! A small pool of reader threads over one bounded queue. Each read sees one consistent state.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};
use rusqlite::Connection;
use tokio::sync::{Semaphore, oneshot};

use crate::{StorageError, connection};

/// Threads of a pool.
const READERS: usize = 2;
/// Reads that may wait.
const QUEUE: usize = 1024;

pub(crate) type Read = Box<dyn FnOnce(&Connection) + Send>;

struct Shared {
    state: Mutex<State>,
    wake: Condvar,
    room: Semaphore,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Read>,
    closed: bool,
}

/// Handle of the pool; the threads end when it is closed.
pub(crate) struct Readers {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    /// Opens the connections and starts the threads.
    pub(crate) fn start(path: &Path) -> Result<Self, StorageError> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            wake: Condvar::new(),
            room: Semaphore::new(QUEUE),
        });
        let mut readers = Self {
            shared,
            threads: Vec::with_capacity(READERS),
        };
        for _ in 0..READERS {
            let conn = connection::reader(path)?;
            let shared = readers.shared.clone();
            let thread = std::thread::Builder::new()
                .name("store-read".to_owned())
                .spawn(move || shared.work(&conn))
                .map_err(|error| StorageError::from_io(&error))?;
            readers.threads.push(thread);
        }
        Ok(readers)
    }

    /// Queues a read; waits while the queue is full.
    pub(crate) async fn push(&self, read: Read) -> Result<(), StorageError> {
        let permit = self.shared.room.acquire().await;
        permit.map_err(|_| StorageError::Closed)?.forget();
        self.shared.state.lock().queue.push_back(read);
        self.shared.wake.notify_one();
        Ok(())
    }

    /// Lets the threads finish what is queued, and waits for them unless it is called by one of them.
    pub(crate) fn close(&mut self) {
        self.shared.state.lock().closed = true;
        self.shared.wake.notify_all();
        for thread in self.threads.drain(..) {
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    fn work(&self, conn: &Connection) {
        while let Some(read) = self.next() {
            self.room.add_permits(1);
            read(conn);
        }
    }

    fn next(&self) -> Option<Read> {
        let mut state = self.state.lock();
        loop {
            if let Some(read) = state.queue.pop_front() {
                return Some(read);
            }
            if state.closed {
                return None;
            }
            self.wake.wait(&mut state);
        }
    }
}

/// Packs a closure; its result arrives at the receiver.
pub(crate) fn pack<T: Send + 'static>(
    f: impl FnOnce(&Connection) -> Result<T, StorageError> + Send + 'static,
) -> (Read, oneshot::Receiver<Result<T, StorageError>>) {
    let (sender, receiver) = oneshot::channel();
    let read: Read = Box::new(move |conn| {
        if !sender.is_closed() {
            // The caller may go meanwhile; nobody is told then.
            let _ = sender.send(consistent(conn, f));
        }
    });
    (read, receiver)
}

fn consistent<T>(
    conn: &Connection,
    f: impl FnOnce(&Connection) -> Result<T, StorageError>,
) -> Result<T, StorageError> {
    conn.prepare_cached("BEGIN DEFERRED")?.execute([])?;
    let result = catch_unwind(AssertUnwindSafe(|| f(conn))).unwrap_or(Err(StorageError::Panicked));
    if !conn.is_autocommit() {
        conn.prepare_cached("ROLLBACK")?.execute([])?;
    }
    result
}
