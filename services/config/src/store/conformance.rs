//! What every adapter of [`ConfigStore`] does. A new one is added by one line at the end.

use std::sync::Arc;

use super::{ConfigStore, MAX_TRASH, SqliteStore};
use crate::engine::{Change, Row, RowKey, Trash};

fn at(workspace: &str, kind: &str, key: &str) -> RowKey {
    RowKey {
        workspace: workspace.into(),
        kind: kind.into(),
        key: key.into(),
    }
}

fn row(workspace: &str, key: &str, value: &str) -> Row {
    Row {
        at: at(workspace, "tool", key),
        value: value.into(),
    }
}

fn change(version: i64, puts: Vec<Row>, removes: Vec<RowKey>, trash: Trash) -> Change {
    Change {
        version,
        puts,
        removes,
        trash,
        push: Default::default(),
    }
}

/// Everything but what a fresh store has of its own.
async fn all(store: &dyn ConfigStore) -> Vec<Row> {
    let mut rows = store.page(None, 10_000).await.unwrap();
    rows.retain(|row| !row.at.workspace.starts_with('_'));
    rows
}

async fn keep(store: &dyn ConfigStore, workspace: &str, until: i64, now: i64) {
    let rows = vec![row(workspace, "a", "kept")];
    let trash = Trash::Keeps(workspace.into(), until, rows);
    let version = store.version().await.unwrap() + 1;
    store
        .commit(&change(version, Vec::new(), Vec::new(), trash), now)
        .await
        .unwrap();
}

async fn a_fresh_store_has_an_identity_and_a_version(store: Arc<dyn ConfigStore>) {
    assert!(store.version().await.unwrap() > 0);
    let rows = store.page(None, 10).await.unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].at, at("__workspaces__", "store", "identity"));
    assert!(!rows[0].value.is_empty());
}

async fn a_commit_is_whole_and_may_be_repeated(store: Arc<dyn ConfigStore>) {
    let version = store.version().await.unwrap();
    let puts = vec![row("acme", "a", "1"), row("acme", "b", "2")];
    let first = change(version + 1, puts, Vec::new(), Trash::Stays);
    let removes = vec![at("acme", "tool", "a"), at("acme", "tool", "never")];
    let second = change(
        version + 2,
        vec![row("acme", "b", "3")],
        removes,
        Trash::Stays,
    );
    for one in [&first, &first, &second, &second] {
        store.commit(one, 1).await.unwrap();
        assert_eq!(store.version().await.unwrap(), one.version);
    }
    assert_eq!(all(&*store).await, [row("acme", "b", "3")]);
}

async fn rows_come_in_pages_by_workspace_type_and_key(store: Arc<dyn ConfigStore>) {
    let version = store.version().await.unwrap() + 1;
    let mut wanted: Vec<Row> = ["b", "a", "c"]
        .iter()
        .flat_map(|workspace| (0..3).map(move |key| row(workspace, &format!("k{key}"), "x")))
        .collect();
    wanted.push(Row {
        at: at("b", "flow", "z"),
        value: "y".into(),
    });
    store
        .commit(
            &change(version, wanted.clone(), Vec::new(), Trash::Stays),
            1,
        )
        .await
        .unwrap();
    wanted.sort_by(|one, other| one.at.cmp(&other.at));
    for most in [1, 3, 4, 100] {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = store.page(after.take(), most).await.unwrap();
            assert!(page.len() <= most as usize);
            let Some(last) = page.last() else { break };
            after = Some(last.at.clone());
            found.extend(page);
        }
        found.retain(|row| !row.at.workspace.starts_with('_'));
        assert_eq!(found, wanted, "in pages of {most}");
    }
}

async fn the_trash_keeps_a_workspace_until_it_is_told_otherwise(store: Arc<dyn ConfigStore>) {
    assert_eq!(store.trash("acme").await.unwrap(), None);
    keep(&*store, "acme", 100, 1).await;
    keep(&*store, "empty", 100, 1).await;
    let kept = Some(vec![row("acme", "a", "kept")]);
    assert_eq!(store.trash("acme").await.unwrap(), kept);
    let version = store.version().await.unwrap() + 1;
    let forgets = Trash::Forgets("acme".into());
    for _ in 0..2 {
        let forget = change(version, Vec::new(), Vec::new(), forgets.clone());
        store.commit(&forget, 1).await.unwrap();
        assert_eq!(store.trash("acme").await.unwrap(), None);
    }
    assert!(store.trash("empty").await.unwrap().is_some());
}

async fn the_trash_is_bounded_in_time_and_number(store: Arc<dyn ConfigStore>) {
    keep(&*store, "early", 10, 1).await;
    keep(&*store, "late", 5_000, 20).await;
    assert_eq!(
        store.trash("early").await.unwrap(),
        None,
        "its time is over"
    );
    assert!(store.trash("late").await.unwrap().is_some());
    for n in 0..i64::from(MAX_TRASH) {
        keep(&*store, &format!("w{n}"), 10_000 + n, 20).await;
    }
    assert_eq!(store.trash("late").await.unwrap(), None, "it was due first");
    assert!(store.trash("w0").await.unwrap().is_some());
}

/// Every promise, kept by one adapter.
macro_rules! suite {
    ($adapter:ident, $open:expr) => {
        mod $adapter {
            use super::*;

            suite!(@ $open;
                a_fresh_store_has_an_identity_and_a_version,
                a_commit_is_whole_and_may_be_repeated,
                rows_come_in_pages_by_workspace_type_and_key,
                the_trash_keeps_a_workspace_until_it_is_told_otherwise,
                the_trash_is_bounded_in_time_and_number,
            );
        }
    };
    (@ $open:expr; $($promise:ident,)+) => {
        $(
            #[tokio::test]
            async fn $promise() {
                super::$promise(Arc::new($open)).await;
            }
        )+
    };
}

suite!(sqlite, SqliteStore::in_memory().unwrap());
