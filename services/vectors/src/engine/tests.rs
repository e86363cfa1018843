//! Collections of vectors: what is found, kept apart, dropped and brought back.

use serde_json::json;
use tg_schemas::Term;

use super::*;
use crate::point::Point;
use crate::store;
use tg_collections::WriteKind;

fn key(workspace: &str, collection: &str) -> CollectionKey {
    CollectionKey::new(workspace, collection)
}

fn engine() -> Engine {
    Engine::in_memory(Limits::default()).unwrap()
}

fn chunk(id: &str, vector: &[f32]) -> Point {
    let subject = Subject::Chunk(id.to_owned());
    Point::new(
        "chunks[0]",
        subject,
        id.to_owned(),
        Facets::default(),
        vector.to_vec(),
    )
    .unwrap()
}

fn entity(term: Term, from: &str, vector: &[f32]) -> Point {
    let subject = Subject::Entity(term);
    Point::new(
        "entities[0]",
        subject,
        from.to_owned(),
        Facets::default(),
        vector.to_vec(),
    )
    .unwrap()
}

impl Engine {
    async fn keep(
        &self,
        key: &CollectionKey,
        kind: Kind,
        model: &str,
        points: Vec<Point>,
    ) -> Result<usize, VectorError> {
        self.put(write(key, kind, model, points)).await
    }
}

fn write(key: &CollectionKey, kind: Kind, model: &str, points: Vec<Point>) -> Write {
    Write {
        key: key.clone(),
        kind,
        model: model.to_owned(),
        write_kind: WriteKind::Direct,
        points,
    }
}

fn ask(key: &CollectionKey, kind: Kind, vector: &[f32], limit: usize) -> Search {
    Search {
        key: key.clone(),
        kind,
        vector: vector.to_vec(),
        model: String::new(),
        limit,
        conditions: Vec::new(),
    }
}

async fn chunks(engine: &Engine, key: &CollectionKey, vector: &[f32]) -> Vec<String> {
    let hits = engine
        .search(ask(key, Kind::Chunk, vector, 10))
        .await
        .unwrap();
    hits.into_iter()
        .map(|hit| match hit.subject {
            Subject::Chunk(id) => id,
            other => panic!("{other:?}"),
        })
        .collect()
}

#[tokio::test]
async fn what_is_kept_is_found_also_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("v.sqlite");
    let open = || Engine::open(&path, Durability::Process, Limits::default()).unwrap();
    let (engine, c) = (open(), key("w", "c"));
    assert!(
        chunks(&engine, &c, &[1.0, 0.0]).await.is_empty(),
        "nothing yet"
    );
    let points = vec![chunk("a", &[1.0, 0.1]), chunk("b", &[0.0, 2.0])];
    assert_eq!(
        engine
            .keep(&c, Kind::Chunk, "m", points.clone())
            .await
            .unwrap(),
        2
    );
    assert_eq!(chunks(&engine, &c, &[1.0, 0.0]).await, ["a", "b"]);
    // Loaded by now: changes must reach memory.
    assert_eq!(
        engine.keep(&c, Kind::Chunk, "m", points).await.unwrap(),
        0,
        "redelivered"
    );
    let moved = vec![chunk("b", &[3.0, 0.0]), chunk("c", &[-1.0, 0.0])];
    assert_eq!(engine.keep(&c, Kind::Chunk, "m", moved).await.unwrap(), 2);
    assert_eq!(chunks(&engine, &c, &[1.0, 0.0]).await, ["b", "a", "c"]);
    assert_eq!(
        engine
            .retract(&c, Kind::Chunk, vec!["a".into()])
            .await
            .unwrap(),
        1
    );
    assert_eq!(chunks(&engine, &c, &[1.0, 0.0]).await, ["b", "c"]);
    drop(engine);
    let engine = open();
    assert_eq!(chunks(&engine, &c, &[1.0, 0.0]).await, ["b", "c"]);
    assert_eq!(engine.count(&c, Kind::Chunk).await.unwrap(), 2);
}

#[tokio::test]
async fn entities_are_distinct_and_keep_their_kind_of_term() {
    let (engine, c) = (engine(), key("w", "c"));
    let urn = Term::iri("urn:x:1");
    let text = Term::literal("urn:x:1");
    let mut points: Vec<Point> = (0..50)
        .map(|n| entity(urn.clone(), &format!("chunk{n}"), &[1.0, 0.001 * n as f32]))
        .collect();
    points.push(entity(text.clone(), "chunk0", &[0.5, 0.5]));
    points.push(entity(Term::Blank("b".into()), "chunk0", &[0.0, 1.0]));
    // Two contexts of one entity in one chunk are two vectors.
    points.push(entity(text.clone(), "chunk0", &[0.1, 0.9]));
    engine
        .keep(&c, Kind::Entity, "m", points.clone())
        .await
        .unwrap();
    engine.keep(&c, Kind::Entity, "m", points).await.unwrap();
    assert_eq!(engine.count(&c, Kind::Entity).await.unwrap(), 53);
    let hits = engine
        .search(ask(&c, Kind::Entity, &[1.0, 0.0], 3))
        .await
        .unwrap();
    let found: Vec<_> = hits.iter().map(|hit| hit.subject.clone()).collect();
    let wanted = [urn, text, Term::Blank("b".into())].map(Subject::Entity);
    assert_eq!(found, wanted);
    assert!((hits[0].score - 1.0).abs() < 1e-6);
    // Of a chunk, exactly what came from it goes.
    engine
        .retract(&c, Kind::Entity, vec!["chunk0".into()])
        .await
        .unwrap();
    let hits = engine
        .search(ask(&c, Kind::Entity, &[1.0, 0.0], 3))
        .await
        .unwrap();
    assert_eq!(hits.len(), 1);
    assert_eq!(engine.count(&c, Kind::Entity).await.unwrap(), 49);
}

#[tokio::test]
async fn filters_are_exact() {
    let (engine, c) = (engine(), key("w", "c"));
    let facets = |types: &[&str], attributes: serde_json::Value| Facets {
        types: types.iter().map(|of| (*of).to_owned()).collect(),
        ..Facets::with(attributes.as_object().cloned().unwrap_or_default())
    };
    let point = |id: &str, near: f32, facets| Point {
        facets,
        ..entity(Term::iri(id), "k", &[1.0, near])
    };
    let points = vec![
        point("urn:1", 0.0, Facets::default()),
        point(
            "urn:2",
            0.1,
            facets(&["urn:T"], json!({"tag": ["a", "b"], "year": 2020})),
        ),
        point(
            "urn:3",
            0.2,
            facets(&["urn:T", "urn:U"], json!({"tag": ["a"]})),
        ),
    ];
    engine.keep(&c, Kind::Entity, "m", points).await.unwrap();
    let find = async |conditions: Vec<Condition>| {
        let search = Search {
            conditions,
            ..ask(&c, Kind::Entity, &[1.0, 0.0], 1)
        };
        let hits = engine.search(search).await.unwrap();
        hits.into_iter().next().map(|hit| match hit.subject {
            Subject::Entity(Term::Iri(iri)) => iri,
            other => panic!("{other:?}"),
        })
    };
    let attributes =
        |value: serde_json::Value| Condition::of_attributes(value.as_object().unwrap()).unwrap();
    assert_eq!(find(vec![]).await.unwrap(), "urn:1");
    assert_eq!(
        find(vec![Condition::of_type("urn:T")]).await.unwrap(),
        "urn:2"
    );
    assert_eq!(
        find(vec![Condition::of_type("urn:U")]).await.unwrap(),
        "urn:3"
    );
    assert_eq!(
        find(attributes(json!({"tag": ["a", "b"]}))).await.unwrap(),
        "urn:2"
    );
    assert_eq!(
        find(attributes(json!({"tag": "a", "year": 2020.0})))
            .await
            .unwrap(),
        "urn:2"
    );
    assert_eq!(find(attributes(json!({"tag": "c"}))).await, None);
}

#[tokio::test]
async fn models_do_not_mix() {
    let (engine, c) = (engine(), key("w", "c"));
    engine
        .keep(&c, Kind::Chunk, "", vec![chunk("a", &[1.0, 0.0])])
        .await
        .unwrap();
    engine
        .keep(&c, Kind::Chunk, "m", vec![chunk("b", &[1.0, 0.0])])
        .await
        .unwrap();
    let other = engine
        .keep(&c, Kind::Chunk, "n", vec![chunk("c", &[1.0, 0.0])])
        .await;
    assert!(
        matches!(&other, Err(VectorError::OtherModel { held, .. }) if held == "m"),
        "{other:?}"
    );
    let longer = engine
        .keep(&c, Kind::Chunk, "m", vec![chunk("c", &[1.0, 0.0, 0.0])])
        .await;
    assert!(matches!(longer, Err(VectorError::OtherDimension { .. })));
    let mixed = vec![chunk("c", &[1.0, 0.0]), chunk("d", &[1.0])];
    assert!(engine.keep(&c, Kind::Chunk, "m", mixed).await.is_err());
    let search = Search {
        model: "n".into(),
        ..ask(&c, Kind::Chunk, &[1.0, 0.0], 5)
    };
    let error = tg_schemas::Error::from(engine.search(search).await.unwrap_err());
    assert_eq!(error.code(), tg_schemas::ErrorCode::Conflict);
    assert!(
        error
            .message
            .starts_with("model: this collection's chunk vectors were made by 'm'")
    );
    let short = engine.search(ask(&c, Kind::Chunk, &[1.0], 5)).await;
    assert!(matches!(
        short,
        Err(VectorError::OtherDimension { given: 1, .. })
    ));
    // Other kinds and collections are free to differ, and so is an emptied one.
    engine
        .keep(
            &c,
            Kind::Entity,
            "n",
            vec![entity(Term::iri("urn:e"), "a", &[1.0; 3])],
        )
        .await
        .unwrap();
    engine
        .keep(&key("w", "d"), Kind::Chunk, "n", vec![chunk("a", &[1.0])])
        .await
        .unwrap();
    engine
        .retract(&c, Kind::Chunk, vec!["a".into(), "b".into()])
        .await
        .unwrap();
    engine
        .keep(&c, Kind::Chunk, "n", vec![chunk("z", &[0.0, 1.0, 0.0])])
        .await
        .unwrap();
    assert_eq!(chunks(&engine, &c, &[0.0, 1.0, 0.0]).await, ["z"]);
}

#[tokio::test]
async fn equal_and_hostile_names_never_meet() {
    let engine = engine();
    let names = [
        "a",
        "a_b",
        "a:b",
        "a_b_c",
        "ü",
        "'; DROP TABLE point; --",
        &"n".repeat(300),
    ];
    for workspace in names {
        for collection in names {
            let id = format!("{workspace}|{collection}");
            engine
                .keep(
                    &key(workspace, collection),
                    Kind::Chunk,
                    "m",
                    vec![chunk(&id, &[1.0, 0.0])],
                )
                .await
                .unwrap();
        }
    }
    for workspace in names {
        for collection in names {
            let found = chunks(&engine, &key(workspace, collection), &[1.0, 0.0]).await;
            assert_eq!(found, [format!("{workspace}|{collection}")]);
        }
    }
    assert_eq!(engine.drop_collection(&key("a", "a")).await.unwrap(), 1);
    assert!(
        chunks(&engine, &key("a", "a"), &[1.0, 0.0])
            .await
            .is_empty()
    );
    assert_eq!(
        chunks(&engine, &key("a", "a_b"), &[1.0, 0.0]).await.len(),
        1
    );
    assert_eq!(engine.drop_workspace("a").await.unwrap(), names.len() - 1);
    assert_eq!(
        chunks(&engine, &key("a_b", "a"), &[1.0, 0.0]).await.len(),
        1
    );
}

#[tokio::test]
async fn a_dropped_life_stays_dead_and_is_reclaimed() {
    let engine = engine();
    let generation = |n| CollectionKey::new("w", "c").in_generation(n);
    for n in 0..3 {
        let points = (0..3_000)
            .map(|at| chunk(&format!("{at}"), &[1.0, at as f32]))
            .collect();
        engine
            .keep(&generation(n), Kind::Chunk, "m", points)
            .await
            .unwrap();
    }
    assert_eq!(chunks(&engine, &generation(1), &[1.0, 0.0]).await.len(), 10);
    assert_eq!(engine.drop_collection(&generation(1)).await.unwrap(), 6_000);
    assert_eq!(
        engine.drop_collection(&generation(1)).await.unwrap(),
        0,
        "again"
    );
    assert!(
        chunks(&engine, &generation(1), &[1.0, 0.0])
            .await
            .is_empty()
    );
    assert_eq!(chunks(&engine, &generation(2), &[1.0, 0.0]).await.len(), 10);
    let left = async {
        loop {
            let left: i64 = engine
                .db
                .read(
                    |conn| Ok(conn.query_row("SELECT count(*) FROM point", [], |row| row.get(0))?),
                )
                .await
                .unwrap();
            if left == 3_000 {
                return;
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), left)
        .await
        .expect("space is reclaimed");
    let late = Write {
        write_kind: WriteKind::Tracked,
        ..write(
            &generation(1),
            Kind::Chunk,
            "m",
            vec![chunk("late", &[1.0, 0.0])],
        )
    };
    assert_eq!(engine.put(late).await.unwrap(), 0, "its run came too late");
    assert!(
        chunks(&engine, &generation(1), &[1.0, 0.0])
            .await
            .is_empty()
    );
    engine
        .keep(
            &generation(1),
            Kind::Chunk,
            "other",
            vec![chunk("new", &[1.0])],
        )
        .await
        .unwrap();
    assert_eq!(chunks(&engine, &generation(1), &[1.0]).await, ["new"]);
}

#[tokio::test]
async fn memory_is_bounded_and_comes_back() {
    let engine = Engine::in_memory(Limits {
        memory: 600 * 1_024,
        threads: 2,
    })
    .unwrap();
    let keys: Vec<_> = (0..5).map(|n| key("w", &n.to_string())).collect();
    for key in &keys {
        let points = (0..200)
            .map(|n| chunk(&n.to_string(), &[n as f32 + 1.0; 256]))
            .collect();
        engine.keep(key, Kind::Chunk, "m", points).await.unwrap();
    }
    for _ in 0..2 {
        for key in &keys {
            assert_eq!(chunks(&engine, key, &[1.0; 256]).await.len(), 10);
            assert!(engine.memory() <= 600 * 1_024, "{}", engine.memory());
        }
    }
    let few = Engine::in_memory(Limits {
        memory: 1,
        threads: 1,
    })
    .unwrap();
    few.keep(&keys[0], Kind::Chunk, "m", vec![chunk("a", &[1.0])])
        .await
        .unwrap();
    assert_eq!(
        chunks(&few, &keys[0], &[1.0]).await,
        ["a"],
        "larger than the bound: alone"
    );
}

#[tokio::test]
async fn searches_and_writes_at_once_lose_nothing() {
    let engine = std::sync::Arc::new(engine());
    let c = key("w", "c");
    let mut tasks = tokio::task::JoinSet::new();
    for part in 0..20 {
        let (engine, c) = (engine.clone(), c.clone());
        tasks.spawn(async move {
            for n in 0..20 {
                let id = format!("{part}-{n}");
                engine
                    .keep(
                        &c,
                        Kind::Chunk,
                        "m",
                        vec![chunk(&id, &[1.0, part as f32 + n as f32])],
                    )
                    .await
                    .unwrap();
                chunks(&engine, &c, &[1.0, 0.0]).await;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let all = engine
        .search(ask(&c, Kind::Chunk, &[1.0, 0.0], 1_000))
        .await
        .unwrap();
    assert_eq!(all.len(), 400);
    let space = {
        let c = c.clone();
        engine
            .db
            .read(move |conn| store::space(conn, &c, Kind::Chunk))
            .await
            .unwrap()
            .unwrap()
    };
    let again = engine
        .db
        .read(move |conn| read::load(conn, space.id, 2))
        .await
        .unwrap();
    assert_eq!(again.len(), 400, "the file agrees with memory");
}
