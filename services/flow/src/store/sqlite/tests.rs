//! Files of releases before.

use super::*;
use crate::options::Quota;
use crate::store::{RecordStore, Select};

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
    let store = SqliteFlows::open(&file, Durability::Process, quotas).unwrap();
    assert_eq!(sizes(&store).await, [2, 2, 2]);
    let whole = store.whole("w", 2, None).await.unwrap().unwrap();
    assert_eq!(whole.record.body, [1, 2]);
    assert_eq!(store.full_rooms(9).await.unwrap(), ["w:f", "w"]);
    store.forget(vec![1, 2, 3]).await.unwrap();
    assert_eq!(store.full_rooms(9).await.unwrap(), Vec::<String>::new());
}

/// Rows of the release before have plain names: records go to the generation that their headers say, a stop to that in
/// which it is asked for again.
#[tokio::test]
async fn rows_of_the_release_before_get_the_generation_of_their_workspace() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("flow.sqlite");
    let old = Database::open(&file, &MIGRATIONS[..3], Durability::Process).unwrap();
    old.write(|tx| {
        for headers in [r#"{"generation":7}"#, r#"{"generation":0}"#, "{}", "no JSON"] {
            tx.execute(
                "INSERT INTO put_aside (workspace, flow, topic, subscription, reason, detail, due, attempt, since,
                 headers, content_type, body) VALUES ('w', 'f', 'flow:tg:x:w:f', 's', 'parked', 'd', 10, 1, 1, ?1,
                 'application/json', x'01')",
                [headers],
            )?;
        }
        let stop = "INSERT INTO stop VALUES ('w', 'f', 3, 'park', 50, '{}')";
        tx.execute(stop, [])?;
        Ok(())
    })
    .await
    .unwrap();
    drop(old);
    let quota = Quota {
        records: 1,
        bytes: 1000,
    };
    let quotas = Quotas {
        workspace: quota,
        flow: quota,
    };
    let store = SqliteFlows::open(&file, Durability::Process, quotas).unwrap();
    let of = async |workspace: &str| {
        let counts = store.counts(workspace, None, 9).await.unwrap();
        counts.iter().map(|one| one.records).sum::<u64>()
    };
    assert_eq!((of("w").await, of("w#7").await), (3, 1));
    let full = store.full_rooms(9).await.unwrap();
    assert_eq!(full, ["w#7:f", "w:f", "w", "w#7"]);
    let (now, other) = (WorkspaceKey::new("w", 7), WorkspaceKey::new("w", 8));
    let (_, resumed) = store.begin_stop(&other, "f", 4, 60).await.unwrap();
    assert!(!resumed);
    let (begun, resumed) = store.begin_stop(&now, "f", 3, 60).await.unwrap();
    assert_eq!(
        (begun.phase, begun.started, resumed),
        (Phase::Park, 50, true)
    );
    store
        .stop_at("w#7", "f", Phase::Remove, &begun.counts)
        .await
        .unwrap();
    let (begun, resumed) = store.begin_stop(&now, "f", 3, 70).await.unwrap();
    assert_eq!((begun.phase, resumed), (Phase::Remove, true));
}

async fn sizes(store: &SqliteFlows) -> Vec<i64> {
    let select = Select {
        workspace: "w".into(),
        limit: 100,
        ..Select::default()
    };
    let kept = store.list(select).await.unwrap();
    kept.iter().map(|kept| kept.size).collect()
}
