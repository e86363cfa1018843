//! Who sees which request, and in which order.

use super::*;

/// A counter that all ids of a process share would leave half of these bits as they are within a millisecond.
#[test]
fn ids_of_one_millisecond_differ_in_all_their_random_bits() {
    let all = Detached::new(1);
    let ann = Identity::plain("ann", "w");
    let id = || {
        let noted = all.note(&ann, Shown::default(), CancellationToken::new());
        let id = Uuid::parse_str(noted.id()).unwrap();
        assert_eq!(id.get_version_num(), 7);
        id.as_u128()
    };
    let first = id();
    let differ = (0..64).fold(0, |differ, _| differ | (first ^ id()));
    // Version and variant are fixed; the time is above them.
    let random = (0xfff_u128 << 64) | (u128::MAX >> 66);
    assert_eq!(differ & random, random);
}

#[test]
fn a_request_counts_and_is_its_users_alone() {
    let all = Detached::new(1);
    let ann = Identity::plain("ann", "w");
    let token = CancellationToken::new();
    let about = Shown {
        service: "agent",
        ..Shown::default()
    };
    let listed = all.enter(&ann, about, token.clone()).ok().unwrap();
    let another = all.enter(&ann, Shown::default(), CancellationToken::new());
    assert!(another.is_err());
    let listed_of = |user: &str| {
        let all = all.all_of(user, Vec::new());
        list("requests", Asked::default(), all).unwrap()["requests"].clone()
    };
    assert_eq!(listed_of("ann")[0]["service"], "agent");
    assert_eq!(listed_of("bob"), json!([]));
    assert!(!all.cancel("bob", listed.id()) && !token.is_cancelled());
    assert!(all.cancel("ann", listed.id()) && token.is_cancelled());
    assert!(!all.is_of_others("ann", listed.id()), "the agent's");
    drop(listed);
    assert_eq!(listed_of("ann"), json!([]));
    assert!(
        all.enter(&ann, Shown::default(), CancellationToken::new())
            .is_ok()
    );
}

#[test]
fn the_agent_is_not_asked_about_requests_of_others() {
    let all = Detached::new(1);
    let ann = Identity::plain("ann", "w");
    let about = Shown {
        service: "graph-rag",
        ..Shown::default()
    };
    let listed = all.enter(&ann, about, CancellationToken::new());
    let id = listed.as_ref().ok().unwrap().id().to_owned();
    assert!(all.is_of_others("ann", &id));
    assert!(!all.is_of_others("bob", &id) && !all.is_of_others("ann", "other"));
}

#[test]
fn a_run_that_the_agent_knows_too_counts_once() {
    let all = Detached::new(2);
    let (ann, about) = (Identity::plain("ann", "w"), Shown::default());
    let listed = all.enter(&ann, about, CancellationToken::new());
    let run = |id: &str| DetachedRun {
        id: id.to_owned(),
        flow: "f".to_owned(),
        ..DetachedRun::default()
    };
    let id = listed.as_ref().ok().unwrap().id().to_owned();
    let rows = all.all_of("ann", vec![run(&id), run("elsewhere")]);
    assert_eq!(rows.len(), 2);
    assert_eq!(
        (&rows["elsewhere"]["service"], &rows["elsewhere"]["flow"]),
        (&json!("agent"), &json!("f"))
    );
    assert_eq!(rows["elsewhere"].get("request-id"), None);
}

#[test]
fn requests_are_listed_in_pages_by_their_ids() {
    let all = Detached::new(9);
    let ann = Identity::plain("ann", "w");
    let enter = |name: &str| {
        let about = Shown {
            request_id: name.into(),
            ..Shown::default()
        };
        all.enter(&ann, about, CancellationToken::new())
            .ok()
            .unwrap()
    };
    let page = |limit: i64, after: &str| {
        let asked = Asked::read("list-requests", limit, after).unwrap();
        let page = list("requests", asked, all.all_of("ann", Vec::new())).unwrap();
        let names = page["requests"].as_array().unwrap().iter();
        let names: Vec<_> = names.map(|row| row["request-id"].clone()).collect();
        let next = page
            .get("next")
            .map(|next| next.as_str().unwrap().to_owned());
        (names, next)
    };
    let listed: Vec<_> = ["c", "a", "b"].map(enter).into();
    // Those of one millisecond come in any order, and always in the same one.
    let ids = listed.iter().map(Listed::id);
    let by_id: BTreeMap<_, _> = ids.zip(["c", "a", "b"]).collect();
    let ordered: Vec<_> = by_id.into_values().collect();
    let (names, next) = page(2, "");
    assert_eq!(names, ordered[..2]);
    assert_eq!(page(2, &next.unwrap()), (vec![json!(ordered[2])], None));
    assert_eq!(page(0, "").0, ordered);
    drop(listed);
}
