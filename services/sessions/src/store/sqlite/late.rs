//! What turns write: it does not grow with their session, and equal large texts are kept once.

use std::ops::Range;
use std::path::Path;

use tg_schemas::operations::{CompactStrategy, Usage};
use tg_storage::Durability;

use super::SqliteSessions;
use crate::store::{Answer, Asked, NewSession, Owner, SessionStore, Surface};

/// Turns of each half.
const HALF: usize = 5_000;
/// Turns whose bytes are measured: fewer than fill the log, which would move into the file then.
const SOME: usize = 250;

fn opened(dir: &Path) -> SqliteSessions {
    let (index, root) = (dir.join("i.sqlite"), dir.join("all"));
    SqliteSessions::open(&index, &root, Durability::Process).unwrap()
}

fn new() -> NewSession {
    NewSession {
        id: "1".to_owned(),
        owner: Owner {
            surface: Surface::Named,
            agent: "a".to_owned(),
            user: "ann".to_owned(),
        },
        title: None,
        knowledge: Vec::new(),
        strategy: CompactStrategy::Off,
        keep: 0,
        mask: true,
        request: "r".to_owned(),
        at: 10,
    }
}

/// A turn; each has as many bytes as any other.
async fn turn(store: &SqliteSessions, at: usize) {
    let asked = Asked {
        request: format!("q{at:06}"),
        id: format!("u{at:06}"),
        content: format!("question {at:06}"),
        at: 1_000,
    };
    let begun = store.begin("w", "1", asked).await.unwrap().unwrap();
    let answer = Answer {
        id: format!("a{at:06}"),
        steps: Vec::new(),
        content: format!("answer {at:06}"),
        usage: Usage::default(),
        result: "{}".to_owned(),
        loop_window: "[1]".to_owned(),
        to_search: false,
        at: 1_000,
    };
    let finished = store.finish("w", "1", begun.turn, answer).await.unwrap();
    assert!(finished.is_some());
}

async fn turns(store: &SqliteSessions, all: Range<usize>) {
    for at in all {
        turn(store, at).await;
    }
}

/// Bytes that turns write: pages that are written again count again. Nothing else is in the log of a file that was just opened.
async fn bytes_of(store: &SqliteSessions, dir: &Path, all: Range<usize>) -> u64 {
    turns(store, all).await;
    let log = std::fs::metadata(dir.join("all/w.sqlite-wal"));
    log.unwrap().len()
}

/// Rows that were written since the file was opened.
async fn written(store: &SqliteSessions) -> i64 {
    let file = store.files.find("w").await.unwrap().unwrap();
    let changes = file.write(|tx| {
        let rows = tx.query_row("SELECT total_changes()", [], |row| row.get(0))?;
        Ok(rows)
    });
    changes.await.unwrap()
}

/// Rows that a turn writes.
async fn rows_of(store: &SqliteSessions, at: usize) -> i64 {
    let before = written(store).await;
    turn(store, at).await;
    written(store).await - before
}

/// Bytes of the file of a workspace, once all that was written stands in it.
fn closed(store: SqliteSessions, dir: &Path) -> u64 {
    drop(store);
    std::fs::metadata(dir.join("all/w.sqlite")).unwrap().len()
}

/// The texts that are kept apart from their rows.
async fn parts(store: &SqliteSessions) -> i64 {
    let file = store.files.find("w").await.unwrap().unwrap();
    let count = file.read(|conn| {
        let count = conn.query_row("SELECT count(*) FROM part", [], |row| row.get(0))?;
        Ok(count)
    });
    count.await.unwrap()
}

#[tokio::test]
async fn equal_large_texts_are_kept_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = opened(dir.path());
    store.create("w", new()).await.unwrap();
    for (at, letter) in ["x", "x", "y"].into_iter().enumerate() {
        let asked = Asked {
            request: format!("q{at}"),
            id: format!("u{at}"),
            content: letter.repeat(20 << 10),
            at: 1_000,
        };
        store.begin("w", "1", asked).await.unwrap().unwrap();
    }
    assert_eq!(parts(&store).await, 2);
}

#[tokio::test]
async fn a_late_turn_writes_as_many_rows_and_bytes_as_an_early_one() {
    let dir = tempfile::tempdir().unwrap();
    let store = opened(dir.path());
    store.create("w", new()).await.unwrap();
    let begun = closed(store, dir.path());
    let store = opened(dir.path());
    let rows = rows_of(&store, 0).await;
    turns(&store, 1..SOME).await;
    closed(store, dir.path());
    let store = opened(dir.path());
    let early = bytes_of(&store, dir.path(), SOME..2 * SOME).await;
    turns(&store, 2 * SOME..HALF).await;
    let half = closed(store, dir.path());
    let store = opened(dir.path());
    let last = 2 * HALF - 1;
    turns(&store, HALF..last - SOME).await;
    closed(store, dir.path());
    let store = opened(dir.path());
    let late = bytes_of(&store, dir.path(), last - SOME..last).await;
    assert!(early > 0 && late * 10 <= early * 11, "{early}, {late}");
    assert_eq!(rows_of(&store, last).await, rows);
    let session = store.session("w", "1").await.unwrap().unwrap();
    assert_eq!(session.messages, 4 * HALF as i64);
    let whole = closed(store, dir.path());
    let (first, second) = (half - begun, whole - half);
    assert!(first > 0 && second * 10 <= first * 11, "{first}, {second}");
}
