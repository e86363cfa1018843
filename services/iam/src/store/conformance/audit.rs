//! What every adapter of [`AuditStore`] does.

use serde_json::json;
use tg_clients::audit::{ALLOWED, CHANGE, READ, REFUSED, STRANGER, size};

use super::*;

const NOW: i64 = 1_800_000_000_000;
const DAY: i64 = 24 * 3600 * 1000;

fn entry(kind: &str, workspace: &str, actor: &str) -> AuditEntry {
    AuditEntry {
        time: NOW,
        until: NOW,
        count: 1,
        kind: kind.into(),
        workspace: workspace.into(),
        actor: actor.into(),
        credential: "key:k".into(),
        door: "rest".into(),
        address: "10.0.0.1".into(),
        operation: "config/put".into(),
        target_kind: "config".into(),
        target: "a/b".into(),
        reason: "none".into(),
        request_id: "r".into(),
        ..AuditEntry::default()
    }
}

/// One that takes some ten kibibytes.
fn large(kind: &str, workspace: &str, actor: &str, at: usize) -> AuditEntry {
    let changes = json!({"x": "x".repeat(10 << 10)});
    AuditEntry {
        changes: changes.as_object().cloned().unwrap(),
        target: at.to_string(),
        ..entry(kind, workspace, actor)
    }
}

fn batch(sequence: i64, entries: Vec<AuditEntry>) -> AuditBatch {
    AuditBatch {
        source: "s".into(),
        sequence,
        entries,
        ..AuditBatch::default()
    }
}

fn all() -> AuditWanted {
    AuditWanted {
        most: 10_000,
        ..AuditWanted::default()
    }
}

async fn listed(store: &Store, wanted: AuditWanted) -> Vec<AuditEntry> {
    store.page(&wanted).await.unwrap()
}

pub(super) async fn a_batch_is_kept_once_and_what_is_the_same_counts(store: Store) {
    let first = batch(
        1,
        vec![entry(ALLOWED, "acme", "u"), entry(READ, "acme", "u")],
    );
    for _ in 0..2 {
        store.keep(&first).await.unwrap();
    }
    let later = AuditEntry {
        until: NOW + 7,
        request_id: "later".into(),
        client_request_id: "theirs".into(),
        ..entry(READ, "acme", "u")
    };
    store.keep(&batch(2, vec![later])).await.unwrap();
    store.keep(&first).await.unwrap();
    let found = listed(&store, all()).await;
    let allowed = AuditEntry {
        id: found[0].id,
        ..entry(ALLOWED, "acme", "u")
    };
    let read = AuditEntry {
        id: found[1].id,
        until: NOW + 7,
        count: 2,
        request_id: "later".into(),
        client_request_id: "theirs".into(),
        ..entry(READ, "acme", "u")
    };
    assert_eq!(found, [allowed, read]);
    let next_minute = AuditEntry {
        time: NOW + 60_000,
        until: NOW + 60_000,
        ..entry(READ, "acme", "u")
    };
    store.keep(&batch(3, vec![next_minute])).await.unwrap();
    assert_eq!(listed(&store, all()).await.len(), 3);
}

pub(super) async fn a_count_beyond_all_counts_stays_readable(store: Store) {
    let many = AuditEntry {
        count: i64::MAX,
        ..entry(READ, "acme", "u")
    };
    for sequence in 1..4 {
        store
            .keep(&batch(
                sequence,
                vec![many.clone(), entry(REFUSED, "acme", "u")],
            ))
            .await
            .unwrap();
    }
    let found = listed(&store, all()).await;
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|one| one.count >= 3));
}

pub(super) async fn what_happened_is_found_by_what_it_is(store: Store) {
    let later = AuditEntry {
        time: NOW + 2 * DAY,
        until: NOW + 2 * DAY,
        ..entry(CHANGE, "other", "v")
    };
    let kept = vec![
        large(CHANGE, "acme", "u", 1),
        entry(REFUSED, "acme", "v"),
        later,
    ];
    store.keep(&batch(1, kept.clone())).await.unwrap();
    let found = listed(&store, all()).await;
    let ids: Vec<i64> = found.iter().map(|one| one.id).collect();
    assert!(ids.is_sorted() && ids[0] > 0);
    assert_eq!(found[0].changes, kept[0].changes);
    let some = |text: &str| Some(text.to_owned());
    for (wanted, expected) in [
        (
            AuditWanted {
                workspace: some("acme"),
                ..all()
            },
            &ids[..2],
        ),
        (
            AuditWanted {
                actor: some("v"),
                ..all()
            },
            &ids[1..],
        ),
        (
            AuditWanted {
                kind: some(CHANGE),
                actor: some("v"),
                ..all()
            },
            &ids[2..],
        ),
        (
            AuditWanted {
                since: Some(NOW + DAY),
                ..all()
            },
            &ids[2..],
        ),
        (
            AuditWanted {
                until: Some(NOW + DAY),
                ..all()
            },
            &ids[..2],
        ),
        (
            AuditWanted {
                since: Some(NOW),
                after: ids[0],
                ..all()
            },
            &ids[1..],
        ),
        (
            AuditWanted {
                most: 1,
                after: ids[0],
                ..all()
            },
            &ids[1..2],
        ),
        (
            AuditWanted {
                workspace: some("none"),
                ..all()
            },
            &[],
        ),
    ] {
        let shown = format!("{wanted:?}");
        let found = listed(&store, wanted).await;
        let found: Vec<i64> = found.iter().map(|one| one.id).collect();
        assert_eq!(found, expected, "{shown}");
    }
}

pub(super) async fn a_change_and_what_is_written_of_it_are_one(store: Store) {
    let event = [entry(CHANGE, "acme", "u")];
    let change = [Change::PutUser(user("one"))];
    store.commit(&change, false, &event).await.unwrap();
    assert_eq!(listed(&store, all()).await.len(), 1);
    let mut other = user("two");
    other.username = user("one").username;
    let refused = [Change::PutUser(other)];
    store.commit(&refused, false, &event).await.unwrap_err();
    assert_eq!(listed(&store, all()).await.len(), 1);
}

pub(super) async fn who_floods_makes_room_by_their_own(store: Store) {
    let mut entries = vec![
        entry(CHANGE, "acme", "u"),
        entry(STRANGER, "", ""),
        entry(REFUSED, "acme", "quiet"),
    ];
    entries.extend((0..150).map(|at| large(STRANGER, "", "", at)));
    entries.extend((0..150).map(|at| large(REFUSED, "", "loud", at)));
    store.keep(&batch(1, entries)).await.unwrap();
    let found = listed(&store, all()).await;
    let by = |kind: &str| found.iter().filter(|one| one.kind == kind).count();
    assert_eq!(by(CHANGE), 1);
    assert!((50..110).contains(&by(STRANGER)), "{}", by(STRANGER));
    let quiet = found.iter().filter(|one| one.actor == "quiet").count();
    assert_eq!(quiet, 1);
    assert!(by(REFUSED) < 110);
    assert!(
        found
            .iter()
            .any(|one| one.kind == STRANGER && one.target == "149")
    );
    let dropped = store.dropped(None).await.unwrap();
    let told: Vec<_> = dropped
        .iter()
        .map(|one| (one.kind.as_str(), one.count))
        .collect();
    let gone = |kind: &str, all: usize| (all - by(kind)) as i64;
    assert_eq!(
        told,
        [
            (REFUSED, gone(REFUSED, 151)),
            (STRANGER, gone(STRANGER, 151))
        ]
    );
    assert_eq!(dropped[0].until, NOW);
    // Changes of one workspace make room for its own.
    let changes = (0..150).map(|at| large(CHANGE, "loud", "u", at));
    store.keep(&batch(2, changes.collect())).await.unwrap();
    let acme = AuditWanted {
        workspace: Some("acme".into()),
        kind: Some(CHANGE.into()),
        ..all()
    };
    assert_eq!(listed(&store, acme).await.len(), 1);
    let of = async |workspace| {
        let dropped = store.dropped(Some(workspace)).await.unwrap();
        dropped
            .iter()
            .any(|one| one.kind == CHANGE && one.workspace == workspace)
    };
    assert!(of("loud").await && !of("acme").await);
}

pub(super) async fn who_does_much_pushes_out_no_other_keys(store: Store) {
    let by = |credential: &str, at: usize| AuditEntry {
        credential: credential.into(),
        request_id: at.to_string(),
        ..large(ALLOWED, "acme", "u", at)
    };
    let mut entries = vec![by("key:quiet", 0)];
    entries.extend((0..150).map(|at| by("key:loud", at)));
    entries.push(by("key:other", 0));
    store.keep(&batch(1, entries)).await.unwrap();
    let more = (150..300).map(|at| by("key:loud", at)).collect();
    store.keep(&batch(2, more)).await.unwrap();
    let found = listed(&store, all()).await;
    let of = |credential: &str| {
        found
            .iter()
            .filter(|one| one.credential == credential)
            .count()
    };
    assert_eq!((of("key:quiet"), of("key:other")), (1, 1));
    assert!((50..110).contains(&of("key:loud")), "{}", of("key:loud"));
    assert!(found.iter().any(|one| one.request_id == "299"));
    let dropped = store.dropped(Some("acme")).await.unwrap();
    assert_eq!(dropped[0].count, 300 - of("key:loud") as i64);
}

pub(super) async fn what_is_about_no_workspace_has_one_room(store: Store) {
    let mut kept = batch(1, Vec::new());
    for workspace in 0..30 {
        let name = format!("w{workspace}");
        kept.entries
            .extend((0..10).map(|at| large(READ, &name, "u", at)));
        kept.unknown.insert(name);
    }
    kept.entries.push(entry(READ, "acme", "u"));
    store.keep(&kept).await.unwrap();
    let found = listed(&store, all()).await;
    let bytes: usize = found.iter().map(size).sum();
    assert!(
        bytes <= AuditBounds::default().workspace as usize + size(&found[0]),
        "{bytes}"
    );
    assert!(found.iter().any(|one| one.workspace == "acme"));
    let last = found.iter().filter(|one| one.workspace == "w29");
    assert_eq!(last.count(), 10, "they are found by their name");
    let dropped = store.dropped(None).await.unwrap();
    assert_eq!((dropped.len(), dropped[0].workspace.as_str()), (1, ""));
}

pub(super) async fn all_of_it_has_a_bound(store: Store) {
    for workspace in 0..12 {
        let name = format!("w{workspace}");
        let entries = (0..90).map(|at| large(CHANGE, &name, "u", at));
        let kept = batch(workspace + 1, entries.collect());
        store.keep(&kept).await.unwrap();
    }
    let found = listed(&store, all()).await;
    let bytes: usize = found.iter().map(size).sum();
    let bound = AuditBounds::default().all as usize;
    assert!((bound / 2..=bound).contains(&bytes), "{bytes}");
    for workspace in 0..12 {
        let name = format!("w{workspace}");
        assert!(found.iter().any(|one| one.workspace == name), "{name}");
    }
}

pub(super) async fn what_is_too_old_goes(store: Store) {
    let bounds = AuditBounds::default();
    let at = |time: i64, kind: &str| AuditEntry {
        time,
        until: time,
        ..entry(kind, "acme", "u")
    };
    let entries = vec![
        at(NOW - (bounds.days + 1) * DAY, CHANGE),
        at(NOW - (bounds.days - 1) * DAY, CHANGE),
        at(NOW - (bounds.read_days + 1) * DAY, READ),
        at(NOW - (bounds.read_days - 1) * DAY, READ),
    ];
    store.keep(&batch(1, entries)).await.unwrap();
    for _ in 0..2 {
        assert!(!store.forget(NOW).await.unwrap());
        let found = listed(&store, all()).await;
        let kinds: Vec<&str> = found.iter().map(|one| one.kind.as_str()).collect();
        assert_eq!(kinds, [CHANGE, READ]);
    }
    assert!(store.dropped(None).await.unwrap().is_empty());
}
