//! What only this adapter promises: its file is found again, space is given back, memory is bounded.

use super::*;
use crate::engine::kind::Place;
use crate::engine::point::{Facets, Point, Subject};
use crate::store::reembed::ReembedStore;
use tg_collections::{CollectionStore, WriteKind};
use tg_schemas::msg::Retract;

fn key(collection: &str) -> CollectionKey {
    CollectionKey::new("w", collection)
}

fn chunk(id: &str, vector: &[f32]) -> Point {
    let subject = Subject::Chunk(id.to_owned());
    let facets = Facets::default();
    Point::new("chunks[0]", subject, id.to_owned(), facets, vector.to_vec()).unwrap()
}

async fn keep(store: &SqlitePoints, key: &CollectionKey, points: Vec<Point>) {
    let write = Write {
        key: key.clone(),
        kind: Kind::Chunk,
        model: "m".to_owned(),
        write_kind: WriteKind::Direct,
        points,
    };
    store.put(write).await.unwrap();
}

async fn chunks(store: &SqlitePoints, key: &CollectionKey, vector: &[f32]) -> Vec<String> {
    let search = Search {
        key: key.clone(),
        kind: Kind::Chunk,
        vector: vector.to_vec(),
        model: String::new(),
        limit: 10,
        conditions: Vec::new(),
    };
    let hits = store.search(search).await.unwrap();
    hits.into_iter()
        .map(|hit| match hit.subject {
            Subject::Chunk(id) => id,
            other => panic!("{other:?}"),
        })
        .collect()
}

#[tokio::test]
async fn what_was_kept_is_found_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("v.sqlite");
    let open = || SqlitePoints::open(&path, Durability::Process, Limits::default()).unwrap();
    let (store, c) = (open(), key("c"));
    let points = vec![chunk("a", &[1.0, 0.1]), chunk("b", &[0.0, 2.0])];
    keep(&store, &c, points).await;
    keep(&store, &c, vec![chunk("b", &[3.0, 0.0])]).await;
    let what = Retract {
        chunks: vec!["a".into()],
        ..Retract::default()
    };
    let gone = store.retract(&c, WriteKind::Direct, Kind::Chunk, what);
    assert_eq!(gone.await.unwrap(), 1);
    drop(store);
    let store = open();
    assert_eq!(chunks(&store, &c, &[1.0, 0.0]).await, ["b"]);
    assert_eq!(store.count(&c, Kind::Chunk).await.unwrap(), 1);
}

#[tokio::test]
async fn a_change_to_another_model_goes_on_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("v.sqlite");
    let open = || SqlitePoints::open(&path, Durability::Process, Limits::default()).unwrap();
    let (mut store, c) = (open(), key("c"));
    let all = (0..600).map(|n| chunk(&format!("{n}"), &[1.0, n as f32]));
    keep(
        &store,
        &c,
        all.map(|of| of.of_text("text".to_owned())).collect(),
    )
    .await;
    let begin = Begin {
        key: c.clone(),
        model: "n".to_owned(),
        topic: "t".to_owned(),
        leave_out: false,
    };
    store.begin(begin).await.unwrap();
    let mut steps = 0;
    loop {
        // Killed after each step, it knows how far it was.
        drop(store);
        store = open();
        let Some(task) = store.tasks(0, 1).await.unwrap().pop() else {
            break;
        };
        let told = store.progress(&c).await.unwrap().unwrap();
        assert_eq!(told.done, (steps * 256).min(600));
        match store.batch(&task).await.unwrap() {
            Some(batch) => {
                let vectors = vec![vec![1.0, 2.0, 3.0]; batch.points.len()];
                let made = Made {
                    task,
                    batch,
                    vectors,
                    refused: Vec::new(),
                };
                assert!(store.stage(made).await.unwrap());
            }
            None => assert!(store.switch(&task).await.unwrap()),
        }
        steps += 1;
    }
    assert_eq!(steps, 4);
    assert_eq!(store.count(&c, Kind::Chunk).await.unwrap(), 600);
    assert_eq!(store.serving(&c).await.unwrap(), ["n"]);
}

#[tokio::test]
async fn the_space_of_what_was_dropped_is_given_back() {
    let store = SqlitePoints::in_memory(Limits::default()).unwrap();
    for n in 0..2 {
        let points = (0..3_000)
            .map(|at| chunk(&format!("{at}"), &[1.0, at as f32]))
            .collect();
        keep(&store, &key("c").in_generation(n), points).await;
    }
    assert_eq!(store.drop_collection(&key("c")).await.unwrap(), 3_000);
    let left = async {
        loop {
            let sql = "SELECT count(*) FROM point";
            let left = store
                .db
                .read(move |conn| Ok(conn.query_row(sql, [], |row| row.get::<_, i64>(0))?));
            if left.await.unwrap() == 3_000 {
                return;
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), left)
        .await
        .expect("space is given back");
}

#[tokio::test]
async fn memory_is_bounded_and_comes_back() {
    let store = SqlitePoints::in_memory(Limits {
        memory: 600 * 1_024,
        threads: 2,
        ..Limits::default()
    })
    .unwrap();
    let keys: Vec<_> = (0..5).map(|n| key(&n.to_string())).collect();
    for key in &keys {
        let points = (0..200)
            .map(|n| chunk(&n.to_string(), &[n as f32 + 1.0; 256]))
            .collect();
        keep(&store, key, points).await;
    }
    for _ in 0..2 {
        for key in &keys {
            assert_eq!(chunks(&store, key, &[1.0; 256]).await.len(), 10);
            assert!(store.memory() <= 600 * 1_024, "{}", store.memory());
        }
    }
    let few = SqlitePoints::in_memory(Limits {
        memory: 1,
        threads: 1,
        ..Limits::default()
    })
    .unwrap();
    let write = Write {
        key: keys[0].clone(),
        kind: Kind::Chunk,
        model: "m".to_owned(),
        write_kind: WriteKind::Direct,
        points: vec![chunk("a", &[1.0])],
    };
    let refused = few.put(write).await.unwrap_err();
    assert!(matches!(refused, VectorError::Memory { .. }), "{refused}");
    assert!(chunks(&few, &keys[0], &[1.0]).await.is_empty());
}

#[tokio::test]
async fn what_is_larger_than_memory_is_refused_and_what_is_there_can_be_changed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("v.sqlite");
    let open = |memory| {
        let limits = Limits {
            memory,
            ..Limits::default()
        };
        SqlitePoints::open(&path, Durability::Process, limits).unwrap()
    };
    let (store, c) = (open(10_000), key("c"));
    let points = |from: usize, to: usize| {
        let one = |n: usize| chunk(&n.to_string(), &[n as f32 + 1.0; 64]);
        (from..to).map(one).collect::<Vec<_>>()
    };
    let write = |points| Write {
        key: c.clone(),
        kind: Kind::Chunk,
        model: "m".to_owned(),
        write_kind: WriteKind::Direct,
        points,
    };
    store.put(write(points(0, 39))).await.unwrap();
    let refused = store.put(write(points(39, 41))).await.unwrap_err();
    assert!(matches!(refused, VectorError::Memory { .. }), "{refused}");
    store.put(write(points(0, 39))).await.unwrap();
    assert_eq!(chunks(&store, &c, &[1.0; 64]).await.len(), 10);
    drop(store);
    // With less memory than before.
    let store = open(9_000);
    let search = Search {
        key: c.clone(),
        kind: Kind::Chunk,
        vector: vec![1.0; 64],
        model: String::new(),
        limit: 10,
        conditions: Vec::new(),
    };
    let refused = store.search(search).await.unwrap_err();
    assert!(matches!(refused, VectorError::Memory { .. }), "{refused}");
    assert_eq!(store.count(&c, Kind::Chunk).await.unwrap(), 39);
}

#[tokio::test]
async fn after_searches_and_writes_at_once_the_file_agrees_with_memory() {
    let store = Arc::new(SqlitePoints::in_memory(Limits::default()).unwrap());
    let c = key("c");
    let mut tasks = tokio::task::JoinSet::new();
    for part in 0..20 {
        let (store, c) = (store.clone(), c.clone());
        tasks.spawn(async move {
            for n in 0..20 {
                let id = format!("{part}-{n}");
                keep(&store, &c, vec![chunk(&id, &[1.0, part as f32 + n as f32])]).await;
                chunks(&store, &c, &[1.0, 0.0]).await;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert_eq!(store.count(&c, Kind::Chunk).await.unwrap(), 400);
    let space = {
        let c = c.clone();
        store
            .db
            .read(move |conn| schema::space(conn, &c, Place::serving(Kind::Chunk)))
            .await
            .unwrap()
            .unwrap()
    };
    let again = store
        .db
        .read(move |conn| read::load(conn, space.id, 2))
        .await
        .unwrap();
    assert_eq!(again.len(), 400, "the file agrees with memory");
}
