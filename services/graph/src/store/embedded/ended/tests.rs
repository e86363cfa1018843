//! Generations of collections: their end, and the space they held.

use std::time::Instant;

use oxigraph::model::Quad;
use tempfile::{TempDir, tempdir};
use tg_schemas::{Term, Triple};
use tg_storage::{Database, Durability};

use super::*;
use crate::store::embedded::tests::open_again;
use crate::{Batch, Limits, Pattern, convert};

fn quads(numbers: std::ops::Range<usize>) -> Vec<Quad> {
    let triple = |n: usize| {
        let (s, p) = (Term::iri(format!("urn:s{}", n / 10)), Term::iri("urn:p"));
        Triple::new(s, p, Term::literal(format!("o{n}")))
    };
    numbers
        .map(|n| convert::quad("", &triple(n)).unwrap())
        .collect()
}

async fn count(engine: &EmbeddedGraph, key: &CollectionKey) -> usize {
    engine
        .find(key, Pattern::default(), None)
        .await
        .unwrap()
        .len()
}

fn open(dir: &TempDir) -> EmbeddedGraph {
    open_again(&dir.path().join("graph.db"), &Limits::default())
}

#[tokio::test]
async fn lives_of_a_name_are_apart_and_end_one_after_the_other() {
    let dir = tempdir().unwrap();
    let engine = open(&dir);
    let generations = [0, 1, 2].map(|n| CollectionKey::new("w", "c").in_generation(n));
    let hostile = [("w", "c "), ("w", "C"), ("w:c", "0"), ("w", "c_0")];
    let others = hostile.map(|(workspace, collection)| CollectionKey::new(workspace, collection));
    for (n, key) in generations.iter().chain(&others).enumerate() {
        engine.insert(key, quads(0..n + 1)).await.unwrap();
    }
    assert_eq!(engine.drop_collection(&generations[1]).await.unwrap(), 3);
    assert_eq!(
        engine.drop_collection(&generations[1]).await.unwrap(),
        0,
        "again changes nothing"
    );
    let state = async |engine: &EmbeddedGraph| {
        let mut counts = Vec::new();
        for key in generations.iter().chain(&others) {
            counts.push(count(engine, key).await);
        }
        counts
    };
    assert_eq!(state(&engine).await, [0, 0, 3, 4, 5, 6, 7]);
    let late = engine.write_from(
        &generations[1],
        Batch::insert(quads(0..9)),
        WriteKind::Tracked,
    );
    assert!(!late.await.unwrap(), "a run of that generation is over");
    let now = engine.write_from(
        &generations[2],
        Batch::insert(quads(0..4)),
        WriteKind::Tracked,
    );
    assert!(now.await.unwrap());
    drop(engine);
    let engine = open(&dir);
    assert_eq!(state(&engine).await, [0, 0, 4, 4, 5, 6, 7]);
    let late = engine.write_from(
        &generations[0],
        Batch::insert(quads(0..9)),
        WriteKind::Tracked,
    );
    assert!(!late.await.unwrap(), "remembered");
    engine.insert(&generations[0], quads(0..1)).await.unwrap();
    assert_eq!(
        count(&engine, &generations[0]).await,
        1,
        "from outside it begins again"
    );
}

#[tokio::test]
async fn a_large_collection_ends_at_once_and_its_space_is_given_back() {
    let dir = tempdir().unwrap();
    let engine = open(&dir);
    let (gone, kept) = (
        CollectionKey::new("w", "gone"),
        CollectionKey::new("w", "kept"),
    );
    engine.insert(&kept, quads(0..100)).await.unwrap();
    for start in (0..60_000).step_by(1_000) {
        engine
            .insert(&gone, quads(start..start + 1_000))
            .await
            .unwrap();
    }
    let started = Instant::now();
    let named = engine.drop_collection(&gone).await.unwrap();
    println!("60000 quads dropped in {:?}", started.elapsed());
    assert_eq!(named, 60_000);
    let left = async || {
        let journal = &engine.shared.journal;
        let sql = "SELECT (SELECT count(*) FROM journal), (SELECT count(*) FROM dropped)";
        let rows =
            journal.read(|conn| Ok(conn.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?));
        rows.await.unwrap()
    };
    let given_back = async {
        loop {
            let left: (i64, i64) = left().await;
            if left == (1, 0) {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    let given_back = tokio::time::timeout(std::time::Duration::from_secs(60), given_back).await;
    given_back.expect("only the other collection's row is left");
    assert_eq!(count(&engine, &kept).await, 100);
}

#[tokio::test]
async fn journals_from_before_lives_are_kept() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("graph.db");
    let body =
        crate::store::embedded::batch::pack(&crate::store::embedded::batch::encode(&quads(0..5)))
            .unwrap();
    let old = Database::open(&path, &journal::MIGRATIONS[..1], Durability::Process).unwrap();
    old.write(move |tx| {
        tx.execute(
            "INSERT INTO dataset (id, workspace, collection) VALUES (7, 'w', 'c')",
            [],
        )?;
        tx.execute("INSERT INTO journal VALUES (7, 1, 0, 1, 5, ?1)", [body])?;
        Ok(())
    })
    .await
    .unwrap();
    drop(old);
    let engine = open(&dir);
    let key = CollectionKey::new("w", "c");
    engine.insert(&key, quads(5..8)).await.unwrap();
    assert_eq!(count(&engine, &key).await, 8);
    assert_eq!(engine.drop_collection(&key).await.unwrap(), 8);
    engine.insert(&key, quads(0..1)).await.unwrap();
    assert_eq!(count(&engine, &key).await, 1);
}
