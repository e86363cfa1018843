//! What recorded runs heard of the outside.

use super::*;

fn noted(run: &str, name: Option<&str>, text: &str) -> Noted {
    Noted {
        run: run.into(),
        step: 1,
        name: name.map(str::to_owned),
        text: text.into(),
    }
}

fn added(root: &str, entries: &[Noted]) -> Added {
    Added {
        root: root.into(),
        workspace: "ws#3".into(),
        entries: entries.to_vec(),
        most: 10,
        keep: 16,
    }
}

async fn keep(ledger: &Store, root: &str, entries: &[Noted], now_ms: i64) -> bool {
    let added = added(root, entries);
    let kept = ledger.keep_record(&of(root), added, now_ms).await;
    kept.unwrap()
}

async fn texts(ledger: &Store, root: &str) -> Option<Vec<String>> {
    let record = ledger.record(root).await.unwrap()?;
    let texts = record.entries.into_iter().map(|entry| entry.text);
    (!record.grown).then(|| texts.collect())
}

pub(super) async fn a_record_is_kept_in_order_and_what_has_a_name_once(ledger: Store) {
    assert_eq!(ledger.record("r").await.unwrap(), None);
    let first = noted("r", Some(Noted::FIRST), "a");
    assert!(!keep(&ledger, "r", &[noted("r", None, "x")], 1).await);
    assert!(keep(&ledger, "r", &[first.clone(), noted("s", None, "b")], 1).await);
    assert!(keep(&ledger, "r", &[first, noted("r", None, "b")], 1).await);
    assert_eq!(texts(&ledger, "r").await.unwrap(), ["a", "b", "b"]);
    // With it stands what the ledger knows of the steps of the run and of its subagents.
    ledger
        .begin(asked("ws#3", "subagent/r/7", "t"), began("s"), 1)
        .await
        .unwrap();
    ledger
        .decide(&of("s"), 2, &decision("x"), &[], 1)
        .await
        .unwrap();
    let seen = Observation {
        duration_ms: 5,
        ..Observation::failed("x")
    };
    ledger
        .observe(&of("s"), 2, &seen, Told::default(), &[], 1)
        .await
        .unwrap();
    let found = Finding {
        subagent: 7,
        text: "f".into(),
        ..Finding::default()
    };
    ledger.found(&of("r"), &found, 1).await.unwrap();
    let record = ledger.record("r").await.unwrap().unwrap();
    let known = record.steps[&("s".to_owned(), 2)].clone();
    assert!(known.decided && known.ending.is_none());
    assert_eq!(known.took_ms, Some(5));
    assert_eq!(record.findings["r"], [found]);
    let subagent = &record.subagents[&("r".to_owned(), 7)];
    assert_eq!(*subagent, ("s".to_owned(), "t".to_owned()));
}

pub(super) async fn a_record_that_grows_too_large_is_not_kept(ledger: Store) {
    let first = noted("r", Some(Noted::FIRST), "12345");
    assert!(keep(&ledger, "r", std::slice::from_ref(&first), 1).await);
    assert!(!keep(&ledger, "r", &[noted("r", None, "123456")], 1).await);
    let record = ledger.record("r").await.unwrap().unwrap();
    assert!(record.grown && record.entries.is_empty());
    assert!(!keep(&ledger, "r", &[first], 1).await, "for good");
}

pub(super) async fn records_of_a_workspace_are_bounded_and_go_with_it(ledger: Store) {
    for (n, root) in ["r0", "r1", "r2"].iter().enumerate() {
        let begun = ledger.begin(asked("ws#3", root, "t"), began(root), 1);
        begun.await.unwrap();
        let first = noted(root, Some(Noted::FIRST), "1234567");
        assert!(keep(&ledger, root, &[first], n as i64).await);
    }
    let kept = async |root: &str| texts(&ledger, root).await.is_some();
    assert!(!kept("r0").await && kept("r1").await && kept("r2").await);
    // The one that had to go does not begin again in the middle.
    assert!(!keep(&ledger, "r0", &[noted("r0", None, "1")], 9).await);
    let other = Added {
        workspace: "other".into(),
        ..added("o", &[noted("o", Some(Noted::FIRST), "1234567")])
    };
    assert!(ledger.keep_record(&of("o"), other, 9).await.unwrap());
    assert!(kept("r1").await && kept("o").await);
    let over = RunKey {
        run: "e".into(),
        is_over: IsOver::when(|| true),
    };
    let late = added("e", &[noted("e", Some(Noted::FIRST), "1")]);
    assert!(!ledger.keep_record(&over, late, 9).await.unwrap());
    while ledger.purge_some("ws#3").await.unwrap() {}
    assert!(!kept("r1").await && kept("o").await);
    while ledger.forget(KEEP_MS + 10).await.unwrap() {}
    assert!(!kept("o").await);
}
