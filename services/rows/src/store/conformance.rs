//! What every adapter of [`RowStore`] does: identity, conditions, changes of a table, and what goes with its source. A
//! new one is added by one line at the end.

use std::collections::BTreeMap;

use tg_collections::{CollectionKey, CollectionStore, Quota, WorkspaceStore, WriteKind};
use tg_schemas::msg::{Retract, Superseded};
use tg_schemas::table::Table;
use tg_schemas::{Error, ErrorCode, WorkspaceKey, WorkspaceTombstone};
use tg_storage::Durability;

use super::sqlite::{ONE_WORKSPACE, SqliteRows};
use super::{Page, RowCursor, RowStore};
use crate::engine::select::{Condition, Select, Test};
use crate::engine::value::{Value, row};

/// What the suite needs of an adapter.
trait Rows: RowStore + CollectionStore<Part = ()> {}

impl<S: RowStore + CollectionStore<Part = ()>> Rows for S {}

/// What a workspace may keep in these tests.
const MOST: Quota = Quota {
    items: 5,
    bytes: 1_000,
};

const CITIES: &str = r#"{"fields": [
    {"name": "id", "type": "integer", "primary_key": true},
    {"name": "name", "indexed": true},
    {"name": "area", "type": "float"},
    {"name": "capital", "type": "boolean"}]}"#;

fn cities() -> Table {
    Table::read("cities", CITIES).unwrap()
}

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let own = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
    pairs.iter().map(own).collect()
}

fn all() -> Select {
    Select {
        limit: 100,
        ..Select::default()
    }
}

fn key(collection: &str) -> CollectionKey {
    CollectionKey::new("w", collection).in_generation(1)
}

async fn put(store: &impl Rows, key: &CollectionKey, chunk: &str, rows: &[&[(&str, &str)]]) {
    let table = cities();
    let rows = rows.iter().map(|pairs| row(&table, &texts(pairs)).unwrap());
    let rows = rows.collect();
    store
        .write(key, table, rows, chunk.to_owned())
        .await
        .unwrap();
}

async fn retract(store: &impl Rows, key: &CollectionKey, chunks: &[&str]) -> u64 {
    let what = Retract {
        chunks: chunks.iter().map(|chunk| (*chunk).to_owned()).collect(),
        ..Retract::default()
    };
    let gone = CollectionStore::retract(store, key, WriteKind::Tracked, (), what);
    gone.await.unwrap()
}

async fn names(store: &impl Rows, key: &CollectionKey, select: Select) -> Vec<String> {
    let rows = store.select(key, &cities(), select).await.unwrap();
    let name = |row: Vec<Value>| match &row[1] {
        Value::Text(name) => name.clone(),
        other => format!("{other:?}"),
    };
    rows.into_iter().map(name).collect()
}

async fn what_was_found_anew_goes_and_nothing_else(store: &impl Rows) {
    let key = key("c");
    let one = |id: &'static str, name: &'static str| [("id", id), ("name", name)];
    for (source, id, name) in [
        ("k\nx@1", "1", "Old"),
        ("k\nx@1", "2", "Kept"),
        ("k\nx@2", "2", "Kept"),
        ("k\nx@2", "3", "New"),
        ("k", "4", "Nobody's"),
        ("kk\nx@1", "5", "Elsewhere"),
    ] {
        put(store, &key, source, &[&one(id, name)]).await;
    }
    let supersede = async |processor: &str, gone: &[&str]| {
        let one = Superseded {
            processor: processor.to_owned(),
            kept: vec!["2".to_owned()],
            gone: gone.iter().map(|one| (*one).to_owned()).collect(),
            chunks: vec!["k".to_owned()],
        };
        let what = Retract {
            superseded: vec![one],
            ..Retract::default()
        };
        let gone = CollectionStore::retract(store, &key, WriteKind::Tracked, (), what);
        gone.await.unwrap()
    };
    // Named ones alone, and never one that stays.
    assert_eq!(supersede("x", &["0", "2"]).await, 0);
    assert_eq!(supersede("x", &["1"]).await, 1);
    assert_eq!(supersede("x", &[]).await, 0);
    assert_eq!(supersede("", &[]).await, 1);
    assert_eq!(
        names(store, &key, all()).await,
        ["Kept", "New", "Elsewhere"]
    );
    assert_eq!(retract(store, &key, &["k"]).await, 2);
    assert_eq!(names(store, &key, all()).await, ["Elsewhere"]);
}

async fn a_row_is_one_row_and_its_last_values_count(store: &impl Rows) {
    put(store, &key("c"), "k1", &[&[("id", "1"), ("name", "Rome")]]).await;
    put(store, &key("c"), "k1", &[&[("id", "1"), ("name", "Rome")]]).await;
    put(
        store,
        &key("c"),
        "k2",
        &[&[("id", "1"), ("name", "Roma"), ("capital", "True")]],
    )
    .await;
    let rows = store.select(&key("c"), &cities(), all()).await.unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0][1], Value::Text("Roma".into()));
    assert_eq!(rows[0][3], Value::Boolean(true));
}

async fn conditions_order_and_limit_are_those_of_the_whole_table(store: &impl Rows) {
    let key = key("c");
    let rows: [&[(&str, &str)]; 4] = [
        &[("id", "1"), ("name", "Bonn"), ("area", "141")],
        &[("id", "2"), ("name", "Oslo"), ("area", "9.5")],
        &[("id", "3"), ("name", "Rome"), ("area", "1285")],
        &[("id", "4"), ("name", "Lome")],
    ];
    put(store, &key, "", &rows).await;
    let by_area = |descending, limit| Select {
        order: Some((2, descending)),
        limit,
        ..Select::default()
    };
    assert_eq!(names(store, &key, by_area(true, 2)).await, ["Rome", "Bonn"]);
    assert_eq!(
        names(store, &key, by_area(false, 9)).await,
        ["Oslo", "Bonn", "Rome", "Lome"]
    );
    let which = |field, test| Select {
        conditions: vec![Condition { field, test }],
        ..all()
    };
    let ends = which(1, Test::EndsWith("ome".into()));
    assert_eq!(names(store, &key, ends).await, ["Rome", "Lome"]);
    let small = which(2, Test::Lt(Value::Float(200.0)));
    assert_eq!(names(store, &key, small).await, ["Bonn", "Oslo"]);
    let not = which(2, Test::NotIn(vec![Value::Float(141.0)]));
    assert_eq!(names(store, &key, not).await, ["Oslo", "Rome"]);
    let starts = which(1, Test::StartsWith("B".into()));
    assert_eq!(names(store, &key, starts).await, ["Bonn"]);
    let none = which(1, Test::In(Vec::new()));
    assert!(names(store, &key, none).await.is_empty());
}

async fn what_only_a_chunk_said_goes_with_it(store: &impl Rows) {
    let key = key("c");
    put(
        store,
        &key,
        "k1",
        &[
            &[("id", "1"), ("name", "Rome")],
            &[("id", "2"), ("name", "Oslo")],
        ],
    )
    .await;
    put(store, &key, "k2", &[&[("id", "2"), ("name", "Oslo")]]).await;
    put(store, &key, "", &[&[("id", "3"), ("name", "Bonn")]]).await;
    assert_eq!(retract(store, &key, &["k1", "k9"]).await, 1);
    assert_eq!(retract(store, &key, &["k1"]).await, 0);
    assert_eq!(names(store, &key, all()).await, ["Oslo", "Bonn"]);
}

async fn a_table_that_changes_keeps_its_rows(store: &impl Rows) {
    let key = key("c");
    put(
        store,
        &key,
        "k",
        &[&[("id", "1"), ("name", "Rome"), ("area", "1285")]],
    )
    .await;
    let grown = CITIES.replace(
        r#"{"name": "area", "type": "float"}"#,
        r#"{"name": "area", "type": "integer", "indexed": true}, {"name": "motto"}"#,
    );
    let grown = Table::read("cities", &grown).unwrap();
    let rows = store.select(&key, &grown, all()).await.unwrap();
    assert_eq!(rows[0][2], Value::Integer(1285));
    assert_eq!(rows[0][3], Value::Null);
    assert_eq!(retract(store, &key, &["k"]).await, 1);
    while store.purge_some().await.unwrap() {}
}

async fn all_rows_leave_page_by_page_table_by_table(store: &impl Rows) {
    let of = key("docs");
    let empty = store.page(&of, RowCursor::default(), 2).await.unwrap();
    assert_eq!(empty, Page::default());
    put(
        store,
        &of,
        "k",
        &[&[("id", "1"), ("name", "a")], &[("id", "2")]],
    )
    .await;
    let towns = Table::read("towns", CITIES).unwrap();
    let one = row(&towns, &texts(&[("id", "3.0")])).unwrap();
    store
        .write(&of, towns, vec![one], String::new())
        .await
        .unwrap();
    put(store, &key("other"), "k", &[&[("id", "9")]]).await;
    let (mut after, mut seen) = (RowCursor::default(), Vec::new());
    for _ in 0..9 {
        let page = store.page(&of, after, 2).await.unwrap();
        let told = |row: &BTreeMap<String, String>| format!("{}:{}", page.table, row["id"]);
        seen.extend(page.rows.iter().map(told));
        assert!(page.rows.len() <= 2);
        let Some(next) = page.next else { break };
        after = next;
    }
    assert_eq!(seen, ["cities:1", "cities:2", "towns:3.0"]);
}

async fn a_dropped_collection_is_gone_and_no_other_is(store: &impl Rows) {
    let rome: [&[(&str, &str)]; 1] = [&[("id", "1"), ("name", "Rome")]];
    for name in ["docs", "docs_2024", "a:b", "a"] {
        put(store, &key(name), "", &rome).await;
    }
    let next = CollectionKey::new("w", "docs").in_generation(2);
    put(store, &next, "", &rome).await;
    assert_eq!(store.drop_collection(&key("docs")).await.unwrap(), 1);
    assert_eq!(store.drop_collection(&key("docs")).await.unwrap(), 0);
    while store.purge_some().await.unwrap() {}
    assert!(names(store, &key("docs"), all()).await.is_empty());
    for still in [&key("docs_2024"), &key("a:b"), &key("a"), &next] {
        assert_eq!(names(store, still, all()).await, ["Rome"]);
    }
    assert_eq!(store.workspaces().await.unwrap(), ["w"]);
    let proof = WorkspaceTombstone {
        generation: 0,
        deleted_at: 1,
        purge_after: 1,
    };
    let workspace = WorkspaceKey::new("w", 0);
    store.purge(&workspace, &proof).await.unwrap();
    store.purge(&workspace, &proof).await.unwrap();
    assert!(store.workspaces().await.unwrap().is_empty());
    assert!(names(store, &next, all()).await.is_empty());
}

async fn a_workspace_keeps_its_quota_of_rows_and_can_always_let_go(store: &impl Rows) {
    let key = key("c");
    let row = |id: &'static str| [("id", id), ("name", "x")];
    for (id, chunk) in [
        ("1", "k1"),
        ("2", "k1"),
        ("3", "k2"),
        ("5", "k2"),
        ("6", ""),
    ] {
        put(store, &key, chunk, &[&row(id)]).await;
    }
    let one = |id: &'static str| {
        let texts = row(id).map(|(name, text)| (name.to_owned(), text.to_owned()));
        crate::engine::value::row(&cities(), &texts.into_iter().collect()).unwrap()
    };
    let more = store
        .write(&key, cities(), vec![one("4")], "k3".to_owned())
        .await;
    let error = Error::from(more.unwrap_err());
    assert_eq!(error.code(), ErrorCode::TooLarge);
    assert_eq!(
        error.message,
        "the tables of this workspace may hold at most 5 rows"
    );
    let other = CollectionKey::new("other", "c");
    put(store, &other, "k1", &[&row("1")]).await;
    assert_eq!(retract(store, &key, &["k1"]).await, 2);
}

async fn and_its_quota_of_bytes_whatever_happens_to_its_rows(store: &impl Rows) {
    let (key, other) = (key("c"), CollectionKey::new("other", "c"));
    let long = "x".repeat(600);
    let write = async |key: &CollectionKey, id: &str, name: &str, chunk: &str| {
        let row = row(&cities(), &texts(&[("id", id), ("name", name)])).unwrap();
        let written = store.write(key, cities(), vec![row], chunk.to_owned());
        written.await.map_err(Error::from)
    };
    write(&key, "1", &long, "k1").await.unwrap();
    let refused = write(&key, "2", &long, "k2").await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::TooLarge);
    assert_eq!(
        refused.message,
        "the tables of this workspace may hold at most 0 MiB of text"
    );
    assert_eq!(names(store, &key, all()).await, [long.as_str()]);
    write(&other, "2", &long, "k2").await.unwrap();
    // A row that becomes shorter makes room, and so do a retraction and a drop.
    write(&key, "1", "short", "k1").await.unwrap();
    write(&key, "2", &long, "k2").await.unwrap();
    assert!(write(&key, "3", &long, "k3").await.is_err());
    assert_eq!(retract(store, &key, &["k2"]).await, 1);
    write(&key, "3", &long, "k3").await.unwrap();
    assert!(write(&key, "4", &long, "k4").await.is_err());
    store.drop_collection(&key).await.unwrap();
    let next = CollectionKey::new("w", "c").in_generation(2);
    write(&next, "4", &long, "k4").await.unwrap();
    // What is brought into another shape is counted on.
    let wide = Table::read("cities", &CITIES.replace("\"area\"", "\"size\"")).unwrap();
    let one = row(&wide, &texts(&[("id", "5"), ("name", "x")])).unwrap();
    let wrote = store.write(&next, wide, vec![one], "k5".to_owned()).await;
    assert_eq!(wrote.unwrap(), 1);
    assert!(write(&next, "6", &long, "k6").await.is_err());
}

/// Holds an adapter to all of it.
macro_rules! conformance {
    ($adapter:ident, $make:expr) => {
        conformance!($adapter, $make;
            a_row_is_one_row_and_its_last_values_count,
            conditions_order_and_limit_are_those_of_the_whole_table,
            what_only_a_chunk_said_goes_with_it,
            what_was_found_anew_goes_and_nothing_else,
            a_table_that_changes_keeps_its_rows,
            all_rows_leave_page_by_page_table_by_table,
            a_dropped_collection_is_gone_and_no_other_is,
            a_workspace_keeps_its_quota_of_rows_and_can_always_let_go,
            and_its_quota_of_bytes_whatever_happens_to_its_rows);
    };
    ($adapter:ident, $make:expr; $($promise:ident),*) => {
        mod $adapter {
            use super::*;

            $(#[tokio::test]
            async fn $promise() {
                super::$promise(&$make).await;
            })*
        }
    };
}

conformance!(sqlite, SqliteRows::in_memory().unwrap().holding(MOST));

#[tokio::test]
async fn a_backup_of_one_workspace_has_the_same_rows() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("rows.sqlite");
    let open = || SqliteRows::open(&file, Durability::Process).unwrap();
    let store = open();
    let of = |workspace: &str| CollectionKey::new(workspace, "c");
    for (workspace, name) in [("other", "Bonn"), ("acme#7", "Rome")] {
        put(
            &store,
            &of(workspace),
            "chunk",
            &[&[("id", "1"), ("name", name)]],
        )
        .await;
    }
    drop(store);
    ONE_WORKSPACE
        .keep(&file, &WorkspaceKey::new("acme", 7))
        .unwrap();
    let store = open();
    assert_eq!(store.workspaces().await.unwrap(), ["acme#7"]);
    assert_eq!(names(&store, &of("acme#7"), all()).await, ["Rome"]);
    // A set that comes later does not meet what was removed.
    put(
        &store,
        &of("other"),
        "chunk",
        &[&[("id", "2"), ("name", "Oslo")]],
    )
    .await;
    assert_eq!(names(&store, &of("other"), all()).await, ["Oslo"]);
}
