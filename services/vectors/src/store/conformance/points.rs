//! What every adapter of [`PointStore`] does: what is found, kept apart, dropped. A new one is added by one line at the
//! end of the module above.

use serde_json::json;
use tg_collections::{CollectionKey, CollectionStore, WorkspaceStore, WriteKind};
use tg_schemas::Term;
use tg_schemas::msg::{Retract, Superseded};
use tg_storage::Durability;

use crate::engine::kind::Kind;
use crate::engine::point::{Condition, Facets, Point, Subject};
use crate::error::VectorError;
use crate::options::Limits;
use crate::store::points::{ONE_WORKSPACE, SqlitePoints};
use crate::store::{PointStore, Search, Write};

fn key(workspace: &str, collection: &str) -> CollectionKey {
    CollectionKey::new(workspace, collection)
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

/// What the suite needs of an adapter.
pub(in crate::store) trait Points:
    PointStore + CollectionStore<Part = Kind>
{
}

impl<S: PointStore + CollectionStore<Part = Kind>> Points for S {}

async fn keep(
    store: &impl Points,
    key: &CollectionKey,
    kind: Kind,
    model: &str,
    points: Vec<Point>,
) -> Result<usize, VectorError> {
    let put = store.put(write(key, kind, model, points)).await;
    put.map(|count| count.expect("in time"))
}

async fn retract(store: &impl Points, key: &CollectionKey, kind: Kind, chunks: &[&str]) -> u64 {
    let gone = store.retract(key, WriteKind::Tracked, kind, super::retraction(chunks));
    gone.await.unwrap()
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

async fn chunks(store: &impl Points, key: &CollectionKey, vector: &[f32]) -> Vec<String> {
    let hits = store
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

/// All points of a collection, each once and as it was written, a page at a time; a place that is in another space is told.
pub(super) async fn all_of_a_collection_leaves_in_pages(store: &impl Points) {
    let (c, other) = (key("w", "c"), key("w", "other"));
    let points: Vec<Point> = (0..5)
        .map(|n| chunk(&format!("k{n}"), &[n as f32, 1.0]).of_text(format!("text {n}")))
        .collect();
    keep(store, &c, Kind::Chunk, "m", points.clone())
        .await
        .unwrap();
    keep(store, &other, Kind::Chunk, "m", points[..1].to_vec())
        .await
        .unwrap();
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = store.page(&c, Kind::Chunk, after, 2).await.unwrap();
        assert!(page.points.len() <= 2 && page.model == "m");
        all.extend(page.points);
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(all, points);
    let first = store.page(&c, Kind::Chunk, None, 1).await.unwrap();
    let elsewhere = store.page(&other, Kind::Chunk, first.next, 1).await;
    assert_eq!(elsewhere, Err(VectorError::Replaced));
    let none = store.page(&key("w", "none"), Kind::Chunk, None, 2).await;
    assert_eq!(none, Ok(Default::default()));
}

pub(super) async fn what_was_made_anew_goes_and_nothing_else(store: &impl Points) {
    let c = key("w", "c");
    let of = |name: &str, made_by: &str, vector: &[f32]| {
        let point = entity(Term::iri(format!("urn:{name}")), "k", vector);
        point.made_by(made_by.to_owned())
    };
    let points = vec![
        of("old", "a@1", &[1.0, 0.0]),
        of("kept", "a@1", &[0.9, 0.1]),
        of("kept", "a@2", &[0.9, 0.1]),
        of("new", "a@2", &[0.8, 0.2]),
        of("others", "b@1", &[0.7, 0.3]),
        of("nobodys", "", &[0.6, 0.4]),
    ];
    keep(store, &c, Kind::Entity, "m", points).await.unwrap();
    keep(store, &c, Kind::Chunk, "m", vec![chunk("k", &[1.0, 0.0])])
        .await
        .unwrap();
    let supersede = async |kind, processor: &str, gone: &[&str]| {
        let one = Superseded {
            processor: processor.to_owned(),
            kept: vec!["2".to_owned()],
            gone: gone.iter().map(|one| (*one).to_owned()).collect(),
            chunks: vec!["k".to_owned(), "gone".to_owned()],
        };
        let what = Retract {
            superseded: vec![one],
            ..Retract::default()
        };
        let gone = store.retract(&c, WriteKind::Tracked, kind, what);
        gone.await.unwrap()
    };
    let there = async || {
        let hits = store.search(ask(&c, Kind::Entity, &[1.0, 0.0], 10));
        let names = hits
            .await
            .unwrap()
            .into_iter()
            .map(|hit| match hit.subject {
                Subject::Entity(Term::Iri(iri)) => iri,
                other => panic!("{other:?}"),
            });
        names.collect::<Vec<_>>()
    };
    // Named ones alone, and never one that stays.
    assert_eq!(supersede(Kind::Entity, "a", &["0", "2"]).await, 0);
    assert_eq!(supersede(Kind::Entity, "a", &["1"]).await, 2);
    assert_eq!(supersede(Kind::Entity, "a", &[]).await, 0);
    assert_eq!(
        there().await,
        ["urn:kept", "urn:new", "urn:others", "urn:nobodys"]
    );
    assert_eq!(supersede(Kind::Entity, "", &[]).await, 1);
    assert_eq!(there().await, ["urn:kept", "urn:new", "urn:others"]);
    // A chunk has one vector, whoever made it.
    assert_eq!(supersede(Kind::Chunk, "", &[]).await, 0);
    // With the chunk all of it goes.
    assert_eq!(retract(store, &c, Kind::Entity, &["k"]).await, 3);
    assert!(there().await.is_empty());
}

pub(super) async fn what_is_kept_is_found_and_may_come_again(store: &impl Points) {
    let c = key("w", "c");
    assert!(
        chunks(store, &c, &[1.0, 0.0]).await.is_empty(),
        "nothing yet"
    );
    let points = vec![chunk("a", &[1.0, 0.1]), chunk("b", &[0.0, 2.0])];
    assert_eq!(
        keep(store, &c, Kind::Chunk, "m", points.clone())
            .await
            .unwrap(),
        2
    );
    assert_eq!(chunks(store, &c, &[1.0, 0.0]).await, ["a", "b"]);
    // Loaded by now: changes must reach memory.
    assert_eq!(
        keep(store, &c, Kind::Chunk, "m", points).await.unwrap(),
        0,
        "redelivered"
    );
    let moved = vec![chunk("b", &[3.0, 0.0]), chunk("c", &[-1.0, 0.0])];
    assert_eq!(keep(store, &c, Kind::Chunk, "m", moved).await.unwrap(), 2);
    assert_eq!(chunks(store, &c, &[1.0, 0.0]).await, ["b", "a", "c"]);
    assert_eq!(retract(store, &c, Kind::Chunk, &["a"]).await, 1);
    assert_eq!(chunks(store, &c, &[1.0, 0.0]).await, ["b", "c"]);
}

pub(super) async fn entities_are_distinct_and_keep_their_kind_of_term(store: &impl Points) {
    let c = key("w", "c");
    let urn = Term::iri("urn:x:1");
    let text = Term::literal("urn:x:1");
    let mut points: Vec<Point> = (0..50)
        .map(|n| entity(urn.clone(), &format!("chunk{n}"), &[1.0, 0.001 * n as f32]))
        .collect();
    points.push(entity(text.clone(), "chunk0", &[0.5, 0.5]));
    points.push(entity(Term::Blank("b".into()), "chunk0", &[0.0, 1.0]));
    // Two contexts of one entity in one chunk are two vectors.
    points.push(entity(text.clone(), "chunk0", &[0.1, 0.9]));
    keep(store, &c, Kind::Entity, "m", points.clone())
        .await
        .unwrap();
    keep(store, &c, Kind::Entity, "m", points).await.unwrap();
    assert_eq!(store.count(&c, Kind::Entity).await.unwrap(), 53);
    let hits = store
        .search(ask(&c, Kind::Entity, &[1.0, 0.0], 3))
        .await
        .unwrap();
    let found: Vec<_> = hits.iter().map(|hit| hit.subject.clone()).collect();
    let wanted = [urn, text, Term::Blank("b".into())].map(Subject::Entity);
    assert_eq!(found, wanted);
    assert!((hits[0].score - 1.0).abs() < 1e-6);
    // Of a chunk, exactly what came from it goes.
    retract(store, &c, Kind::Entity, &["chunk0"]).await;
    let hits = store
        .search(ask(&c, Kind::Entity, &[1.0, 0.0], 3))
        .await
        .unwrap();
    assert_eq!(hits.len(), 1);
    assert_eq!(store.count(&c, Kind::Entity).await.unwrap(), 49);
}

pub(super) async fn filters_are_exact(store: &impl Points) {
    let c = key("w", "c");
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
    keep(store, &c, Kind::Entity, "m", points).await.unwrap();
    let find = async |conditions: Vec<Condition>| {
        let search = Search {
            conditions,
            ..ask(&c, Kind::Entity, &[1.0, 0.0], 1)
        };
        let hits = store.search(search).await.unwrap();
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

pub(super) async fn models_do_not_mix(store: &impl Points) {
    let c = key("w", "c");
    keep(store, &c, Kind::Chunk, "", vec![chunk("a", &[1.0, 0.0])])
        .await
        .unwrap();
    keep(store, &c, Kind::Chunk, "m", vec![chunk("b", &[1.0, 0.0])])
        .await
        .unwrap();
    let other = keep(store, &c, Kind::Chunk, "n", vec![chunk("c", &[1.0, 0.0])]).await;
    assert!(
        matches!(&other, Err(VectorError::OtherModel { held, .. }) if held == "m"),
        "{other:?}"
    );
    let longer = keep(
        store,
        &c,
        Kind::Chunk,
        "m",
        vec![chunk("c", &[1.0, 0.0, 0.0])],
    )
    .await;
    assert!(matches!(longer, Err(VectorError::OtherDimension { .. })));
    let mixed = vec![chunk("c", &[1.0, 0.0]), chunk("d", &[1.0])];
    assert!(keep(store, &c, Kind::Chunk, "m", mixed).await.is_err());
    let search = Search {
        model: "n".into(),
        ..ask(&c, Kind::Chunk, &[1.0, 0.0], 5)
    };
    let error = tg_schemas::Error::from(store.search(search).await.unwrap_err());
    assert_eq!(error.code(), tg_schemas::ErrorCode::Conflict);
    assert!(
        error
            .message
            .starts_with("model: this collection's chunk vectors were made by 'm'")
    );
    let short = store.search(ask(&c, Kind::Chunk, &[1.0], 5)).await;
    assert!(matches!(
        short,
        Err(VectorError::OtherDimension { given: 1, .. })
    ));
    // Other kinds and collections are free to differ, and so is an emptied one.
    keep(
        store,
        &c,
        Kind::Entity,
        "n",
        vec![entity(Term::iri("urn:e"), "a", &[1.0; 3])],
    )
    .await
    .unwrap();
    keep(
        store,
        &key("w", "d"),
        Kind::Chunk,
        "n",
        vec![chunk("a", &[1.0])],
    )
    .await
    .unwrap();
    retract(store, &c, Kind::Chunk, &["a", "b"]).await;
    keep(
        store,
        &c,
        Kind::Chunk,
        "n",
        vec![chunk("z", &[0.0, 1.0, 0.0])],
    )
    .await
    .unwrap();
    assert_eq!(chunks(store, &c, &[0.0, 1.0, 0.0]).await, ["z"]);
}

pub(super) async fn equal_and_hostile_names_never_meet(store: &impl Points) {
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
            keep(
                store,
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
            let found = chunks(store, &key(workspace, collection), &[1.0, 0.0]).await;
            assert_eq!(found, [format!("{workspace}|{collection}")]);
        }
    }
    assert_eq!(store.drop_collection(&key("a", "a")).await.unwrap(), 1);
    assert!(chunks(store, &key("a", "a"), &[1.0, 0.0]).await.is_empty());
    assert_eq!(chunks(store, &key("a", "a_b"), &[1.0, 0.0]).await.len(), 1);
    super::end_workspace(store, "a").await;
    assert!(
        chunks(store, &key("a", "a_b"), &[1.0, 0.0])
            .await
            .is_empty()
    );
    assert_eq!(chunks(store, &key("a_b", "a"), &[1.0, 0.0]).await.len(), 1);
}

pub(super) async fn a_dropped_generation_stays_dead(store: &impl Points) {
    let generation = |n| CollectionKey::new("w", "c").in_generation(n);
    for n in 0..3 {
        let points = (0..3_000)
            .map(|at| chunk(&format!("{at}"), &[1.0, at as f32]))
            .collect();
        keep(store, &generation(n), Kind::Chunk, "m", points)
            .await
            .unwrap();
    }
    assert_eq!(chunks(store, &generation(1), &[1.0, 0.0]).await.len(), 10);
    assert_eq!(store.drop_collection(&generation(1)).await.unwrap(), 6_000);
    assert_eq!(
        store.drop_collection(&generation(1)).await.unwrap(),
        0,
        "again"
    );
    assert!(chunks(store, &generation(1), &[1.0, 0.0]).await.is_empty());
    assert_eq!(chunks(store, &generation(2), &[1.0, 0.0]).await.len(), 10);
    let late = Write {
        write_kind: WriteKind::Tracked,
        ..write(
            &generation(1),
            Kind::Chunk,
            "m",
            vec![chunk("late", &[1.0, 0.0])],
        )
    };
    assert_eq!(
        store.put(late).await.unwrap(),
        None,
        "its run came too late"
    );
    assert!(chunks(store, &generation(1), &[1.0, 0.0]).await.is_empty());
    keep(
        store,
        &generation(1),
        Kind::Chunk,
        "other",
        vec![chunk("new", &[1.0])],
    )
    .await
    .unwrap();
    assert_eq!(chunks(store, &generation(1), &[1.0]).await, ["new"]);
}

pub(super) async fn searches_and_writes_at_once_lose_nothing(store: &impl Points) {
    let c = key("w", "c");
    let writers = (0..20).map(|part| {
        let c = &c;
        async move {
            for n in 0..20 {
                let id = format!("{part}-{n}");
                let point = chunk(&id, &[1.0, part as f32 + n as f32]);
                keep(store, c, Kind::Chunk, "m", vec![point]).await.unwrap();
                chunks(store, c, &[1.0, 0.0]).await;
            }
        }
    });
    futures::future::join_all(writers).await;
    let all = store.search(ask(&c, Kind::Chunk, &[1.0, 0.0], 1_000));
    assert_eq!(all.await.unwrap().len(), 400);
}

pub(super) async fn a_workspace_keeps_its_quota_of_vectors_and_may_replace_them(
    store: &impl Points,
) {
    let many = |name: &str, count: usize, number: f32| -> Vec<Point> {
        let point = |n| chunk(&format!("{name}-{n}"), &[1.0, number]);
        (0..count).map(point).collect()
    };
    let (c, d) = (key("w", "c"), key("w", "d"));
    keep(store, &c, Kind::Chunk, "m", many("a", 6_000, 1.0))
        .await
        .unwrap();
    keep(store, &d, Kind::Chunk, "m", many("b", 3_999, 1.0))
        .await
        .unwrap();
    let over = keep(store, &c, Kind::Chunk, "m", many("c", 2, 1.0)).await;
    super::refused(over, "10000 vectors");
    assert_eq!(store.count(&c, Kind::Chunk).await.unwrap(), 6_000);
    keep(store, &c, Kind::Chunk, "m", many("c", 1, 1.0))
        .await
        .unwrap();
    // Full: what is there may come again, and change.
    let again = keep(store, &d, Kind::Chunk, "m", many("b", 3_999, 1.0)).await;
    assert_eq!(again, Ok(0));
    let changed = keep(store, &d, Kind::Chunk, "m", many("b", 3_999, 2.0)).await;
    assert_eq!(changed, Ok(3_999));
    let other = key("other", "c");
    keep(store, &other, Kind::Chunk, "m", many("c", 2, 1.0))
        .await
        .unwrap();
    assert_eq!(retract(store, &c, Kind::Chunk, &["a-0", "a-1"]).await, 2);
    keep(store, &c, Kind::Entity, "m", many("e", 2, 1.0))
        .await
        .unwrap();
}

pub(super) async fn and_its_quota_of_bytes_whatever_becomes_of_its_vectors(store: &impl Points) {
    // Two of them fit, and not a third: by vectors, or by the text of what they stand for.
    let names = |name: &str| (0..12).map(|n| format!("{name}-{n}")).collect::<Vec<_>>();
    let wide = |name: &str, number: f32| -> Vec<Point> {
        let vector = vec![number; 16_384];
        let points = names(name).into_iter();
        points.map(|name| chunk(&name, &vector)).collect()
    };
    let long = |name: &str| vec![chunk(&format!("{name}{}", "x".repeat(800 << 10)), &[1.0])];
    let (c, d) = (key("w", "c"), key("w", "d"));
    let put = async |key: &CollectionKey, points| keep(store, key, Kind::Chunk, "m", points).await;
    let gone = async |key: &CollectionKey, names: &[String]| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        retract(store, key, Kind::Chunk, &names).await
    };
    for name in ["a", "b"] {
        assert_eq!(put(&c, wide(name, 1.0)).await, Ok(12));
    }
    super::refused(put(&c, wide("c", 1.0)).await, "2 MiB of vectors");
    super::refused(put(&d, long("c")).await, "2 MiB of vectors");
    assert_eq!(put(&key("other", "c"), wide("c", 1.0)).await, Ok(12));
    // What is there may come again, and change; what goes makes room.
    assert_eq!(put(&c, wide("a", 2.0)).await, Ok(12));
    assert_eq!(gone(&c, &names("a")).await, 12);
    assert_eq!(put(&d, long("c")).await, Ok(1));
    super::refused(put(&c, wide("a", 1.0)).await, "2 MiB of vectors");
    let name = format!("c{}", "x".repeat(800 << 10));
    assert_eq!(gone(&d, &[name]).await, 1);
    assert_eq!(put(&c, wide("a", 1.0)).await, Ok(12));
    store.drop_collection(&c).await.unwrap();
    for name in ["d", "e"] {
        assert_eq!(put(&d, long(name)).await, Ok(1));
    }
}

#[tokio::test]
async fn a_backup_of_one_workspace_finds_the_same_vectors() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("vectors.sqlite");
    let open = || SqlitePoints::open(&file, Durability::Process, Limits::default()).unwrap();
    let store = open();
    for (workspace, id) in [("other", "theirs"), ("acme#7", "ours")] {
        let points = vec![chunk(id, &[1.0, 0.0])];
        let kept = keep(&store, &key(workspace, "c"), Kind::Chunk, "m", points).await;
        assert_eq!(kept.unwrap(), 1);
    }
    drop(store);
    let acme = tg_schemas::WorkspaceKey::new("acme", 7);
    ONE_WORKSPACE.keep(&file, &acme).unwrap();
    let store = open();
    assert_eq!(store.workspaces().await.unwrap(), ["acme#7"]);
    let found = chunks(&store, &key("acme#7", "c"), &[1.0, 0.0]).await;
    assert_eq!(found, ["ours"]);
}
