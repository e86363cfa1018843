//! What is kept of streams, and for how long.

use serde_json::json;
use tg_testkit::chance::Chance;

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
    recorder_of(kept, "w", id)
}

fn recorder_of(kept: &Kept, workspace: &str, id: &str) -> Option<Recorder> {
    recorder_by(kept, ("ann", workspace), id)
}

fn recorder_by(kept: &Kept, (user, workspace): (&str, &str), id: &str) -> Option<Recorder> {
    let access = Access {
        user: user.into(),
        workspace: WorkspaceId::new(workspace).unwrap(),
        generation: 2,
        needs: (Gate::Authenticated, Resource::workspace(workspace)),
    };
    kept.record(id, access, CancellationToken::new())
}

fn follower(kept: &Kept, id: &str) -> Option<Follower> {
    kept.find(("ann", ""), id).map(|(_, follower)| follower)
}

/// Of each workspace, how many streams it has and what they take.
type Holdings = BTreeMap<Arc<str>, (usize, usize)>;

/// The running sums say the same as the streams do.
fn holdings(kept: &Kept) -> Holdings {
    let all = kept.all.lock();
    let mut by_owner = Holdings::new();
    for entry in all.entries.values() {
        let (streams, bytes) = by_owner.entry(entry.owner.clone()).or_default();
        *streams += 1;
        *bytes += entry.bytes;
    }
    for (owner, holds) in &by_owner {
        assert_eq!((all.places.of(owner), all.bytes.of(owner)), *holds);
    }
    let bytes: usize = by_owner.values().map(|(_, bytes)| bytes).sum();
    let sums = (all.places.all(), all.bytes.all());
    assert_eq!(sums, (all.entries.len(), bytes));
    by_owner
}

/// What all streams hold.
fn held(kept: &Kept) -> usize {
    holdings(kept).values().map(|(_, bytes)| bytes).sum()
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

#[tokio::test]
async fn a_user_who_fills_the_places_of_a_workspace_makes_room_for_the_others_there() {
    let kept = Kept::new();
    let id = |number: usize| format!("{number:04}");
    let mut all: Vec<_> = (0..OF_WORKSPACE)
        .map(|number| recorder(&kept, &id(number)).unwrap())
        .collect();
    for number in 0..OF_WORKSPACE / 2 {
        let one = recorder_by(&kept, ("bob", "w"), &format!("bob-{number:04}"));
        all.push(one.unwrap());
        assert!(follower(&kept, &id(number)).is_none(), "{number}");
        assert!(follower(&kept, &id(number + 1)).is_some(), "{number}");
    }
    // Both have their share.
    assert!(recorder_by(&kept, ("bob", "w"), "more").is_none());
    assert!(recorder(&kept, "more").is_none());
    assert_eq!(holdings(&kept)["w#2"].0, OF_WORKSPACE);
}

#[tokio::test]
async fn where_every_user_has_one_stream_another_one_takes_the_place_of_what_ended_first() {
    let kept = Kept::new();
    for number in 0..OF_WORKSPACE {
        let user = format!("u{number:04}");
        assert!(recorder_by(&kept, (&user, "w"), &user).is_some());
    }
    let _recorder = recorder(&kept, "late").unwrap();
    assert!(kept.find(("u0000", ""), "u0000").is_none());
    assert!(kept.find(("u0001", ""), "u0001").is_some());
}

#[tokio::test]
async fn the_user_of_a_workspace_who_holds_the_most_loses_parts_first() {
    let kept = Kept::new();
    let half = part(&"x".repeat(KEPT_STREAM / 2), false);
    let mut all = Vec::new();
    for number in 0..=KEPT_OF_WORKSPACE / (KEPT_STREAM / 2) {
        let mut recorder = recorder(&kept, &format!("{number:04}")).unwrap();
        recorder.add(&half);
        all.push(recorder);
    }
    let mut bobs = recorder_by(&kept, ("bob", "w"), "bobs").unwrap();
    bobs.add(&half);
    let (_, mut bobs) = kept.find(("bob", ""), "bobs").unwrap();
    let (first, parts) = bobs.more(0).await.unwrap().unwrap();
    assert_eq!((first, parts.len()), (0, 1));
    assert!(held(&kept) <= KEPT_OF_WORKSPACE);
}

/// So many workspaces fill all places, and have this share beside another one.
const FULL: usize = OF_ALL / OF_WORKSPACE;
const SHARE: usize = OF_ALL / (FULL + 1);

/// The streams of workspaces that fill all places: all are over, or all are in progress.
fn filled(kept: &Kept, are_over: bool) -> Vec<Recorder> {
    let mut in_progress = Vec::new();
    for number in 0..OF_ALL {
        let workspace = format!("w{}", number % FULL);
        let recorder = recorder_of(kept, &workspace, &format!("{number:04}")).unwrap();
        if !are_over {
            in_progress.push(recorder);
        }
    }
    in_progress
}

#[tokio::test]
async fn workspaces_that_fill_all_places_make_room_for_another_up_to_its_share() {
    for are_over in [true, false] {
        let kept = Kept::new();
        let _in_progress = filled(&kept, are_over);
        let mut own = Vec::new();
        for number in 0..SHARE {
            own.extend(recorder_of(&kept, "late", &format!("late-{number:04}")));
        }
        let mut before = holdings(&kept);
        assert_eq!(
            before.remove("late#2").map(|(streams, _)| streams),
            Some(SHARE)
        );
        for (owner, (streams, _)) in &before {
            assert!(*streams >= SHARE, "{owner}: {streams}");
            // It lost the oldest of its own.
            let all = kept.all.lock();
            let (first, _) = all.of_owner(owner).next().unwrap();
            let first: usize = first.parse().unwrap();
            assert_eq!(first / FULL, OF_WORKSPACE - streams, "{owner}");
        }
        // Beyond its share the other one takes the places of its own streams that are over.
        assert!(recorder_of(&kept, "late", "more").is_none());
        drop(own.remove(0));
        assert!(recorder_of(&kept, "late", "more").is_some());
        assert!(follower(&kept, "late-0000").is_none());
        let mut after = holdings(&kept);
        after.remove("late#2");
        assert_eq!(after, before);
    }
}

#[tokio::test]
async fn the_workspace_that_holds_the_most_loses_its_parts_first() {
    let kept = Kept::new();
    let mebibytes = |count: usize| part(&"x".repeat(count << 20), false);
    let mut small = recorder_of(&kept, "small", "small").unwrap();
    small.add(&mebibytes(4));
    let mut large = Vec::new();
    for number in 0..8 {
        for workspace in ["a", "b"] {
            let id = format!("{workspace}{number}");
            let mut recorder = recorder_of(&kept, workspace, &id).unwrap();
            for _ in 0..8 {
                recorder.add(&mebibytes(1));
            }
            large.push(recorder);
        }
    }
    let before = holdings(&kept)["small#2"].1;
    assert!(held(&kept) > KEPT_STREAMS - (2 << 20), "it is full");
    for _ in 0..8 {
        small.add(&mebibytes(1));
    }
    let after = holdings(&kept)["small#2"].1;
    assert!(held(&kept) <= KEPT_STREAMS);
    assert!(after > 2 * before, "{after}, {before} before");
    let mut small = follower(&kept, "small").unwrap();
    assert_eq!(small.more(0).await.unwrap().unwrap().0, 0);
}

/// Whatever happens in which order. Some workspaces take more than others.
#[tokio::test]
async fn a_workspace_within_its_share_never_loses_a_stream_to_another_one() {
    let mut chance = Chance::of_this_run();
    let some = Arc::new(part("some", false));
    for adds in [false, true] {
        let kept = Kept::new();
        let mut recorders: Vec<(Arc<str>, Recorder)> = Vec::new();
        let mut before = Holdings::new();
        for number in 0..3_000 {
            let workspace = format!("w{}", chance.below(14).min(chance.below(14)));
            let taker: Arc<str> = format!("{workspace}#2").into();
            let own = recorders.iter().rposition(|(owner, _)| *owner == taker);
            match (chance.below(10), own) {
                (0..=1, Some(own)) => drop(recorders.swap_remove(own)),
                (2..=4, Some(own)) if adds => {
                    let size = 1 + chance.below(KEPT_STREAM);
                    let id = &recorders[own].1.id;
                    kept.all.lock().add(id, (some.clone(), size));
                }
                _ => {
                    let recorder = recorder_of(&kept, &workspace, &format!("{number:04}"));
                    recorders.extend(recorder.map(|recorder| (taker.clone(), recorder)));
                }
            }
            let after = holdings(&kept);
            let streams: usize = after.values().map(|(streams, _)| streams).sum();
            assert!(streams <= OF_ALL && held(&kept) <= KEPT_STREAMS);
            // The shares beside whoever took something.
            before.entry(taker.clone()).or_default();
            let of_bytes = before
                .iter()
                .filter(|(owner, (_, bytes))| **owner == taker || *bytes > 0);
            let share = KEPT_STREAMS / of_bytes.count();
            for (owner, (streams, bytes)) in &before {
                let is_beyond = *streams > OF_ALL / before.len() || *bytes > share;
                let is_same = after.get(owner) == Some(&(*streams, *bytes));
                assert!(
                    *owner == taker || is_same || is_beyond,
                    "{owner} lost to {taker}: {before:?}, then {after:?}"
                );
            }
            before = after;
        }
        assert!(
            adds || kept.all.lock().entries.len() == OF_ALL,
            "it is full"
        );
    }
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
