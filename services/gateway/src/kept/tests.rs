//! What is kept of streams, and for how long.

use serde_json::json;

use super::*;
use crate::engine::translate::Body;

fn part(text: &str, last: bool) -> Part {
    Part::Body {
        body: Body::from_iter([("text".to_owned(), json!(text))]).into(),
        last,
        failed: false,
    }
}

fn recorder(kept: &Kept, id: &str) -> Option<Recorder> {
    let access = Access {
        user: "ann".into(),
        workspace: WorkspaceId::new("w").unwrap(),
        generation: 2,
        needs: (Gate::Authenticated, Resource::workspace("w")),
    };
    kept.record(id, access, CancellationToken::new())
}

fn follower(kept: &Kept, id: &str) -> Option<Follower> {
    kept.find(("ann", ""), id).map(|(_, follower)| follower)
}

/// What all streams hold: the running sums say the same as the streams do.
fn held(kept: &Kept) -> usize {
    let all = kept.all.lock();
    let held: usize = all.entries.values().map(|entry| entry.bytes).sum();
    let owners: usize = all.held.by_owner.values().sum();
    assert_eq!((all.held.all, owners), (held, held));
    held
}

#[tokio::test]
async fn a_stream_is_read_from_any_part_on_while_it_grows_and_when_it_is_over() {
    let kept = Kept::new();
    let mut recorder = recorder(&kept, "r").unwrap();
    let mut follower = follower(&kept, "r").unwrap();
    recorder.add(&part("a", false));
    let (first, some) = follower.more(0).await.unwrap().unwrap();
    assert_eq!((first, &*some[0]), (0, &part("a", false)));
    let more = tokio::spawn(async move { follower.more(1).await });
    tokio::task::yield_now().await;
    recorder.add(&part("b", true));
    let (first, some) = more.await.unwrap().unwrap().unwrap();
    assert_eq!((first, some.len(), &*some[0]), (1, 1, &part("b", true)));
    drop(recorder);
    let (_, mut again) = kept.find(("", "w#2"), "r").unwrap();
    assert_eq!(again.more(0).await.unwrap().unwrap().1.len(), 2);
    assert_eq!(again.more(2).await, Ok(None));
    assert!(kept.find(("bob", ""), "r").is_none());
    assert!(kept.find(("ann", "w"), "r").is_none());
    assert_eq!(kept.cancel(("ann", ""), "r"), Some(true));
}

#[tokio::test]
async fn whoever_stops_recording_ends_the_stream_with_an_error() {
    let kept = Kept::new();
    drop(recorder(&kept, "lost"));
    let recorder = recorder(&kept, "cancelled");
    assert_eq!(kept.cancel(("ann", ""), "cancelled"), Some(false));
    drop(recorder);
    for (id, code) in [
        ("lost", ErrorCode::Interrupted),
        ("cancelled", ErrorCode::Cancelled),
    ] {
        let mut follower = follower(&kept, id).unwrap();
        let (_, parts) = follower.more(0).await.unwrap().unwrap();
        match &*parts[0] {
            Part::Error(error) => assert_eq!(error.code(), code),
            other => panic!("{other:?}"),
        }
        assert_eq!(follower.more(1).await, Ok(None));
    }
}

#[tokio::test]
async fn of_a_long_stream_the_first_parts_go() {
    let kept = Kept::new();
    let mut recorder = recorder(&kept, "r").unwrap();
    let long = "x".repeat(KEPT_STREAM / 4);
    for _ in 0..6 {
        recorder.add(&part(&long, false));
    }
    let mut follower = follower(&kept, "r").unwrap();
    let (first, some) = follower.more(0).await.unwrap().unwrap();
    assert_eq!((first, some.len()), (3, 3));
    assert!(held(&kept) > 0);
    recorder.add(&part(&long.repeat(5), true));
    assert_eq!(follower.more(3).await, Ok(Some((7, Vec::new()))));
    assert_eq!(follower.more(7).await, Ok(None));
    assert_eq!(held(&kept), 0);
}

#[tokio::test]
async fn what_is_over_makes_room_and_what_is_not_stays() {
    let kept = Kept::new();
    let id = |number: usize| format!("{number:04}");
    let mut all: Vec<_> = (0..OF_WORKSPACE)
        .map(|number| recorder(&kept, &id(number)).unwrap())
        .collect();
    assert!(recorder(&kept, "more").is_none());
    drop(all.remove(7));
    assert!(recorder(&kept, "more").is_some());
    assert!(follower(&kept, &id(7)).is_none());
    // As do their bytes.
    all[0].add(&part(&"x".repeat(KEPT_STREAM / 2), false));
    for recorder in &mut all[1..12] {
        recorder.add(&part(&"x".repeat(KEPT_STREAM / 2), false));
    }
    assert!((1..=KEPT_OF_WORKSPACE).contains(&held(&kept)));
    let mut first = follower(&kept, &id(0)).unwrap();
    assert_eq!(first.more(0).await.unwrap().unwrap().0, 0);
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_kept_for_an_hour_after_its_end() {
    let kept = Kept::new();
    let mut recorder = recorder(&kept, "r").unwrap();
    tokio::time::advance(2 * KEPT_FOR).await;
    recorder.add(&part("a", true));
    tokio::time::advance(KEPT_FOR / 2).await;
    let mut late = follower(&kept, "r").unwrap();
    tokio::time::advance(KEPT_FOR).await;
    assert!(held(&kept) > 0);
    assert!(follower(&kept, "r").is_none());
    assert!(late.more(0).await.is_err());
    assert_eq!(held(&kept), 0);
}

#[test]
fn a_name_says_which_gateway_keeps_the_stream() {
    let (kept, other) = (Kept::new(), Kept::new());
    let name = kept.name("r");
    assert_eq!(kept.named(&name), Named::Here("r"));
    let elsewhere = Named::Elsewhere {
        id: "r",
        mark: kept.mark(),
    };
    assert_eq!(other.named(&name), elsewhere);
    // What is not a mark never becomes a part of a topic.
    for name in [
        "r",
        "r.g1234567",
        "r.g1234567:",
        "r.g1234567*",
        "r.h12345678",
    ] {
        assert_eq!(kept.named(name), Named::Unmarked(name));
    }
    assert!(kept.knows(&name) && other.knows(&name) && !kept.knows("r"));
    let _recorder = recorder(&kept, "r");
    assert!(kept.knows("r"));
}
