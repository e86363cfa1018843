//! What every adapter of [`ReplyLedger`] does. A new one is added by one line at the end.

use tg_collections::WorkspaceStore;
use tg_schemas::{WorkspaceKey, WorkspaceTombstone};

use super::sqlite::SqliteLedger;
use super::{CachedReply, ReplyLedger};

/// Bytes that a workspace may keep in these tests.
const MOST: u64 = 10_000;

/// What the suite needs of an adapter.
trait Adapter: ReplyLedger + WorkspaceStore {}

impl<S: ReplyLedger + WorkspaceStore> Adapter for S {}

fn kept(reply: &str) -> CachedReply {
    CachedReply {
        reply: reply.to_owned(),
        dropped: 1,
        model: "m".to_owned(),
        asked_at: "2031-02-03T04:05:06Z".to_owned(),
    }
}

async fn the_first_reply_stays_until_its_workspace_goes(ledger: &impl Adapter) {
    for (key, workspace, reply) in [("k", "a", "[1]"), ("k", "a", "[2]"), ("l", "b", "[3]")] {
        let kept = kept(reply);
        ledger
            .keep(key.into(), workspace.into(), kept)
            .await
            .unwrap();
    }
    let find = async |key: &str| ledger.find(key.to_owned()).await.unwrap();
    assert_eq!(find("k").await, Some(kept("[1]")));
    assert_eq!(find("none").await, None);
    assert_eq!(ledger.workspaces().await.unwrap(), ["a", "b"]);
    let proof = WorkspaceTombstone {
        generation: 0,
        deleted_at: 1,
        purge_after: 1,
    };
    let workspace = WorkspaceKey::new("a", 0);
    for _ in 0..2 {
        ledger.purge(&workspace, &proof).await.unwrap();
    }
    assert_eq!(ledger.workspaces().await.unwrap(), ["b"]);
    assert_eq!(find("k").await, None);
    assert_eq!(find("l").await, Some(kept("[3]")));
}

async fn a_workspace_that_keeps_much_loses_its_own_oldest_and_nobody_elses(ledger: &impl Adapter) {
    let find = async |key: &str| ledger.find(key.to_owned()).await.unwrap().is_some();
    let keep = async |key: &str, workspace: &str, bytes: usize| {
        let kept = kept(&"x".repeat(bytes));
        let stored = ledger.keep(key.into(), workspace.into(), kept);
        stored.await.unwrap();
    };
    keep("other", "b", 3_000).await;
    for key in ["1", "2", "3"] {
        keep(key, "a", 3_000).await;
    }
    assert!(find("1").await && find("2").await && find("3").await);
    // Again: nothing is added, and nothing goes.
    keep("3", "a", 3_000).await;
    assert!(find("1").await);
    keep("4", "a", 3_000).await;
    assert!(!find("1").await && find("2").await && find("4").await);
    // One that has no room beside others stays alone.
    keep("5", "a", 20_000).await;
    assert!(!find("4").await && find("5").await);
    keep("6", "a", 3_000).await;
    assert!(!find("5").await && find("6").await);
    assert!(find("other").await, "another workspace's");
}

async fn a_place_knows_one_version(ledger: &impl Adapter) {
    let told = async |version: &str| {
        let told = ledger
            .was_told("w".into(), "f/c".into(), version.into())
            .await;
        told.unwrap()
    };
    assert!(!told("1").await);
    for version in ["1", "2"] {
        ledger
            .tell("w".into(), "f/c".into(), version.into())
            .await
            .unwrap();
        assert!(told(version).await);
    }
    assert!(!told("1").await);
}

/// Holds an adapter to all of it.
macro_rules! conformance {
    ($adapter:ident, $make:expr) => {
        conformance!($adapter, $make;
            the_first_reply_stays_until_its_workspace_goes,
            a_workspace_that_keeps_much_loses_its_own_oldest_and_nobody_elses,
            a_place_knows_one_version);
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

conformance!(sqlite, SqliteLedger::in_memory(MOST).unwrap());
