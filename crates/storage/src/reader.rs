//! A small pool of reader threads over one bounded queue. Owners of reads take turns, and none has more than half of the
//! threads. Each read sees one consistent state. A read whose caller
//! went is not begun, and interrupted if it is running.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};
use rusqlite::Connection;
use tokio::sync::{Semaphore, oneshot};

use crate::erased::{Done, Reading};
use crate::{StorageError, connection};

/// Threads of a pool where there are as many processors. A thread more than there are makes no read faster, and keeps
/// pages and a heap of its own.
const READERS: usize = 4;
/// However few processors there are, one owner leaves a thread to others.
const LEAST: usize = 2;
/// Steps of SQLite's machine between two looks at whether a read is called off: well below a millisecond.
const STEPS: i32 = 10_000;
/// Reads that may wait.
const QUEUE: usize = 1024;

pub(crate) type Read = Box<dyn FnOnce(&Connection, &CallOff) + Send>;

/// The caller's hold on a read: dropped before its end, the read is called off.
pub(crate) struct Hold(Arc<Mutex<Progress>>);

/// How far a read is.
enum Progress {
    /// Waits for a thread.
    Waiting,
    /// Runs on a connection, which this calls off.
    Running(CallOff),
    /// Has ended, or must not begin.
    Over,
}

/// Ends what a connection does, for as long as it is set: SQLite asks every some thousand steps. (Its own interrupt
/// is forgotten if no statement runs at that moment.)
#[derive(Clone, Default)]
pub(crate) struct CallOff(Arc<AtomicBool>);

impl CallOff {
    /// Lets a connection be called off.
    pub(crate) fn of(conn: &mut Connection) -> Result<Self, StorageError> {
        let call_off = Self::default();
        let asked = call_off.clone();
        conn.progress_handler(STEPS, Some(move || asked.0.load(Ordering::Relaxed)))?;
        Ok(call_off)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // The lock is held meanwhile: the connection cannot have gone on to the next read.
        let mut progress = self.0.lock();
        if let Progress::Running(connection) = &*progress {
            connection.0.store(true, Ordering::Relaxed);
        }
        *progress = Progress::Over;
    }
}

struct Shared {
    state: Mutex<State>,
    wake: Condvar,
    room: Semaphore,
}

struct State {
    /// Threads that one owner may have.
    share: usize,
    /// What waits, by owner; the owner at the front is next.
    queues: VecDeque<(Arc<str>, VecDeque<Read>)>,
    /// Threads that an owner has, if it has any.
    running: HashMap<Arc<str>, usize>,
    closed: bool,
}

impl State {
    fn of(threads: usize) -> Self {
        Self {
            share: threads / 2,
            queues: VecDeque::new(),
            running: HashMap::new(),
            closed: false,
        }
    }

    fn push(&mut self, owner: &str, read: Read) {
        let known = self.queues.iter_mut().find(|(of, _)| **of == *owner);
        match known {
            Some((_, queue)) => queue.push_back(read),
            None => self
                .queues
                .push_back((owner.into(), VecDeque::from([read]))),
        }
    }

    /// The next read of the first owner that has not its share of threads already. That owner is last then.
    fn take(&mut self) -> Option<(Arc<str>, Read)> {
        let running = |owner: &Arc<str>| self.running.get(owner).copied().unwrap_or(0);
        let at = self
            .queues
            .iter()
            .position(|(owner, _)| owner.is_empty() || running(owner) < self.share)?;
        let (owner, mut queue) = self.queues.remove(at)?;
        let read = queue.pop_front()?;
        if !queue.is_empty() {
            self.queues.push_back((owner.clone(), queue));
        }
        *self.running.entry(owner.clone()).or_default() += 1;
        Some((owner, read))
    }

    fn done(&mut self, owner: &Arc<str>) {
        if let Some(running) = self.running.get_mut(owner) {
            *running -= 1;
            if *running == 0 {
                self.running.remove(owner);
            }
        }
    }
}

/// Handle of the pool; the threads end when it is closed.
pub(crate) struct Readers {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    /// Opens the connections and starts the threads.
    pub(crate) fn start(path: &Path) -> Result<Self, StorageError> {
        let processors = std::thread::available_parallelism().map_or(LEAST, usize::from);
        let count = processors.clamp(LEAST, READERS);
        let shared = Arc::new(Shared {
            state: Mutex::new(State::of(count)),
            wake: Condvar::new(),
            room: Semaphore::new(QUEUE),
        });
        let mut readers = Self {
            shared,
            threads: Vec::with_capacity(count),
        };
        for _ in 0..count {
            let mut conn = connection::reader(path)?;
            let call_off = CallOff::of(&mut conn)?;
            let shared = readers.shared.clone();
            let thread = std::thread::Builder::new()
                .name("store-read".to_owned())
                .stack_size(crate::STACK)
                .spawn(move || shared.work(&conn, &call_off))
                .map_err(|error| StorageError::from_io(&error))?;
            readers.threads.push(thread);
        }
        Ok(readers)
    }

    /// Queues a read of an owner; waits while the queue is full. What has no owner has no share either.
    pub(crate) async fn push(&self, owner: &str, read: Read) -> Result<(), StorageError> {
        let permit = self.shared.room.acquire().await;
        permit.map_err(|_| StorageError::Closed)?.forget();
        self.shared.state.lock().push(owner, read);
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
    fn work(&self, conn: &Connection, call_off: &CallOff) {
        while let Some((owner, read)) = self.next() {
            self.room.add_permits(1);
            read(conn, call_off);
            self.state.lock().done(&owner);
            // Another of that owner may be waiting for its share.
            self.wake.notify_one();
        }
    }

    fn next(&self) -> Option<(Arc<str>, Read)> {
        let mut state = self.state.lock();
        loop {
            if let Some(next) = state.take() {
                return Some(next);
            }
            // What waits for its owner's share is taken by the thread that works for it.
            if state.closed {
                return None;
            }
            self.wake.wait(&mut state);
        }
    }
}

/// Packs a closure; its result arrives at the receiver for as long as the hold is kept.
pub(crate) fn pack(f: Reading) -> (Read, Hold, oneshot::Receiver<Done>) {
    let (sender, receiver) = oneshot::channel();
    let progress = Arc::new(Mutex::new(Progress::Waiting));
    let hold = Hold(progress.clone());
    let read: Read = Box::new(move |conn, call_off| {
        {
            let mut progress = progress.lock();
            if matches!(*progress, Progress::Over) {
                return;
            }
            *progress = Progress::Running(call_off.clone());
        }
        let result = consistent(conn, f, || {
            let mut progress = progress.lock();
            *progress = Progress::Over;
            call_off.0.store(false, Ordering::Relaxed);
        });
        // The caller may have gone meanwhile; nobody is told then.
        let _ = sender.send(result);
    });
    (read, hold, receiver)
}

/// Runs a read in a transaction. From `over` on nobody interrupts, so the connection is left as it was found.
fn consistent(conn: &Connection, f: Reading, over: impl FnOnce()) -> Done {
    let begun = conn
        .prepare_cached("BEGIN DEFERRED")
        .and_then(|mut begin| begin.execute([]));
    let result = match begun {
        Ok(_) => catch_unwind(AssertUnwindSafe(|| f(conn))).unwrap_or(Err(StorageError::Panicked)),
        Err(error) => Err(error.into()),
    };
    over();
    if !conn.is_autocommit() {
        conn.prepare_cached("ROLLBACK")?.execute([])?;
    }
    result
}
