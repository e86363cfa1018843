//! The writer thread. Jobs that wait together share one SQLite transaction, each in a savepoint of its
//! own, and hear about their success only after the commit.

use std::panic::{AssertUnwindSafe, catch_unwind};

use metrics::Counter;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::oneshot;

use crate::StorageError;
use crate::erased::{Done, Writing};
use crate::full_disk::log_full_disk;
use crate::reader::{CallOff, Read};

type Outcome = Option<StorageError>;
/// Tells the caller; the argument is what went wrong after the job itself had succeeded.
type Finish = Box<dyn FnOnce(Outcome) + Send>;
/// Runs in the given transaction, or hears why there is none.
type Work =
    Box<dyn FnOnce(Result<&Transaction<'_>, StorageError>) -> Result<Finish, StorageError> + Send>;

/// Something for the writer thread.
pub(crate) enum Job {
    /// Part of a transaction.
    Write(Work),
    /// A read of a database that has only this connection.
    Read(Read),
    /// Nothing but what the thread does after each group.
    Wake,
}

/// Packs a closure; its result arrives at the receiver after the commit.
pub(crate) fn job(f: Writing) -> (Job, oneshot::Receiver<Done>) {
    let (sender, receiver) = oneshot::channel();
    let work: Work = Box::new(move |tx| {
        let result = tx.and_then(|tx| {
            catch_unwind(AssertUnwindSafe(|| f(tx))).unwrap_or(Err(StorageError::Panicked))
        });
        match result {
            Ok(value) => Ok(Box::new(move |outcome: Outcome| {
                // The caller may have gone; its write counts all the same.
                let _ = sender.send(outcome.map_or(Ok(value), Err));
            })),
            Err(error) => {
                let _ = sender.send(Err(error.clone()));
                Err(error)
            }
        }
    });
    (Job::Write(work), receiver)
}

/// What a database counts: each commit that changed something, under the name of its store.
pub(crate) fn commits_of(store: &str) -> Counter {
    metrics::counter!("tg_store_commits_total", "store" => store.to_owned())
}

/// Does the jobs of a group.
pub(crate) fn run(conn: &Connection, call_off: &CallOff, commits: &Counter, group: &mut Vec<Job>) {
    let mut writes = Vec::with_capacity(group.len());
    for job in group.drain(..) {
        match job {
            Job::Write(work) => writes.push(work),
            Job::Read(read) => {
                commit_group(conn, commits, &mut writes);
                read(conn, call_off);
            }
            Job::Wake => {}
        }
    }
    commit_group(conn, commits, &mut writes);
}

/// Runs and commits jobs. SQLite may end a transaction by itself (disk full, I/O error): then what ran
/// before in the group fails with the same reason, and the rest gets a transaction of its own.
fn commit_group(conn: &Connection, commits: &Counter, writes: &mut Vec<Work>) {
    let mut rest = std::mem::take(writes).into_iter().peekable();
    while rest.peek().is_some() {
        let mut done = Vec::new();
        let outcome = transaction(conn, commits, &mut rest, &mut done).err();
        match &outcome {
            Some(StorageError::Full) => log_full_disk("a store cannot commit"),
            Some(error) => tracing::warn!(%error, jobs = done.len(), "commit failed"),
            None => {}
        }
        for finish in done {
            finish(outcome.clone());
        }
    }
}

fn transaction(
    conn: &Connection,
    commits: &Counter,
    jobs: &mut std::iter::Peekable<std::vec::IntoIter<Work>>,
    done: &mut Vec<Finish>,
) -> Result<(), StorageError> {
    let changes = conn.total_changes();
    let tx = match Transaction::new_unchecked(conn, TransactionBehavior::Immediate) {
        Ok(tx) => tx,
        Err(error) => {
            let error = StorageError::from(error);
            jobs.for_each(|work| fail(work, &error));
            return Err(error);
        }
    };
    let alone = jobs.len() == 1;
    for work in jobs.by_ref() {
        if !alone && let Err(error) = step(&tx, "SAVEPOINT job") {
            fail(work, &error);
            return Err(error);
        }
        let failed = match work(Ok(&tx)) {
            Ok(finish) => {
                done.push(finish);
                None
            }
            Err(error) => Some(error),
        };
        if conn.is_autocommit() {
            return Err(failed.unwrap_or(StorageError::Failed("the transaction was ended".into())));
        }
        match (alone, failed.is_some()) {
            (true, true) => {
                tx.rollback()?;
                return Ok(());
            }
            (true, false) => {}
            (false, true) => {
                step(&tx, "ROLLBACK TO job")?;
                step(&tx, "RELEASE job")?;
            }
            (false, false) => step(&tx, "RELEASE job")?,
        }
    }
    // On failure the transaction is rolled back when `tx` is dropped. Not by its own method, which compiles the statement each time.
    step(&tx, "COMMIT")?;
    if conn.total_changes() != changes {
        commits.increment(1);
    }
    Ok(())
}

fn fail(work: Work, error: &StorageError) {
    // The work tells its caller itself.
    let _ = work(Err(error.clone()));
}

fn step(tx: &Transaction<'_>, sql: &str) -> Result<(), StorageError> {
    tx.prepare_cached(sql)?.execute([])?;
    Ok(())
}
