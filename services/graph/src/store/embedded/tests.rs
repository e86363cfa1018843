//! Patterns against the plain definition, journal and snapshots after reopening, isolation, full disk.

use std::time::Duration;

use super::*;
use std::collections::BTreeSet;

use oxigraph::model::Quad;
use proptest::prelude::*;
use tempfile::{TempDir, tempdir};
use tg_schemas::{Term, Triple};
use tg_storage::StorageError;

use crate::engine::convert;
use crate::engine::pattern::Asked;

fn open(dir: &TempDir) -> EmbeddedGraph {
    open_within(dir, &Limits::default())
}

fn open_within(dir: &TempDir, limits: &Limits) -> EmbeddedGraph {
    open_again(&dir.path().join("graph.db"), limits)
}

/// Opens a file whose engine was just dropped: a merge, a load or a compaction of that engine may still hold it.
pub(crate) fn open_again(path: &Path, limits: &Limits) -> EmbeddedGraph {
    let started = std::time::Instant::now();
    loop {
        match EmbeddedGraph::open(path, Durability::Process, limits.clone()) {
            Err(GraphError::Journal(StorageError::InUse))
                if started.elapsed() < Duration::from_secs(60) =>
            {
                std::thread::yield_now();
            }
            opened => return opened.unwrap(),
        }
    }
}

fn key() -> CollectionKey {
    CollectionKey::new("w", "c")
}

fn triple(n: usize) -> Triple {
    Triple::new(
        Term::iri(format!("urn:s{n}")),
        Term::iri("urn:p"),
        Term::literal(format!("o{n}")),
    )
}

fn quads(numbers: impl IntoIterator<Item = usize>) -> Vec<Quad> {
    let quads = numbers.into_iter().map(triple);
    quads
        .map(|triple| convert::quad("", &triple).unwrap())
        .collect()
}

async fn all(engine: &EmbeddedGraph, key: &CollectionKey) -> BTreeSet<Triple> {
    let found = engine.find(key, Pattern::default(), None).await.unwrap();
    let count = found.len();
    let set: BTreeSet<Triple> = found.into_iter().collect();
    assert_eq!(set.len(), count, "nothing is there twice");
    set
}

fn expected(numbers: impl IntoIterator<Item = usize>) -> BTreeSet<Triple> {
    numbers.into_iter().map(triple).collect()
}

#[tokio::test]
async fn what_was_written_is_there_after_reopening() {
    let dir = tempdir().unwrap();
    let engine = open(&dir);
    engine.insert(&key(), quads(0..100)).await.unwrap();
    engine.delete(&key(), quads(50..200)).await.unwrap();
    engine
        .write(&key(), Batch::new(quads(0..10), quads(5..7)))
        .await
        .unwrap();
    engine.insert(&key(), quads(20..30)).await.unwrap();
    let want = expected((5..7).chain(10..50));
    assert_eq!(all(&engine, &key()).await, want);
    drop(engine);
    let engine = open(&dir);
    assert!(
        engine.shared.entries.lock().is_empty(),
        "nothing is loaded at the start"
    );
    assert_eq!(all(&engine, &key()).await, want);
    engine.insert(&key(), quads(300..301)).await.unwrap();
    assert_eq!(all(&engine, &key()).await.len(), want.len() + 1);
}

#[tokio::test]
async fn writing_to_a_dataset_that_is_not_loaded_does_not_load_it() {
    let dir = tempdir().unwrap();
    let engine = open(&dir);
    engine.insert(&key(), quads(0..10)).await.unwrap();
    drop(engine);
    let engine = open(&dir);
    engine.insert(&key(), quads(10..20)).await.unwrap();
    assert!(engine.shared.entries.lock().is_empty());
    assert_eq!(all(&engine, &key()).await, expected(0..20));
}

#[tokio::test]
async fn reading_while_it_loads_sees_every_change() {
    let dir = tempdir().unwrap();
    let engine = open(&dir);
    for n in 0..200 {
        engine
            .insert(&key(), quads(n * 10..n * 10 + 10))
            .await
            .unwrap();
    }
    drop(engine);
    let engine = open(&dir);
    let reader = async { all(&engine, &key()).await.len() };
    let writer = async {
        for n in 200..300 {
            engine
                .insert(&key(), quads(n * 10..n * 10 + 10))
                .await
                .unwrap();
            let pattern = one(n * 10);
            let found = engine.find(&key(), pattern, None).await.unwrap();
            assert_eq!(found.len(), 1, "a change is visible once it is reported");
        }
    };
    let (seen, ()) = tokio::join!(reader, writer);
    assert!(seen >= 2_000);
    assert_eq!(all(&engine, &key()).await, expected(0..3_000));
}

fn one(n: usize) -> Pattern {
    let s = Term::iri(format!("urn:s{n}"));
    match Pattern::read(Some(&s), None, None, None).unwrap() {
        Asked::Pattern(pattern) => pattern,
        Asked::Nothing => panic!("an IRI can match"),
    }
}

/// Rows of the journal and the quads they name.
async fn journal(engine: &EmbeddedGraph) -> (i64, i64) {
    let sql = "SELECT count(*), coalesce(sum(quads), 0) FROM journal";
    let read = engine
        .shared
        .journal
        .read(move |conn| Ok(conn.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?));
    read.await.unwrap()
}

async fn merged(engine: &EmbeddedGraph) {
    // A merge starts within the change that makes it worth while.
    let _idle = engine.shared.merging.lock();
}

#[tokio::test]
async fn a_snapshot_with_its_tail_is_the_same_dataset() {
    let dir = tempdir().unwrap();
    let engine = open(&dir);
    for round in 0..9 {
        engine.insert(&key(), quads(0..20_000)).await.unwrap();
        engine
            .delete(&key(), quads(round * 10..20_000))
            .await
            .unwrap();
    }
    let started = std::time::Instant::now();
    while journal(&engine).await.1 > 150_000 {
        merged(&engine).await;
        tokio::task::yield_now().await;
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "the journal is merged"
        );
        engine.insert(&key(), quads(0..1)).await.unwrap();
    }
    engine.insert(&key(), quads(500..510)).await.unwrap();
    let want = expected((0..80).chain(500..510));
    assert_eq!(all(&engine, &key()).await, want);
    merged(&engine).await;
    drop(engine);
    let engine = open(&dir);
    assert_eq!(all(&engine, &key()).await, want);
}

#[tokio::test]
async fn many_small_changes_share_commits() {
    let dir = tempdir().unwrap();
    let engine = open(&dir);
    let (one, two) = (key(), CollectionKey::new("w", "other"));
    let changes = (0..500).map(|n| {
        let key = if n % 2 == 0 { &one } else { &two };
        engine.insert(key, quads([n]))
    });
    for result in futures::future::join_all(changes).await {
        result.unwrap();
    }
    assert_eq!(all(&engine, &one).await, expected((0..500).step_by(2)));
    assert_eq!(all(&engine, &two).await, expected((1..500).step_by(2)));
    let (rows, quads) = journal(&engine).await;
    assert_eq!(quads, 500);
    assert!(rows < 100, "{rows} rows");
}

#[tokio::test]
async fn datasets_are_apart_and_can_be_dropped() {
    let dir = tempdir().unwrap();
    let engine = open(&dir);
    // Names that would collide if they were joined.
    let keys = [("a", "b:c"), ("a:b", "c"), ("a", "b"), ("a", "")];
    let keys = keys.map(|(workspace, collection)| CollectionKey::new(workspace, collection));
    for (n, key) in keys.iter().enumerate() {
        engine.insert(key, quads([n])).await.unwrap();
    }
    for (n, key) in keys.iter().enumerate() {
        assert_eq!(all(&engine, key).await, expected([n]));
    }
    assert_eq!(
        engine.collections("a").await.unwrap(),
        ["b", "b:c", "default"]
    );
    engine.drop_collection(&keys[2]).await.unwrap();
    assert!(all(&engine, &keys[2]).await.is_empty());
    engine.insert(&keys[2], quads([7])).await.unwrap();
    assert_eq!(all(&engine, &keys[2]).await, expected([7]));
    engine.drop_workspace("a").await.unwrap();
    drop(engine);
    let engine = open(&dir);
    for (n, key) in keys.iter().enumerate() {
        let want = if n == 1 {
            expected([1])
        } else {
            BTreeSet::new()
        };
        assert_eq!(all(&engine, key).await, want);
    }
}

#[tokio::test]
async fn a_full_disk_changes_nothing_and_says_so() {
    let dir = tempdir().unwrap();
    let engine = open(&dir);
    engine.insert(&key(), quads(0..10)).await.unwrap();
    let pages = |count: i64| {
        let limit = move |tx: &tg_storage::rusqlite::Transaction<'_>| {
            Ok(tx.pragma_update(None, "max_page_count", count)?)
        };
        engine.shared.journal.write(limit)
    };
    pages(1).await.unwrap();
    let noise = (0..5_000).map(|n| {
        let o = Term::literal(BlobNoise(n).to_string());
        Triple::new(Term::iri("urn:s"), Term::iri("urn:p"), o)
    });
    let noise: Vec<Quad> = noise.map(|t| convert::quad("", &t).unwrap()).collect();
    let full = engine.insert(&key(), noise.clone()).await.unwrap_err();
    assert_eq!(full, GraphError::Journal(StorageError::Full));
    assert_eq!(full.to_wire("x").code(), tg_schemas::ErrorCode::Storage);
    assert_eq!(all(&engine, &key()).await, expected(0..10));
    pages(1 << 20).await.unwrap();
    engine.insert(&key(), noise).await.unwrap();
    assert_eq!(all(&engine, &key()).await.len(), 5_010);
}

/// Text that does not compress.
struct BlobNoise(u64);

impl std::fmt::Display for BlobNoise {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", tg_storage::blob::BlobId::of(&self.0.to_be_bytes()))
    }
}

#[tokio::test]
async fn a_second_owner_is_refused() {
    let dir = tempdir().unwrap();
    let _engine = open(&dir);
    let path = dir.path().join("graph.db");
    let second = EmbeddedGraph::open(&path, Durability::Process, Limits::default());
    assert_eq!(second.err(), Some(GraphError::Journal(StorageError::InUse)));
}

#[tokio::test]
async fn an_answer_in_one_piece_is_whole_or_refused() {
    let limits = Limits {
        single_answer: 50,
        ..Limits::default()
    };
    let engine = EmbeddedGraph::in_memory(limits).unwrap();
    engine.insert(&key(), quads(0..100)).await.unwrap();
    let key = key();
    let find = |limit| engine.find(&key, Pattern::default(), limit);
    assert_eq!(find(Some(50)).await.unwrap().len(), 50);
    assert_eq!(find(None).await, Err(GraphError::TooMany(50)));
    assert_eq!(find(Some(70)).await, Err(GraphError::TooMany(50)));
    let mut scan = engine
        .scan_for(&key, None, Pattern::default(), None)
        .await
        .unwrap();
    let mut sizes = Vec::new();
    loop {
        let chunk = scan.next_chunk(40).await.unwrap();
        sizes.push(chunk.len());
        if chunk.len() < 40 {
            break;
        }
    }
    assert_eq!(sizes, [40, 40, 20]);
}

/// However few they are: an answer is bounded by what it holds.
#[tokio::test]
async fn long_triples_come_in_small_chunks() {
    const LONG: usize = 400_000;
    let limits = Limits {
        single_answer_bytes: 10 * LONG,
        ..Limits::default()
    };
    let engine = EmbeddedGraph::in_memory(limits).unwrap();
    let key = key();
    let long = |n: usize| {
        let text = Term::literal("x".repeat(LONG));
        let triple = Triple::new(Term::iri(format!("urn:s{n}")), Term::iri("urn:p"), text);
        convert::quad("", &triple).unwrap()
    };
    let quads: Vec<_> = (0..20).map(long).collect();
    engine.insert(&key, quads).await.unwrap();
    let find = |limit| engine.find(&key, Pattern::default(), limit);
    assert_eq!(find(Some(9)).await.unwrap().len(), 9);
    assert!(matches!(find(None).await, Err(GraphError::TooMuch(_))));
    let mut scan = engine
        .scan_for(&key, None, Pattern::default(), None)
        .await
        .unwrap();
    let mut sizes = Vec::new();
    loop {
        let chunk = scan.next_chunk(1_000).await.unwrap();
        if chunk.is_empty() {
            break;
        }
        sizes.push(chunk.len());
    }
    assert_eq!(sizes, [3, 3, 3, 3, 3, 3, 2]);
}

#[tokio::test]
async fn a_scan_sees_one_state() {
    let engine = EmbeddedGraph::in_memory(Limits::default()).unwrap();
    let key = key();
    engine.insert(&key, quads(0..100)).await.unwrap();
    let mut scan = engine
        .scan_for(&key, None, Pattern::default(), None)
        .await
        .unwrap();
    let mut seen: BTreeSet<Triple> = scan.next_chunk(10).await.unwrap().into_iter().collect();
    engine.delete(&key, quads(0..100)).await.unwrap();
    engine.insert(&key, quads(200..300)).await.unwrap();
    seen.extend(scan.next_chunk(1_000).await.unwrap());
    assert_eq!(seen, expected(0..100));
    assert_eq!(all(&engine, &key).await, expected(200..300));
}

/// Few terms, so that patterns hit often.
fn any_quad() -> impl Strategy<Value = Triple> {
    let node = (0..4_u8).prop_map(|n| match n {
        0 => Term::Blank("b0".into()),
        n => Term::iri(format!("urn:n{n}")),
    });
    let predicate = (0..3_u8).prop_map(|n| Term::iri(format!("urn:p{n}")));
    let plain = prop_oneof![
        node.clone(),
        (0..3_u8).prop_map(|n| Term::literal(n.to_string())),
        Just(Term::Literal {
            value: "1".into(),
            datatype: String::new(),
            language: "en".into(),
        }),
    ];
    let quoted = (node.clone(), predicate.clone(), plain.clone())
        .prop_map(|(s, p, o)| Term::Quoted(Box::new(Triple::new(s, p, o))));
    let object = prop_oneof![4 => plain, 1 => quoted];
    let graph = prop::option::of((0..2_u8).prop_map(|n| format!("urn:g{n}")));
    (node, predicate, object, graph).prop_map(|(s, p, o, g)| Triple {
        g,
        ..Triple::new(s, p, o)
    })
}

#[derive(Debug, Clone)]
struct Asks {
    of: Triple,
    open: [bool; 4],
    graph: u8,
}

fn any_ask() -> impl Strategy<Value = Asks> {
    (any_quad(), any::<[bool; 4]>(), 0..4_u8).prop_map(|(of, open, graph)| Asks { of, open, graph })
}

fn blocking() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn patterns_agree_with_their_definition(
        inserted in prop::collection::vec(any_quad(), 0..60),
        deleted in prop::collection::vec(any_quad(), 0..30),
        asks in prop::collection::vec(any_ask(), 1..12),
    ) {
        blocking().block_on(async {
            let engine = EmbeddedGraph::in_memory(Limits::default()).unwrap();
            let to_quads = |triples: &[Triple]| -> Vec<Quad> {
                triples.iter().map(|triple| convert::quad("", triple).unwrap()).collect()
            };
            engine.insert(&key(), to_quads(&inserted)).await.unwrap();
            engine.delete(&key(), to_quads(&deleted)).await.unwrap();
            let gone = to_quads(&deleted);
            let left: Vec<Quad> =
                to_quads(&inserted).into_iter().filter(|quad| !gone.contains(quad)).collect();
            for ask in &asks {
                let part = |open: bool, term: &Option<Term>| if open { None } else { term.clone() };
                let (s, p, o) = (
                    part(ask.open[0], &ask.of.s),
                    part(ask.open[1], &ask.of.p),
                    part(ask.open[2], &ask.of.o),
                );
                let graph = match ask.graph {
                    0 => None,
                    1 => Some("*"),
                    2 => Some(""),
                    _ => ask.of.g.as_deref(),
                };
                let read = Pattern::read(s.as_ref(), p.as_ref(), o.as_ref(), graph).unwrap();
                let Asked::Pattern(pattern) = read else { panic!("every such pattern can match") };
                let want: BTreeSet<Triple> = left
                    .iter()
                    .filter(|quad| pattern.matches(quad))
                    .cloned()
                    .map(convert::from_quad)
                    .collect();
                let found = engine.find(&key(), pattern.clone(), None).await.unwrap();
                let found: BTreeSet<Triple> = found.into_iter().collect();
                prop_assert_eq!(&found, &want);
                let limited = engine.find(&key(), pattern, Some(3)).await.unwrap();
                prop_assert_eq!(limited.len(), want.len().min(3));
            }
            Ok(())
        })?;
    }

    #[test]
    fn any_history_is_the_same_after_reopening(
        history in prop::collection::vec(
            (prop::collection::vec(any_quad(), 0..8), prop::collection::vec(any_quad(), 0..8)),
            1..12,
        ),
        reopen_at in 0..12_usize,
    ) {
        blocking().block_on(async {
            let dir = tempdir().unwrap();
            let mut engine = open(&dir);
            let mut model: BTreeSet<Triple> = BTreeSet::new();
            for (step, (insert, delete)) in history.iter().enumerate() {
                if step == reopen_at {
                    drop(engine);
                    engine = open(&dir);
                }
                let to_quads = |triples: &[Triple]| {
                    triples.iter().map(|triple| convert::quad("", triple).unwrap()).collect()
                };
                let batch = Batch::new(to_quads(delete), to_quads(insert));
                engine.write(&key(), batch).await.unwrap();
                model.retain(|triple| !delete.contains(triple));
                model.extend(insert.iter().cloned());
            }
            prop_assert_eq!(&all(&engine, &key()).await, &model);
            drop(engine);
            let engine = open(&dir);
            prop_assert_eq!(&all(&engine, &key()).await, &model);
            Ok(())
        })?;
    }
}

/// Writes that are committed together share the room that there is for all of them.
#[tokio::test]
async fn what_is_written_at_once_takes_no_more_memory_than_there_is() {
    const EACH: usize = 100;
    let dir = tempdir().unwrap();
    let path = dir.path().join("graph.db");
    let held = crate::engine::quota::Usage {
        quads: 10 * EACH as u64,
        ..Default::default()
    };
    let limits = Limits {
        memory: held.memory(),
        ..Limits::default()
    };
    let engine = EmbeddedGraph::open(&path, Durability::Process, limits).unwrap();
    engine.insert(&key(), quads(0..1)).await.unwrap();
    assert_eq!(all(&engine, &key()).await.len(), 1, "it is loaded");
    let writes = (1..=40).map(|n| {
        let engine = &engine;
        async move { engine.insert(&key(), quads(n * EACH..(n + 1) * EACH)).await }
    });
    let outcomes = futures::future::join_all(writes).await;
    let refused = outcomes
        .iter()
        .filter(|outcome| matches!(outcome, Err(GraphError::GraphMemory { .. })));
    let (refused, done) = (
        refused.count(),
        outcomes.iter().filter(|outcome| outcome.is_ok()).count(),
    );
    assert_eq!(refused + done, 40);
    assert!((1..10).contains(&done), "{done} were written");
}

/// What one workspace may not have another finds; and each new graph counts from its first triple on.
#[tokio::test]
async fn one_workspace_leaves_room_to_others() {
    let held = |quads| {
        let usage = crate::engine::quota::Usage {
            quads,
            ..Default::default()
        };
        usage.memory()
    };
    let limits = Limits {
        memory: held(10_000),
        memory_of_one: held(2_000),
        ..Limits::default()
    };
    let engine = EmbeddedGraph::in_memory(limits).unwrap();
    let mut written = 0;
    let refused = loop {
        let own = CollectionKey::new("w", &format!("c{written}"));
        match engine.insert(&own, quads(0..100)).await {
            Ok(_) => written += 1,
            Err(refused) => break refused,
        }
        assert!(written < 100, "each in a graph of its own");
    };
    assert!(
        refused
            .to_string()
            .contains("for the graphs of one workspace"),
        "{refused}"
    );
    assert!((5..20).contains(&written), "{written}");
    let other = CollectionKey::new("other", "c");
    engine.insert(&other, quads(0..100)).await.unwrap();
}

/// After a restart nothing is in memory; all of it must find room there all the same.
#[tokio::test]
async fn what_is_kept_is_loaded_whatever_is_written_after_a_restart() {
    let held = crate::engine::quota::Usage {
        quads: 2_000,
        ..Default::default()
    };
    let limits = Limits {
        memory: held.memory() * 4,
        memory_of_one: held.memory(),
        ..Limits::default()
    };
    let dir = tempdir().unwrap();
    let of = |number: usize| CollectionKey::new("w", &format!("c{number}"));
    let mut written = 0;
    for _ in 0..5 {
        let engine = open_within(&dir, &limits);
        while engine.insert(&of(written), quads(0..100)).await.is_ok() {
            written += 1;
            assert!(written < 100, "each in a graph of its own");
        }
    }
    assert!((5..20).contains(&written), "{written}");
    let engine = open_within(&dir, &limits);
    for number in 0..written {
        assert_eq!(all(&engine, &of(number)).await.len(), 100);
    }
}
