//! Epochs grow, nothing is dropped for room, and what a crashed stop parked is not parked twice.

use super::*;
use crate::settings::Quota;

fn store(records: u64, bytes: u64) -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("flow.sqlite");
    let quota = Quota { records, bytes };
    let quotas = Quotas {
        workspace: Quota {
            records: records.saturating_add(2),
            ..quota
        },
        flow: quota,
    };
    let store = Store::open(&file, Durability::Process, quotas).unwrap();
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

async fn sizes(store: &Store, select: Select) -> Vec<i64> {
    let kept = store.list(select).await.unwrap();
    kept.iter().map(|kept| kept.size).collect()
}

#[tokio::test]
async fn the_oldest_dead_letters_of_a_flow_go_for_newer_records() {
    let (_dir, store) = store(3, 10);
    let other = NewRecord {
        workspace: "v".into(),
        ..record(Reason::Dead, "123456789")
    };
    store.keep(other).await.unwrap();
    for body in ["1", "12", "123"] {
        let kept = store.keep(record(Reason::Dead, body)).await.unwrap();
        assert_eq!((kept.evicted, kept.full), (0, false));
    }
    // Of records.
    let kept = store.keep(record(Reason::Dead, "1234")).await.unwrap();
    assert_eq!((kept.evicted, kept.full), (1, false));
    assert_eq!(sizes(&store, of_flow()).await, [2, 3, 4]);
    // Of bytes: as many as it takes, but never the newest.
    let kept = store
        .keep(record(Reason::Dead, "12345678901"))
        .await
        .unwrap();
    assert_eq!((kept.evicted, kept.full), (3, false));
    assert_eq!(sizes(&store, of_flow()).await, [11]);
    let of_other = Select {
        workspace: "v".into(),
        ..of_flow()
    };
    assert_eq!(sizes(&store, of_other).await, [9]);
}

#[tokio::test]
async fn retries_and_parked_records_never_go_and_fill_their_room_alone() {
    let (_dir, store) = store(2, 1000);
    store.keep(record(Reason::Retry, "a")).await.unwrap();
    assert_eq!(store.full_rooms().await.unwrap(), Vec::<String>::new());
    assert!(store.keep(record(Reason::Retry, "b")).await.unwrap().full);
    assert_eq!(store.full_rooms().await.unwrap(), ["w:f"]);
    // One that was on its way already is kept.
    store.keep(record(Reason::Parked, "c")).await.unwrap();
    store.keep(record(Reason::Dead, "d")).await.unwrap();
    assert_eq!(sizes(&store, of_flow()).await.len(), 4);
    let error = store.has_room("w", "f", 1).await.unwrap().unwrap_err();
    assert!(
        error.message.contains("quota of the flow (2 records"),
        "{error}"
    );
    let more = vec![record(Reason::Parked, "e")];
    let parked = store.park("w", "f", more.clone(), Counts::default()).await;
    assert!(
        matches!(parked, Err(StorageError::Refused(_))),
        "{parked:?}"
    );
    // The next flow has room, until the workspace has none; the next workspace has its own.
    let of = |workspace: &str, flow: &str| NewRecord {
        workspace: workspace.into(),
        flow: flow.into(),
        ..record(Reason::Retry, "x")
    };
    store.has_room("w", "g", 1).await.unwrap().unwrap();
    assert!(store.keep(of("w", "g")).await.unwrap().full);
    let error = store.has_room("w", "g", 1).await.unwrap().unwrap_err();
    assert!(error.message.contains("of the workspace"), "{error}");
    assert!(!store.keep(of("v", "f")).await.unwrap().full);
    assert_eq!(store.full_rooms().await.unwrap(), ["w:f", "w"]);
    // Given another reason, a record counts as that; room that is made is there.
    let kept = store.list(of_flow()).await.unwrap();
    store
        .reclassify(kept[0].id, Reason::Dead, "x")
        .await
        .unwrap();
    store.forget(vec![kept[1].id, kept[2].id]).await.unwrap();
    assert_eq!(store.full_rooms().await.unwrap(), Vec::<String>::new());
    store.park("w", "f", more, Counts::default()).await.unwrap();
}

/// A file as the release before left it.
#[tokio::test]
async fn records_of_the_release_before_are_there_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("flow.sqlite");
    let old = Database::open(&file, &MIGRATIONS[..1], Durability::Process).unwrap();
    old.write(|tx| {
        for reason in ["retry", "parked", "dead"] {
            tx.execute(
                "INSERT INTO put_aside (workspace, flow, topic, subscription, reason, detail, due, attempt, since,
                 headers, content_type, body) VALUES ('w', 'f', 'flow:tg:x:w:f', 's', ?1, 'd', 10, 1, 1, '{}',
                 'application/json', x'0102')",
                [reason],
            )?;
        }
        Ok(())
    })
    .await
    .unwrap();
    drop(old);
    let quota = Quota {
        records: 2,
        bytes: 1000,
    };
    let quotas = Quotas {
        workspace: quota,
        flow: quota,
    };
    let store = Store::open(&file, Durability::Process, quotas).unwrap();
    assert_eq!(sizes(&store, of_flow()).await, [2, 2, 2]);
    let whole = store.whole("w", 2, None).await.unwrap().unwrap();
    assert_eq!(whole.record.body, [1, 2]);
    assert_eq!(store.full_rooms().await.unwrap(), ["w:f", "w"]);
    store.forget(vec![1, 2, 3]).await.unwrap();
    assert_eq!(store.full_rooms().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn records_are_listed_page_by_page_and_read_one_at_a_time() {
    let (_dir, store) = store(100, 1000);
    for body in ["1", "12", "123"] {
        store.keep(record(Reason::Dead, body)).await.unwrap();
    }
    let mut select = Select {
        limit: 2,
        ..of_flow()
    };
    assert_eq!(sizes(&store, select.clone()).await, [1, 2]);
    select.after = 2;
    assert_eq!(sizes(&store, select).await, [3]);
    let begun = store.whole("w", 3, Some(2)).await.unwrap().unwrap();
    assert_eq!((begun.record.body.as_slice(), begun.size), (&b"12"[..], 3));
    assert!(store.whole("v", 3, None).await.unwrap().is_none());
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
    assert_eq!((due[0].size, due[0].record.body.len()), (1, 0));
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
    store.purge("w", i64::MAX).await.unwrap();
    assert_eq!(store.workspaces().await.unwrap(), ["v"]);
}
