//! Group commit, isolation of failing jobs, full disk, ownership, migrations.

use super::*;
use futures::FutureExt;
use tempfile::tempdir;

const SCHEMA: &[&str] = &["CREATE TABLE item (id INTEGER PRIMARY KEY, body BLOB)"];

async fn insert(db: &Database, id: i64) -> Result<(), StorageError> {
    db.write(move |tx| {
        tx.prepare_cached("INSERT INTO item (id) VALUES (?1)")?
            .execute([id])?;
        Ok(())
    })
    .await
}

async fn count(db: &Database) -> i64 {
    db.read(|conn| Ok(conn.query_row("SELECT count(*) FROM item", [], |row| row.get(0))?))
        .await
        .unwrap()
}

#[tokio::test]
async fn what_is_written_is_there_after_reopening() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("deep/er/store.db");
    let db = Database::open(&path, SCHEMA, Durability::Power).unwrap();
    insert(&db, 1).await.unwrap();
    assert_eq!(count(&db).await, 1);
    drop(db);
    let db = Database::open(&path, SCHEMA, Durability::Process).unwrap();
    assert_eq!(count(&db).await, 1);
}

#[tokio::test]
async fn a_failing_job_undoes_only_itself() {
    let dir = tempdir().unwrap();
    for db in [
        Database::in_memory(SCHEMA).unwrap(),
        Database::open(&dir.path().join("store.db"), SCHEMA, Durability::Process).unwrap(),
    ] {
        let jobs = (0..300).map(|n| {
            let db = db.clone();
            async move {
                db.write(move |tx| {
                    tx.execute("INSERT INTO item (id) VALUES (?1)", [n])?;
                    match n % 3 {
                        0 => Ok(()),
                        1 => Err(StorageError::Missing),
                        _ => panic!("a job's fault"),
                    }
                })
                .await
            }
        });
        let results = futures::future::join_all(jobs).await;
        for (n, result) in results.into_iter().enumerate() {
            let expected = match n % 3 {
                0 => Ok(()),
                1 => Err(StorageError::Missing),
                _ => Err(StorageError::Panicked),
            };
            assert_eq!(result, expected);
        }
        assert_eq!(count(&db).await, 100);
    }
}

#[tokio::test]
async fn a_thread_that_commits_itself_is_one_writer_among_others() {
    let dir = tempdir().unwrap();
    for db in [
        Database::in_memory(SCHEMA).unwrap(),
        Database::open(&dir.path().join("store.db"), SCHEMA, Durability::Process).unwrap(),
    ] {
        let own = db.clone();
        let thread = std::thread::spawn(move || {
            let results = (0..150).map(|n| {
                own.write_here(move |tx| {
                    tx.execute("INSERT INTO item (id) VALUES (?1)", [n])?;
                    match n % 3 {
                        0 => Ok(n),
                        1 => Err(StorageError::Missing),
                        _ => panic!("a job's fault"),
                    }
                })
            });
            results.collect::<Vec<_>>()
        });
        let queued = (1000..1100).map(|id| insert(&db, id));
        let queued = futures::future::join_all(queued).await;
        assert!(queued.iter().all(Result::is_ok));
        for (n, result) in (0..).zip(thread.join().unwrap()) {
            let expected = match n % 3 {
                0 => Ok(n),
                1 => Err(StorageError::Missing),
                _ => Err(StorageError::Panicked),
            };
            assert_eq!(result, expected);
        }
        assert_eq!(count(&db).await, 150);
    }
}

/// The thread on which a short write was committed.
async fn committed_by(db: &Database, id: i64, bytes: usize) -> std::thread::ThreadId {
    let write = db.write_short(bytes, move |tx| {
        tx.execute("INSERT INTO item (id) VALUES (?1)", [id])?;
        Ok(std::thread::current().id())
    });
    write.await.unwrap()
}

/// Returns once the writer's thread has let go of the connection.
fn let_go(db: &Database) {
    drop(db.inner.conn.lock());
}

#[tokio::test]
async fn a_short_write_is_committed_here_while_the_writer_is_idle_and_waits_in_order_else() {
    let here = std::thread::current().id();
    let dir = tempdir().unwrap();
    for db in [
        Database::in_memory(SCHEMA).unwrap(),
        Database::open(&dir.path().join("store.db"), SCHEMA, Durability::Process).unwrap(),
    ] {
        // The first commit of a log is the writer's.
        insert(&db, 1).await.unwrap();
        let_go(&db);
        assert_eq!(committed_by(&db, 2, SHORT).await, here);
        assert_ne!(committed_by(&db, 3, SHORT + 1).await, here);
        let_go(&db);
        let error = db.write_short(0, |tx| {
            tx.execute("INSERT INTO item (id) VALUES (99)", [])?;
            Err::<(), _>(StorageError::Missing)
        });
        assert_eq!(error.await, Err(StorageError::Missing));
        let panics = db.write_short(0, |_| -> Result<(), StorageError> {
            panic!("a job's fault")
        });
        assert_eq!(panics.await, Err(StorageError::Panicked));
        // Something is queued.
        db.inner.queued.fetch_add(1, Ordering::SeqCst);
        assert_ne!(committed_by(&db, 4, 0).await, here);
        db.inner.queued.fetch_sub(1, Ordering::SeqCst);
        let_go(&db);
        // The writer is at work.
        let mut waits = Box::pin(committed_by(&db, 5, 0));
        {
            let _at_work = db.inner.conn.lock();
            assert!((&mut waits).now_or_never().is_none());
        }
        assert_ne!(waits.await, here);
        let_go(&db);
        assert_eq!(db.inner.queued.load(Ordering::SeqCst), 0);
        assert_eq!(committed_by(&db, 6, 0).await, here);
        assert_eq!(count(&db).await, 6);
    }
    let safe = Database::open(&dir.path().join("safe.db"), SCHEMA, Durability::Power).unwrap();
    insert(&safe, 1).await.unwrap();
    let_go(&safe);
    assert_ne!(committed_by(&safe, 2, 0).await, here);
}

/// The thread on which a short read was done that finds so many rows.
async fn read_by(db: &Database, rows: i64) -> std::thread::ThreadId {
    let read = db.read_short(|conn| {
        let count = conn.query_row("SELECT count(*) FROM item", [], |row| row.get(0))?;
        Ok::<(i64, _), _>((count, std::thread::current().id()))
    });
    let (count, by) = read.await.unwrap();
    assert_eq!(count, rows);
    by
}

#[tokio::test]
async fn a_short_read_is_done_here_while_nobody_writes_and_by_a_thread_of_the_store_else() {
    let here = std::thread::current().id();
    let dir = tempdir().unwrap();
    for db in [
        Database::in_memory(SCHEMA).unwrap(),
        Database::open(&dir.path().join("store.db"), SCHEMA, Durability::Process).unwrap(),
    ] {
        insert(&db, 1).await.unwrap();
        let_go(&db);
        assert_eq!(read_by(&db, 1).await, here);
        let error = db.read_short(|_| Err::<(), _>(StorageError::Missing));
        assert_eq!(error.await, Err(StorageError::Missing));
        let panics =
            db.read_short(|_| -> Result<(), StorageError> { panic!("a fault of who reads") });
        assert_eq!(panics.await, Err(StorageError::Panicked));
        // The writer is at work. Only where it is the one reader, too, is it waited for.
        let mut reads = Box::pin(read_by(&db, 1));
        let early = {
            let _at_work = db.inner.conn.lock();
            (&mut reads).now_or_never()
        };
        let by = match early {
            Some(by) => by,
            None => reads.await,
        };
        assert_ne!(by, here);
        insert(&db, 2).await.unwrap();
        let_go(&db);
        assert_eq!(read_by(&db, 2).await, here);
    }
}

/// Returns once the writer's thread has moved a full log into the file; it is woken by the write that fills it, and by nothing else.
async fn moved(db: &Database) {
    let moves = async {
        while db.inner.wal.is_full() {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    };
    let moved = tokio::time::timeout(std::time::Duration::from_secs(60), moves).await;
    moved.expect("the log is moved");
    let_go(db);
}

#[tokio::test]
async fn the_writers_thread_moves_what_short_writes_left_in_the_log() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("store.db");
    let db = Database::open(&path, SCHEMA, Durability::Process).unwrap();
    let here = std::thread::current().id();
    let mut by_others = 0;
    for id in 0..40 {
        moved(&db).await;
        let appends = db.inner.wal.is_appended_to();
        // Says that it is short: it has about as many pages as fill the log after 16 of them.
        let write = db.write_short(0, move |tx| {
            tx.execute("INSERT INTO item VALUES (?1, zeroblob(1048576))", [id])?;
            Ok(std::thread::current().id())
        });
        let by_other = write.await.unwrap() != here;
        assert_ne!(
            by_other, appends,
            "{id}: the thread begins a log anew, and nothing else"
        );
        by_others += u8::from(by_other);
    }
    assert_eq!(by_others, 2, "logs that began anew");
    moved(&db).await;
    assert!(std::fs::metadata(&path).unwrap().len() > 16 << 20);
    assert_eq!(count(&db).await, 40);
}

#[tokio::test]
async fn a_full_disk_is_said_clearly_and_heals() {
    let dir = tempdir().unwrap();
    let db = Database::open(&dir.path().join("s.db"), SCHEMA, Durability::Process).unwrap();
    let pages = |count: i64| {
        let db = db.clone();
        async move {
            let job = db.write(move |tx| Ok(tx.pragma_update(None, "max_page_count", count)?));
            job.await.unwrap();
        }
    };
    pages(20).await;
    let big = |id: i64| {
        let db = db.clone();
        async move {
            db.write(move |tx| {
                tx.execute("INSERT INTO item VALUES (?1, zeroblob(200000))", [id])?;
                Ok(())
            })
            .await
        }
    };
    let (first, second, third) = tokio::join!(insert(&db, 1), big(2), big(3));
    let kept = i64::from(first.is_ok());
    assert!(matches!(first, Ok(()) | Err(StorageError::Full)));
    assert_eq!(second, Err(StorageError::Full));
    assert_eq!(third, Err(StorageError::Full));
    let shown = tg_schemas::Error::from(second.unwrap_err());
    assert_eq!(shown.kind, "storage-error");
    assert_eq!(count(&db).await, kept);
    pages(10_000).await;
    big(4).await.unwrap();
    assert_eq!(count(&db).await, kept + 1);
}

#[tokio::test]
async fn a_second_owner_is_refused() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("s.db");
    let db = Database::open(&path, SCHEMA, Durability::Process).unwrap();
    let second = Database::open(&path, SCHEMA, Durability::Process);
    assert_eq!(second.err(), Some(StorageError::InUse));
    drop(db);
    Database::open(&path, SCHEMA, Durability::Process).unwrap();
}

#[tokio::test]
async fn migrations_run_once_and_a_newer_file_is_refused() {
    const NEWER: &[&str] = &[SCHEMA[0], "ALTER TABLE item ADD COLUMN extra TEXT"];
    let dir = tempdir().unwrap();
    let path = dir.path().join("s.db");
    let db = Database::open(&path, SCHEMA, Durability::Process).unwrap();
    insert(&db, 1).await.unwrap();
    drop(db);
    let db = Database::open(&path, NEWER, Durability::Process).unwrap();
    let extra: Option<String> = db
        .read(|conn| Ok(conn.query_row("SELECT extra FROM item", [], |row| row.get(0))?))
        .await
        .unwrap();
    assert_eq!(extra, None);
    drop(db);
    let older = Database::open(&path, SCHEMA, Durability::Process);
    assert_eq!(
        older.err(),
        Some(StorageError::TooNew { found: 2, known: 1 })
    );
}

#[tokio::test]
async fn readers_cannot_write_and_a_file_that_is_no_database_is_corrupt() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("s.db");
    let db = Database::open(&path, SCHEMA, Durability::Process).unwrap();
    let refused = db
        .read(|conn| Ok(conn.execute("INSERT INTO item (id) VALUES (1)", [])?))
        .await;
    assert!(refused.is_err());
    assert_eq!(count(&db).await, 0);
    let noise = dir.path().join("noise.db");
    std::fs::write(&noise, [7; 4096]).unwrap();
    let opened = Database::open(&noise, SCHEMA, Durability::Process);
    assert!(matches!(opened, Err(StorageError::Corrupt(_))));
}

#[tokio::test]
async fn an_owner_that_reads_much_leaves_half_of_the_threads() {
    let dir = tempdir().unwrap();
    let db = Database::open(&dir.path().join("store.db"), SCHEMA, Durability::Process).unwrap();
    let endless = (0..64).map(|_| {
        db.read_for("much", |conn| {
            Ok(conn.query_row(ENDLESS, [], |row| row.get::<_, i64>(0))?)
        })
    });
    let endless = futures::future::join_all(endless);
    let other = async {
        for _ in 0..20 {
            let one = db.read_for("other", |conn| {
                Ok(conn.query_row("SELECT 1", [], |row| row.get::<_, i64>(0))?)
            });
            assert_eq!(one.await, Ok(1));
        }
        count(&db).await
    };
    let first = futures::future::select(Box::pin(endless), Box::pin(other));
    let first = tokio::time::timeout(std::time::Duration::from_secs(60), first).await;
    let heard = first.expect("the other owner is served");
    assert!(matches!(heard, futures::future::Either::Right((0, _))));
}

const ENDLESS: &str = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) \
                       SELECT count(*) FROM n";

#[tokio::test]
async fn reads_nobody_waits_for_are_ended_and_those_not_begun_never_run() {
    let dir = tempdir().unwrap();
    for db in [
        Database::in_memory(SCHEMA).unwrap(),
        Database::open(&dir.path().join("store.db"), SCHEMA, Durability::Process).unwrap(),
    ] {
        insert(&db, 1).await.unwrap();
        let endless = (0..64).map(|_| {
            let read = db.read(|conn| Ok(conn.query_row(ENDLESS, [], |row| row.get::<_, i64>(0))?));
            tokio::time::timeout(std::time::Duration::from_millis(50), read)
        });
        let results = futures::future::join_all(endless).await;
        assert!(results.iter().all(Result::is_err), "all were given up");
        let quick = tokio::time::timeout(std::time::Duration::from_secs(60), count(&db)).await;
        assert_eq!(quick, Ok(1), "the readers are free again");
        insert(&db, 2).await.unwrap();
        assert_eq!(count(&db).await, 2, "connections are as they were");
    }
}

/// As `.cargo/config.toml` says: threads do not take a lock of the whole process for each allocation of SQLite.
#[tokio::test]
async fn sqlite_counts_no_memory_and_shares_no_cache() {
    let db = Database::in_memory(SCHEMA).unwrap();
    let built = db.read(|conn| {
        crate::query_rows(conn, "PRAGMA compile_options", [], |row| {
            row.get::<_, String>(0)
        })
    });
    let built = built.await.unwrap();
    for with in [
        "DEFAULT_MEMSTATUS=0",
        "DISABLE_PAGECACHE_OVERFLOW_STATS",
        "OMIT_SHARED_CACHE",
    ] {
        assert!(
            built.iter().any(|option| option == with),
            "{with}: {built:?}"
        );
    }
}
