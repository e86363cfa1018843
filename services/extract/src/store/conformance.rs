//! What every adapter of [`ReplyLedger`] does. A new one is added by one line at the end.

use tg_collections::WorkspaceStore;
use tg_schemas::{WorkspaceKey, WorkspaceTombstone};

use super::sqlite::SqliteLedger;
use super::{CachedReply, Origin, Quarantine, ReplyLedger, Which};
use crate::engine::ontology::Rejected;

/// Bytes that a workspace may keep in these tests.
const MOST: u64 = 10_000;

/// What the suite needs of an adapter.
trait Adapter: ReplyLedger + Quarantine + WorkspaceStore {}

impl<S: ReplyLedger + Quarantine + WorkspaceStore> Adapter for S {}

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

/// What a reply said in vain about a chunk.
async fn reject(ledger: &impl Adapter, workspace: &str, chunk: &str, said: &[&str]) {
    let origin = Origin {
        flow: "f".to_owned(),
        collection: "c".to_owned(),
        chunk: chunk.to_owned(),
        model: "m".to_owned(),
        ..Origin::default()
    };
    let rejected = said.iter().map(|said| Rejected {
        statement: (*said).to_owned(),
        reason: "why".to_owned(),
    });
    let rejected = ledger.reject(workspace.to_owned(), origin, rejected.collect());
    rejected.await.unwrap();
}

async fn said(ledger: &impl Adapter, workspace: &str) -> Vec<String> {
    let kept = ledger.rejected(workspace.to_owned(), Which::default(), 0, 100);
    let kept = kept.await.unwrap().into_iter();
    kept.map(|one| one.rejected.statement).collect()
}

async fn what_a_chunk_said_in_vain_is_what_it_said_last(ledger: &impl Adapter) {
    reject(ledger, "a", "1", &["x", "y"]).await;
    reject(ledger, "a", "2", &["z"]).await;
    reject(ledger, "b", "1", &["other"]).await;
    assert_eq!(said(ledger, "a").await, ["x", "y", "z"]);
    reject(ledger, "a", "1", &["y"]).await;
    assert_eq!(said(ledger, "a").await, ["z", "y"]);
    reject(ledger, "a", "2", &[]).await;
    assert_eq!(said(ledger, "a").await, ["y"]);
    let all = ledger.rejected("a".into(), Which::default(), 0, 100);
    let one = all.await.unwrap().remove(0);
    assert_eq!(
        (one.origin.chunk.as_str(), one.origin.model.as_str()),
        ("1", "m")
    );
    let after = ledger.rejected("a".into(), Which::default(), one.number, 100);
    assert_eq!(after.await.unwrap(), []);
    let still = ledger.still("a".into(), one.number, "other".into());
    still.await.unwrap();
    let which = Which {
        flow: "f".into(),
        ..Which::default()
    };
    let all = ledger.rejected("a".into(), which, 0, 100).await.unwrap();
    assert_eq!(all[0].rejected.reason, "other");
    assert!(!ledger.forget("b".into(), one.number).await.unwrap());
    assert!(ledger.forget("a".into(), one.number).await.unwrap());
    assert_eq!(said(ledger, "a").await, [""; 0]);
    let which = Which {
        collection: "none".into(),
        ..Which::default()
    };
    assert_eq!(ledger.forget_all("b".into(), which).await.unwrap(), 0);
    let gone = ledger.forget_all("b".into(), Which::default());
    assert_eq!(gone.await.unwrap(), 1);
}

async fn a_workspace_keeps_so_many_statements_and_says_how_many_went(ledger: &impl Adapter) {
    reject(ledger, "b", "1", &["other"]).await;
    for chunk in ["1", "2", "3"] {
        reject(ledger, "a", chunk, &["x", "y"]).await;
    }
    // Five are kept; the sixth made the first go.
    assert_eq!(said(ledger, "a").await, ["y", "x", "y", "x", "y"]);
    let large = "x".repeat(3_000);
    reject(ledger, "a", "4", &[&large]).await;
    assert_eq!(
        said(ledger, "a").await.len(),
        4,
        "two more went, one of them for its bytes"
    );
    let longest = "x".repeat(70 << 10);
    reject(ledger, "a", "5", &[&longest]).await;
    assert_eq!(ledger.dropped("a".into()).await.unwrap(), 4);
    assert_eq!(said(ledger, "b").await, ["other"]);
    assert_eq!(ledger.dropped("b".into()).await.unwrap(), 0);
    assert_eq!(ledger.workspaces().await.unwrap(), ["a", "b"]);
    let proof = WorkspaceTombstone {
        generation: 0,
        deleted_at: 1,
        purge_after: 1,
    };
    let workspace = WorkspaceKey::new("a", 0);
    ledger.purge(&workspace, &proof).await.unwrap();
    assert_eq!(ledger.workspaces().await.unwrap(), ["b"]);
}

/// Holds an adapter to all of it.
macro_rules! conformance {
    ($adapter:ident, $make:expr) => {
        conformance!($adapter, $make;
            the_first_reply_stays_until_its_workspace_goes,
            a_workspace_that_keeps_much_loses_its_own_oldest_and_nobody_elses,
            a_place_knows_one_version,
            what_a_chunk_said_in_vain_is_what_it_said_last,
            a_workspace_keeps_so_many_statements_and_says_how_many_went);
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

conformance!(
    sqlite,
    SqliteLedger::in_memory(MOST).unwrap().keeping(5, 4_300)
);
