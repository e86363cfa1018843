//! What every adapter of [`FlowStore`] does: epochs grow, nothing is dropped for room, and what a crashed stop parked is
//! not parked twice. A new one is added by one line at the end.

use super::*;
use crate::options::{Quota, Quotas};

/// Opens an adapter with so much room.
type Open = fn(Quotas) -> Store;

fn room(open: Open, records: u64, bytes: u64) -> Store {
    let quota = Quota { records, bytes };
    open(Quotas {
        workspace: Quota {
            records: records.saturating_add(2),
            ..quota
        },
        flow: quota,
    })
}

fn record(reason: Reason, body: &str) -> NewRecord {
    NewRecord {
        workspace: "w".into(),
        flow: "f".into(),
        topic: "flow:tg:x:w:f".into(),
        subscription: "s".into(),
        reason,
        detail: "why".into(),
        kind: String::new(),
        due: 10,
        attempt: 1,
        since: 100,
        headers: "{}".into(),
        content_type: "application/json".into(),
        body: body.as_bytes().to_vec(),
        letter: None,
    }
}

/// The workspace in its first generation.
fn w() -> WorkspaceKey {
    WorkspaceKey::new("w", 0)
}

fn of_flow() -> Select {
    Select {
        workspace: "w".into(),
        flow: Some("f".into()),
        limit: 100,
        ..Select::default()
    }
}

async fn epochs_only_grow(open: Open) {
    let store = room(open, 10, 1000);
    assert_eq!(store.next_epoch().await.unwrap(), 1);
    store.raise_epoch(7).await.unwrap();
    store.raise_epoch(3).await.unwrap();
    assert_eq!(store.next_epoch().await.unwrap(), 8);
}

fn refused<T: std::fmt::Debug>(outcome: Result<T, StorageError>) -> tg_schemas::Error {
    match outcome.unwrap_err() {
        StorageError::Refused(error) => error,
        other => panic!("{other}"),
    }
}

async fn sizes(store: &Store, select: Select) -> Vec<i64> {
    let kept = store.list(select).await.unwrap();
    kept.iter().map(|kept| kept.size).collect()
}

/// Also when what it brought was replayed or discarded meanwhile.
async fn a_dead_letter_that_comes_again_is_kept_once(open: Open) {
    let store = room(open, 10, 1000);
    let brought = |letter: &str| NewRecord {
        letter: Some(letter.into()),
        ..record(Reason::Dead, "12")
    };
    store.keep(brought("a")).await.unwrap();
    store.keep(brought("a")).await.unwrap();
    store.keep(brought("b")).await.unwrap();
    let kept = store.list(of_flow()).await.unwrap();
    assert_eq!(kept.len(), 2);
    store.forget(vec![kept[0].id]).await.unwrap();
    store.keep(brought("a")).await.unwrap();
    assert_eq!(sizes(&store, of_flow()).await, [2]);
}

async fn the_oldest_dead_letters_of_a_flow_go_for_newer_records(open: Open) {
    let store = room(open, 3, 10);
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

async fn retries_and_parked_records_never_go_and_fill_their_room_alone(open: Open) {
    let store = room(open, 2, 1000);
    store.keep(record(Reason::Retry, "a")).await.unwrap();
    assert_eq!(store.full_rooms(9).await.unwrap(), Vec::<String>::new());
    assert!(store.keep(record(Reason::Retry, "b")).await.unwrap().full);
    assert_eq!(store.full_rooms(9).await.unwrap(), ["w:f"]);
    // One that was on its way already is kept.
    store.keep(record(Reason::Parked, "c")).await.unwrap();
    store.keep(record(Reason::Dead, "d")).await.unwrap();
    assert_eq!(sizes(&store, of_flow()).await.len(), 4);
    let error = refused(store.has_room("w", "f", 1).await);
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
    store.has_room("w", "g", 1).await.unwrap();
    assert!(store.keep(of("w", "g")).await.unwrap().full);
    let error = refused(store.has_room("w", "g", 1).await);
    assert!(error.message.contains("of the workspace"), "{error}");
    assert!(!store.keep(of("v", "f")).await.unwrap().full);
    assert_eq!(store.full_rooms(9).await.unwrap(), ["w:f", "w"]);
    // Given another reason, a record counts as that; room that is made is there.
    let kept = store.list(of_flow()).await.unwrap();
    store
        .reclassify(kept[0].id, Reason::Dead, "x")
        .await
        .unwrap();
    store.forget(vec![kept[1].id, kept[2].id]).await.unwrap();
    assert_eq!(store.full_rooms(9).await.unwrap(), Vec::<String>::new());
    store.park("w", "f", more, Counts::default()).await.unwrap();
}

async fn records_are_listed_page_by_page_and_read_one_at_a_time(open: Open) {
    let store = room(open, 100, 1000);
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
    // An empty body is one, too.
    store.keep(record(Reason::Dead, "")).await.unwrap();
    for most in [None, Some(2)] {
        let empty = store.whole("w", 4, most).await.unwrap().unwrap();
        assert_eq!((empty.record.body.len(), empty.size), (0, 0));
    }
}

async fn due_retries_come_in_time_but_not_those_of_a_stopping_flow(open: Open) {
    let store = room(open, 10, 1000);
    store.keep(record(Reason::Retry, "a")).await.unwrap();
    store.keep(record(Reason::Dead, "b")).await.unwrap();
    let none: Vec<(String, String)> = Vec::new();
    let Due { records: due, next } = store.due(9, 10, none.clone()).await.unwrap();
    assert_eq!((due.len(), next), (0, Some(10)));
    let Due { records: due, next } = store.due(10, 10, none).await.unwrap();
    assert_eq!((due.len(), next), (1, None));
    assert_eq!((due[0].size, due[0].record.body.len()), (1, 0));
    let stopping = vec![
        ("w".to_owned(), "f".to_owned()),
        ("v".to_owned(), "f".to_owned()),
    ];
    let Due { records: due, next } = store.due(10, 10, stopping).await.unwrap();
    assert_eq!((due.len(), next), (0, None));
}

async fn a_stop_goes_on_where_it_was_and_parks_each_record_once(open: Open) {
    let store = room(open, 100, 1000);
    let (begun, resumed) = store.begin_stop(&w(), "f", 3, 50).await.unwrap();
    assert_eq!((begun.phase, resumed), (Phase::Drain, false));
    let mut counts = begun.counts;
    let two = vec![record(Reason::Parked, "a"), record(Reason::Parked, "a")];
    counts = store.park("w", "f", two, counts).await.unwrap();
    assert_eq!(counts.parked["s"], 2);

    // The process dies; only one of the two had been acknowledged.
    let (begun, resumed) = store.begin_stop(&w(), "f", 3, 60).await.unwrap();
    assert_eq!(
        (begun.phase, begun.started, resumed),
        (Phase::Park, 50, true)
    );
    store.doubt("w", "f").await.unwrap();
    let more = vec![record(Reason::Parked, "a"), record(Reason::Parked, "b")];
    store.park("w", "f", more, begun.counts).await.unwrap();

    // So does the next process, before it acknowledged either.
    let (begun, _) = store.begin_stop(&w(), "f", 3, 65).await.unwrap();
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
    let (begun, resumed) = store.begin_stop(&w(), "f", 4, 70).await.unwrap();
    assert_eq!(
        (begun.phase, begun.counts, resumed),
        (Phase::Drain, Counts::default(), false)
    );
    store.end_stop("w", "f").await.unwrap();
}

async fn what_is_taken_again_needs_no_more_room(open: Open) {
    let store = room(open, 2, 1000);
    let two = || vec![record(Reason::Parked, "a"), record(Reason::Parked, "b")];
    let (begun, _) = store.begin_stop(&w(), "f", 3, 50).await.unwrap();
    store.park("w", "f", two(), begun.counts).await.unwrap();
    let (begun, _) = store.begin_stop(&w(), "f", 3, 60).await.unwrap();
    store.doubt("w", "f").await.unwrap();
    let counts = store.park("w", "f", two(), begun.counts).await.unwrap();
    assert_eq!(counts.parked["s"], 2);
    let another = vec![record(Reason::Parked, "c")];
    assert!(store.park("w", "f", another, counts).await.is_err());
}

async fn retries_end_with_the_flow(open: Open) {
    let store = room(open, 100, 1000);
    store.begin_stop(&w(), "f", 1, 50).await.unwrap();
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
    let counts = store.counts("w", None, 9).await.unwrap();
    let row = |flow: &str, reason: &str, records| DeadLetterCount {
        flow: flow.into(),
        reason: reason.into(),
        content: false,
        records,
    };
    let of_one = store.counts("w", Some("g"), 9).await.unwrap();
    assert_eq!(of_one, [row("g", "retry", 1)]);
    assert_eq!(store.counts("w", None, 2).await.unwrap().len(), 2);
    let standing = store.standing(2).await.unwrap();
    let line = |flow: &str, reason, records, since| DeadLetterBacklog {
        workspace: "w".into(),
        flow: flow.into(),
        reason,
        records,
        since,
    };
    let most = line("f", Reason::Parked, 2, 10);
    assert_eq!(standing[0], most, "since the oldest came");
    assert_eq!(standing.len(), 2);
    assert_eq!(
        counts,
        [
            row("f", "dead", 1),
            row("f", "parked", 2),
            row("g", "retry", 1)
        ]
    );
}

async fn what_a_deleted_workspace_left_can_be_purged(open: Open) {
    let store = room(open, 100, 1000);
    store.keep(record(Reason::Parked, "a")).await.unwrap();
    let other = NewRecord {
        workspace: "v".into(),
        ..record(Reason::Parked, "b")
    };
    store.keep(other).await.unwrap();
    assert_eq!(store.workspaces("", 9).await.unwrap(), ["v", "w"]);
    assert_eq!(store.workspaces("", 1).await.unwrap(), ["v"]);
    assert_eq!(store.workspaces("v", 1).await.unwrap(), ["w"]);
    // What came after the deletion stays.
    store.purge("w", 99).await.unwrap();
    assert_eq!(store.workspaces("", 9).await.unwrap(), ["v", "w"]);
    for _ in 0..2 {
        store.purge("w", i64::MAX).await.unwrap();
        assert_eq!(store.workspaces("", 9).await.unwrap(), ["v"]);
    }
}

async fn generations_of_a_name_are_apart(open: Open) {
    let store = room(open, 2, 1000);
    let (old, new) = (WorkspaceKey::new("w", 5), WorkspaceKey::new("w", 6));
    let of = |key: &WorkspaceKey| NewRecord {
        workspace: key.to_string(),
        ..record(Reason::Retry, "a")
    };
    for _ in 0..2 {
        store.keep(of(&old)).await.unwrap();
    }
    assert_eq!(store.full_rooms(9).await.unwrap(), ["w#5:f"]);
    assert!(!store.keep(of(&new)).await.unwrap().full);
    let (begun, _) = store.begin_stop(&old, "f", 1, 50).await.unwrap();
    store
        .stop_at("w#5", "f", Phase::Park, &begun.counts)
        .await
        .unwrap();
    let (begun, resumed) = store.begin_stop(&new, "f", 2, 60).await.unwrap();
    assert_eq!((begun.phase, resumed), (Phase::Drain, false));
    store.purge("w#5", i64::MAX).await.unwrap();
    assert_eq!(store.workspaces("", 9).await.unwrap(), ["w#6"]);
    let (_, resumed) = store.begin_stop(&old, "f", 1, 70).await.unwrap();
    assert!(!resumed, "it went with the workspace");
    let (_, resumed) = store.begin_stop(&new, "f", 2, 80).await.unwrap();
    assert!(resumed);
    assert_eq!(store.counts("w#6", None, 9).await.unwrap().len(), 1);
}

async fn a_known_config_store_is_remembered(open: Open) {
    let store = room(open, 1, 1);
    assert_eq!(store.config_known().await.unwrap(), None);
    for version in [3, 5, 5] {
        let known = tg_storage::ConfigKnown {
            identity: "x".into(),
            version,
        };
        store.remember_config(known.clone()).await.unwrap();
        assert_eq!(store.config_known().await.unwrap(), Some(known));
    }
}

/// Every promise, kept by one adapter.
macro_rules! suite {
    ($adapter:ident, $open:expr) => {
        mod $adapter {
            use super::*;

            suite!(@ $open;
                epochs_only_grow,
                a_dead_letter_that_comes_again_is_kept_once,
                the_oldest_dead_letters_of_a_flow_go_for_newer_records,
                retries_and_parked_records_never_go_and_fill_their_room_alone,
                records_are_listed_page_by_page_and_read_one_at_a_time,
                due_retries_come_in_time_but_not_those_of_a_stopping_flow,
                a_stop_goes_on_where_it_was_and_parks_each_record_once,
                retries_end_with_the_flow,
                what_a_deleted_workspace_left_can_be_purged,
                generations_of_a_name_are_apart,
                what_is_taken_again_needs_no_more_room,
                a_known_config_store_is_remembered,
            );
        }
    };
    (@ $open:expr; $($promise:ident,)+) => {
        $(
            #[tokio::test]
            async fn $promise() {
                super::$promise(|quotas| Store::new(Arc::new($open(quotas).unwrap()))).await;
            }
        )+
    };
}

suite!(sqlite, SqliteFlows::in_memory);
