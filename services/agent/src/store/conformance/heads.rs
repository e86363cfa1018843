//! Ends of traces, and the signed heads over them.

use super::*;

pub(super) async fn ends_of_a_day_stand_in_their_order(ledger: Store) {
    let finish = async |workspace: &str, day: &str, run: &str, hash: &str| {
        let end = end(workspace, day, run, hash);
        ledger
            .finish_run(&of(run), 1, &end, Told::default(), 1)
            .await
            .unwrap();
    };
    let listed = async |workspace: &str, day: &str, after: i64, most: usize| {
        let some = ledger.ended(workspace, day, after, most).await.unwrap();
        let runs = some
            .into_iter()
            .map(|end| format!("{}={}", end.run, end.hash));
        runs.collect::<Vec<_>>()
    };
    for run in ["b", "a", "c"] {
        finish("ws", "d1", run, "h").await;
    }
    // The first end stands, on whatever day it is said again; one without a hash is none.
    finish("ws", "d1", "a", "other").await;
    finish("ws", "d2", "a", "other").await;
    finish("ws", "d1", "bare", "").await;
    finish("ws#1", "d1", "x", "h").await;
    ledger
        .finish_run(
            &of_ended("late"),
            1,
            &end("ws", "d1", "late", "h"),
            Told::default(),
            1,
        )
        .await
        .unwrap();
    assert_eq!(listed("ws", "d1", 0, 9).await, ["b=h", "a=h", "c=h"]);
    assert_eq!(listed("ws", "d1", 1, 1).await, ["a=h"]);
    assert!(listed("ws", "d2", 0, 9).await.is_empty());
    while ledger.purge_some("ws").await.unwrap() {}
    assert!(listed("ws", "d1", 0, 9).await.is_empty());
    assert_eq!(ledger.workspaces().await.unwrap(), ["ws#1"]);
    assert_eq!(listed("ws#1", "d1", 0, 9).await, ["x=h"]);
}

pub(super) async fn heads_follow_one_another_and_the_key_stays(ledger: Store) {
    let head = |number: i64, day: &str| SignedHead {
        number,
        day: day.into(),
        text: format!("{number}"),
        signature: "s".into(),
    };
    let keep = async |number: i64, day: &str| {
        let never = IsOver::when(|| false);
        let head = head(number, day);
        ledger.keep_head("ws", &never, &head).await.unwrap()
    };
    assert_eq!(
        ledger.heads("ws", "d1").await.unwrap(),
        LastHeads::default()
    );
    assert!(keep(1, "d1").await);
    assert!(!keep(1, "d2").await, "another was quicker");
    assert!(keep(2, "d2").await);
    let known = LastHeads {
        last: Some(head(2, "d2")),
        of_day: Some(head(1, "d1")),
    };
    assert_eq!(ledger.heads("ws", "d1").await.unwrap(), known);
    let over = IsOver::when(|| true);
    assert!(!ledger.keep_head("ws", &over, &head(3, "d1")).await.unwrap());
    assert_eq!(ledger.workspaces().await.unwrap(), ["ws"]);
    while ledger.purge_some("ws").await.unwrap() {}
    assert_eq!(
        ledger.heads("ws", "d1").await.unwrap(),
        LastHeads::default()
    );
    for key in [b"one", b"two"] {
        assert_eq!(ledger.head_key(key.to_vec()).await.unwrap(), b"one");
    }
    let rotate = async |old: &[u8], verifies: &str, new: &[u8]| {
        let rotated = ledger.rotate_head_key(old.to_vec(), verifies.into(), new.to_vec());
        rotated.await.unwrap()
    };
    assert!(rotate(b"one", "1", b"two").await);
    assert!(!rotate(b"one", "1", b"three").await, "it signs no more");
    assert!(rotate(b"two", "2", b"three").await);
    assert_eq!(ledger.head_key(b"x".to_vec()).await.unwrap(), b"three");
    let before = async || {
        let keys = ledger.head_keys_before().await.unwrap().into_iter();
        let keys = keys.map(|key| format!("{} {}", key.pem, key.revoked_from));
        keys.collect::<Vec<_>>()
    };
    assert_eq!(before().await, ["2 ", "1 "]);
    let revoke = async |pem: &str, from: &str| {
        let revoked = ledger.revoke_head_key(pem.into(), from.into());
        revoked.await.unwrap()
    };
    assert!(!revoke("3", "2026-01-01T00:00:00Z").await);
    for from in ["2026-02", "2026-01", "2026-03"] {
        assert!(revoke("1", from).await);
    }
    assert_eq!(before().await, ["2 ", "1 2026-01"]);
}
