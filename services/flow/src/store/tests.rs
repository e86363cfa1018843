//! Epochs grow, nothing is dropped for room, and what a crashed stop parked is not parked twice.

use super::*;

fn store(rows: u64, bytes: u64) -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("flow.sqlite");
    let store = Store::open(&file, Durability::Process, rows, bytes).unwrap();
    (dir, store)
}

fn record(reason: Reason, body: &str) -> NewRecord {
    NewRecord {
        workspace: "w".into(),
        flow: "f".into(),
        topic: "flow:tg:x:w:f".into(),
        subscription: "s".into(),
        reason,
        detail: "why".into(),
        due: 10,
        attempt: 1,
        since: 100,
        headers: "{}".into(),
        content_type: "application/json".into(),
        body: body.as_bytes().to_vec(),
    }
}

fn of_flow() -> Select {
    Select {
        workspace: "w".into(),
        flow: Some("f".into()),
        limit: 100,
        ..Select::default()
    }
}

#[tokio::test]
async fn epochs_only_grow() {
    let (_dir, store) = store(10, 1000);
    assert_eq!(store.next_epoch().await.unwrap(), 1);
    store.raise_epoch(7).await.unwrap();
    store.raise_epoch(3).await.unwrap();
    assert_eq!(store.next_epoch().await.unwrap(), 8);
}

#[tokio::test]
async fn a_full_store_refuses_and_forgets_nothing() {
    let (_dir, store) = store(2, 10);
    let first = store.keep(record(Reason::Dead, "12345")).await.unwrap();
    let error = store
        .keep(record(Reason::Dead, "123456"))
        .await
        .unwrap_err();
    assert!(matches!(error, StorageError::Refused(_)), "{error:?}");
    store.keep(record(Reason::Dead, "1234")).await.unwrap();
    assert!(store.keep(record(Reason::Dead, "")).await.is_err());
    store.forget(vec![first]).await.unwrap();
    store.keep(record(Reason::Dead, "123456")).await.unwrap();
    let kept = store.list(of_flow()).await.unwrap();
    assert_eq!(
        kept.iter().map(|kept| kept.size).collect::<Vec<_>>(),
        [4, 6]
    );
}

#[tokio::test]
async fn due_retries_come_in_time_but_not_those_of_a_stopping_flow() {
    let (_dir, store) = store(10, 1000);
    store.keep(record(Reason::Retry, "a")).await.unwrap();
    store.keep(record(Reason::Dead, "b")).await.unwrap();
    let none: Vec<(String, String)> = Vec::new();
    let (due, next) = store.due(9, 10, none.clone()).await.unwrap();
    assert_eq!((due.len(), next), (0, Some(10)));
    let (due, next) = store.due(10, 10, none).await.unwrap();
    assert_eq!((due.len(), next), (1, None));
    assert_eq!(due[0].record.body, b"a");
    let stopping = vec![
        ("w".to_owned(), "f".to_owned()),
        ("v".to_owned(), "f".to_owned()),
    ];
    let (due, next) = store.due(10, 10, stopping).await.unwrap();
    assert_eq!((due.len(), next), (0, None));
}

#[tokio::test]
async fn a_stop_goes_on_where_it_was_and_parks_each_record_once() {
    let (_dir, store) = store(100, 1000);
    let (begun, resumed) = store.begin_stop("w", "f", 3, 50).await.unwrap();
    assert_eq!((begun.phase, resumed), (Phase::Drain, false));
    let mut counts = begun.counts;
    let two = vec![record(Reason::Parked, "a"), record(Reason::Parked, "a")];
    counts = store.park("w", "f", two, counts).await.unwrap();
    assert_eq!(counts.parked["s"], 2);

    // The process dies; only one of the two had been acknowledged.
    let (begun, resumed) = store.begin_stop("w", "f", 3, 60).await.unwrap();
    assert_eq!(
        (begun.phase, begun.started, resumed),
        (Phase::Park, 50, true)
    );
    store.doubt("w", "f").await.unwrap();
    let more = vec![record(Reason::Parked, "a"), record(Reason::Parked, "b")];
    counts = store.park("w", "f", more, begun.counts).await.unwrap();
    assert_eq!(counts.parked["s"], 3);
    store.settle("w", "f").await.unwrap();
    // From now on an equal record is another one.
    counts = store
        .park("w", "f", vec![record(Reason::Parked, "b")], counts)
        .await
        .unwrap();
    assert_eq!(counts.parked["s"], 4);
    assert_eq!(store.list(of_flow()).await.unwrap().len(), 4);

    // A new start of the flow has a stop of its own.
    let (begun, resumed) = store.begin_stop("w", "f", 4, 70).await.unwrap();
    assert_eq!(
        (begun.phase, begun.counts, resumed),
        (Phase::Drain, Counts::default(), false)
    );
    store.end_stop("w", "f").await.unwrap();
}

#[tokio::test]
async fn retries_end_with_the_flow() {
    let (_dir, store) = store(100, 1000);
    store.begin_stop("w", "f", 1, 50).await.unwrap();
    store
        .keep(NewRecord {
            since: 10,
            ..record(Reason::Retry, "before")
        })
        .await
        .unwrap();
    store.keep(record(Reason::Retry, "during")).await.unwrap();
    store.keep(record(Reason::Dead, "during")).await.unwrap();
    store
        .keep(NewRecord {
            flow: "g".into(),
            ..record(Reason::Retry, "other")
        })
        .await
        .unwrap();
    let counts = store
        .end_retries("w", "f", 50, false, Counts::default())
        .await
        .unwrap();
    assert_eq!((counts.parked["s"], counts.aside["s"]), (3, 2));
    let tally = store.tally("w").await.unwrap();
    let row = |flow: &str, reason: &str, count| (flow.to_owned(), reason.to_owned(), count);
    assert_eq!(
        tally,
        [
            row("f", "dead", 1),
            row("f", "parked", 2),
            row("g", "retry", 1)
        ]
    );
}

#[tokio::test]
async fn what_a_deleted_workspace_left_can_be_purged() {
    let (_dir, store) = store(100, 1000);
    store.keep(record(Reason::Parked, "a")).await.unwrap();
    let other = NewRecord {
        workspace: "v".into(),
        ..record(Reason::Parked, "b")
    };
    store.keep(other).await.unwrap();
    assert_eq!(store.workspaces().await.unwrap(), ["v", "w"]);
    store.purge("w").await.unwrap();
    assert_eq!(store.workspaces().await.unwrap(), ["v"]);
}
