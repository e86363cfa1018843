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

async fn sizes(store: &SqliteFlows) -> Vec<i64> {
    let select = Select {
        workspace: "w".into(),
        limit: 100,
        ..Select::default()
    };
    let kept = store.list(select).await.unwrap();
    kept.iter().map(|kept| kept.size).collect()
}
