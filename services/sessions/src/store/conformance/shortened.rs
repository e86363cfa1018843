//! The suite of shortened sessions, settings of workspaces, facts about users.

use std::collections::BTreeMap;

use tg_schemas::operations::CompactStrategy;

use super::{answer, asked, new, span, sqlite, texts, turn};
use crate::store::{
    Answer, FactStore, LineageStore, MemoryRow, Message, SessionStore, SettingStore, Shortening,
    SummaryKind, SummaryRow,
};

pub(super) fn shortening(of: &str, to: &str, first_kept: i64) -> Shortening {
    Shortening {
        summary: SummaryRow {
            id: format!("y-{of}"),
            session: of.to_owned(),
            successor: Some(to.to_owned()),
            kind: SummaryKind::Lineage,
            tier: "full".to_owned(),
            text: "short".to_owned(),
            model: "m".to_owned(),
            prompt: "p".to_owned(),
            mask: true,
            first: 1,
            last: first_kept - 1,
            count: first_kept - 1,
            before: 9,
            after: 0,
            trigger: "manual".to_owned(),
            request: "r".to_owned(),
            at: 2_000,
        },
        opening: "sum: short".to_owned(),
        first_kept,
        ids: (0..10).map(|at| format!("{to}-{at}")).collect(),
    }
}

async fn line_021_a_shortened_session_goes_on_in_another_and_can_be_restored(
    store: impl LineageStore + SessionStore,
) {
    store.create("w", new("1", "ann", 10)).await.unwrap();
    for request in ["q1", "q2"] {
        turn(&store, "1", request, request).await;
    }
    let next = store.shorten("w", shortening("1", "2", 3)).await.unwrap();
    let next = next.unwrap();
    assert_eq!(
        (next.messages, next.live, next.parent.as_deref()),
        (3, 3, Some("1"))
    );
    assert_eq!((next.strategy, next.keep), (CompactStrategy::Manual, 3));
    assert_eq!(texts(&store, "2").await, ["sum: short", "q2", "re q2"]);
    let source = store.session("w", "1").await.unwrap().unwrap();
    assert_eq!((source.live, source.characters), (2, 7));
    assert_eq!((source.said_bytes, next.said_bytes), (7, next.characters));
    assert_eq!(
        (source.archived, source.successor.as_deref()),
        (Some(2_000), Some("2"))
    );
    let again = store.shorten("w", shortening("1", "3", 3)).await.unwrap();
    assert_eq!(again, None);
    let all = store.summaries("w", "1").await.unwrap();
    assert_eq!((all.len(), all[0].after), (1, next.characters / 4));
    let begun = store.begun("w", "1", "q1").await.unwrap().unwrap();
    assert_eq!(begun.turn, 1);
    assert_eq!(begun.finished.unwrap().message.content, "re q1");
    for (session, request) in [("2", "q1"), ("1", "q9"), ("9", "q1")] {
        let none = store.begun("w", session, request).await.unwrap();
        assert_eq!(none, None);
    }
    let back = store.restore("w", "1", "u1").await.unwrap().unwrap();
    assert_eq!((back.live, back.characters, back.archived), (4, 14, None));
    assert_eq!(back.said_bytes, 14);
    assert_eq!(store.session("w", "2").await.unwrap(), None);
    assert!(store.summaries("w", "1").await.unwrap().is_empty());
    // The request that did it finds it done, another one finds nothing to take back.
    let again = store.restore("w", "1", "u1").await.unwrap();
    assert_eq!(again, Some(back));
    assert_eq!(store.restore("w", "1", "u2").await.unwrap(), None);
    // Once it is shortened again, the first request takes that back as well.
    let next = store.shorten("w", shortening("1", "2", 3)).await.unwrap();
    assert!(next.is_some() && !store.is_done("w", "u1", "1").await.unwrap());
    let back = store.restore("w", "1", "u1").await.unwrap();
    assert_eq!(back.map(|back| back.archived), Some(None));
    // One with a turn of its own stays.
    store
        .shorten("w", shortening("1", "2", 5))
        .await
        .unwrap()
        .unwrap();
    turn(&store, "2", "q3", "q3").await;
    assert_eq!(store.restore("w", "1", "u3").await.unwrap(), None);
    store.delete("w", "2", "d").await.unwrap();
    let source = store.session("w", "1").await.unwrap().unwrap();
    assert_eq!((source.archived.is_some(), source.successor), (true, None));
    assert_eq!(store.summaries("w", "1").await.unwrap()[0].successor, None);
}

async fn line_084_a_summary_in_place_leaves_its_session_as_it_is(
    store: impl LineageStore + SessionStore,
) {
    store.create("w", new("1", "ann", 10)).await.unwrap();
    turn(&store, "1", "q1", "one").await;
    let row = SummaryRow {
        successor: None,
        kind: SummaryKind::InPlace,
        tier: "hard_clear".to_owned(),
        ..shortening("1", "2", 3).summary
    };
    assert!(store.summed_up("w", row.clone()).await.unwrap());
    assert_eq!(
        store.summaries("w", "1").await.unwrap(),
        std::slice::from_ref(&row)
    );
    let later = SummaryRow {
        id: "later".to_owned(),
        last: 9,
        ..row.clone()
    };
    let lineage = SummaryRow {
        id: "lineage".to_owned(),
        kind: SummaryKind::Lineage,
        tier: "full".to_owned(),
        last: 10,
        ..row.clone()
    };
    assert_eq!(store.newest_in_place("w", "2").await.unwrap(), None);
    for one in [later.clone(), lineage] {
        assert!(store.summed_up("w", one).await.unwrap());
    }
    let newest = store.newest_in_place("w", "1").await.unwrap();
    assert_eq!(newest, Some(later));
    assert_eq!(texts(&store, "1").await.len(), 2);
    let session = store.session("w", "1").await.unwrap().unwrap();
    assert_eq!((session.live, session.archived), (2, None));
    let nowhere = SummaryRow {
        id: "y".to_owned(),
        session: "9".to_owned(),
        ..row
    };
    assert!(!store.summed_up("w", nowhere).await.unwrap());
}

async fn summaries_in_place_are_listed_and_the_newest_one_is_taken_back(
    store: impl LineageStore + SessionStore,
) {
    store.create("w", new("1", "ann", 10)).await.unwrap();
    let row = |id: &str, last: i64| SummaryRow {
        id: id.to_owned(),
        successor: None,
        kind: SummaryKind::InPlace,
        last,
        at: 2_000 + last,
        ..shortening("1", "2", 3).summary
    };
    let lineage = SummaryRow {
        id: "lineage".to_owned(),
        ..shortening("1", "2", 9).summary
    };
    for one in [row("a", 2), row("b", 4), row("c", 6), lineage] {
        assert!(store.summed_up("w", one).await.unwrap());
    }
    let ids = async |after, most| {
        let all = store.in_place("w", "1", after, most).await.unwrap();
        all.into_iter().map(|one| one.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(0, 10).await, ["a", "b", "c"]);
    assert_eq!(ids(2, 1).await, ["b"]);
    let one = store.one_in_place("w", "1", "b").await.unwrap();
    assert_eq!(one, Some(row("b", 4)));
    for (session, id) in [("1", "lineage"), ("2", "b"), ("1", "x")] {
        assert_eq!(store.one_in_place("w", session, id).await.unwrap(), None);
    }
    assert!(store.take_back("w", "1", "t1").await.unwrap());
    // The request that did it finds it done.
    assert!(store.take_back("w", "1", "t1").await.unwrap());
    assert_eq!(ids(0, 10).await, ["a", "b"]);
    for request in ["t2", "t3"] {
        assert!(store.take_back("w", "1", request).await.unwrap());
    }
    assert!(!store.take_back("w", "1", "t4").await.unwrap());
    assert!(!store.take_back("x", "1", "t5").await.unwrap());
    assert_eq!(store.summaries("w", "1").await.unwrap().len(), 1);
}

async fn a_session_is_taken_in_once_with_its_messages(store: impl LineageStore + SessionStore) {
    store.create("w", new("1", "ann", 10)).await.unwrap();
    turn(&store, "1", "q1", "one").await;
    let told = store.messages("w", "1", span(0, false, 10)).await;
    let told = told.unwrap().items;
    let copies = |told: &[Message]| {
        let copy = |one: &Message| Message {
            id: format!("copy-{}", one.id),
            ..one.clone()
        };
        told.iter().map(copy).collect::<Vec<_>>()
    };
    let made = store
        .import("w", new("2", "eve", 20), copies(&told))
        .await
        .unwrap();
    assert_eq!((made.messages, made.live, made.characters), (2, 2, 9));
    assert_eq!(texts(&store, "2").await, ["one", "re one"]);
    let again = store
        .import("w", new("2", "eve", 20), copies(&told))
        .await
        .unwrap();
    assert_eq!(again, made);
    // A turn goes on after them.
    assert_eq!(turn(&store, "2", "q2", "two").await, 3);
}

async fn settings_and_a_session_are_read_together(store: impl SettingStore + SessionStore) {
    let nothing = store.settings_and_session("w", "1").await.unwrap();
    assert_eq!(nothing, (BTreeMap::new(), None));
    store.create("w", new("1", "ann", 10)).await.unwrap();
    let set = [("k".to_owned(), Some("1".to_owned()))].into();
    store.set("w", set, 5).await.unwrap();
    turn(&store, "1", "q1", "one").await;
    let (settings, session) = store.settings_and_session("w", "1").await.unwrap();
    assert_eq!(settings, store.settings("w").await.unwrap());
    assert_eq!(settings["k"], "1");
    assert_eq!(session, store.session("w", "1").await.unwrap());
    assert_eq!(session.map(|one| one.messages), Some(2));
    let (settings, session) = store.settings_and_session("w", "2").await.unwrap();
    assert_eq!((settings["k"].as_str(), session), ("1", None));
    let elsewhere = store.settings_and_session("x", "1").await.unwrap();
    assert_eq!(elsewhere, (BTreeMap::new(), None));
}

async fn settings_and_facts_stay_with_their_workspace_and_user(
    store: impl SettingStore + FactStore,
) {
    let set = |value: Option<&str>| [("k".to_owned(), value.map(str::to_owned))].into();
    store.set("w", set(Some("1")), 5).await.unwrap();
    store.set("w", set(Some("2")), 6).await.unwrap();
    assert_eq!(store.settings("w").await.unwrap()["k"], "2");
    assert!(store.settings("x").await.unwrap().is_empty());
    store.set("w", set(None), 7).await.unwrap();
    assert!(store.settings("w").await.unwrap().is_empty());
    let fact = |id: &str, user: &str, object: &str| MemoryRow {
        id: id.to_owned(),
        user: user.to_owned(),
        subject: "s".to_owned(),
        predicate: "p".to_owned(),
        object: object.to_owned(),
        agent: "a".to_owned(),
        session: "1".to_owned(),
        message: "m".to_owned(),
        at: 5,
    };
    let facts = vec![
        fact("1", "ann", "x"),
        fact("2", "ann", "x"),
        fact("3", "ann", "y"),
    ];
    let remember = async |facts| {
        let kept = store.remember("w", ("1", 1), facts, 2);
        kept.await.unwrap();
    };
    remember(facts).await;
    remember(vec![fact("4", "bob", "x")]).await;
    let ids = async |user: &str, after| {
        let all = store.memories("w", user, after, 10).await.unwrap();
        all.into_iter()
            .map(|one| (one.id, one.at))
            .collect::<Vec<_>>()
    };
    let anns = ids("ann", i64::MIN).await;
    assert_eq!(
        anns.iter().map(|one| one.0.as_str()).collect::<Vec<_>>(),
        ["1", "3"]
    );
    assert_eq!(ids("ann", anns[0].1).await, [anns[1].clone()]);
    remember(vec![fact("5", "ann", "z")]).await;
    assert_eq!(ids("ann", i64::MIN).await.len(), 2);
    assert!(!store.forget("w", "bob", "5", "f1").await.unwrap());
    assert!(store.forget("w", "ann", "5", "f2").await.unwrap());
    assert!(store.forget("w", "ann", "5", "f2").await.unwrap());
    assert!(!store.forget("w", "ann", "5", "f3").await.unwrap());
    assert!(
        store
            .memories("x", "ann", i64::MIN, 10)
            .await
            .unwrap()
            .is_empty()
    );
    // Of a workspace that was purged meanwhile nothing is kept.
    let kept = store.remember("z", ("1", 1), vec![fact("6", "ann", "x")], 2);
    kept.await.unwrap();
    let none = store.memories("z", "ann", i64::MIN, 10).await.unwrap();
    assert!(none.is_empty());
}

async fn a_message_is_to_be_searched_until_it_was(
    store: impl SessionStore + LineageStore + FactStore,
) {
    let left = async |session: &str| {
        let left = store.unsearched("w", session, 10).await.unwrap();
        left.into_iter()
            .map(|one| (one.session, one.seq, one.content, one.failed))
            .collect::<Vec<_>>()
    };
    let one = |seq: i64, text: &str, failed: i64| ("1".to_owned(), seq, text.to_owned(), failed);
    // Of nobody's message facts are not kept.
    for (id, user) in [("1", "ann"), ("3", "")] {
        store.create("w", new(id, user, 10)).await.unwrap();
        for text in ["one", "two"] {
            let request = format!("{id}-{text}");
            let began = store.begin("w", id, asked(&request, text)).await;
            let answer = Answer {
                to_search: true,
                ..answer(&format!("a-{request}"), "re")
            };
            let turn = began.unwrap().unwrap().turn;
            for _ in 0..2 {
                let done = store.finish("w", id, turn, answer.clone()).await;
                assert!(done.unwrap().is_some());
            }
        }
    }
    assert!(left("3").await.is_empty() && left("9").await.is_empty());
    assert_eq!(left("1").await, [one(1, "one", 0), one(3, "two", 0)]);
    let few = store.unsearched("w", "1", 1).await.unwrap();
    assert_eq!((few.len(), few[0].id.as_str()), (1, "u-1-one"));
    // A message that fails each time is given up, and holds up no other.
    for failed in 1..3 {
        let noted = store.search_failed("w", ("1", 1), 3).await;
        noted.unwrap();
        assert_eq!(left("1").await[0], one(1, "one", failed));
    }
    store.search_failed("w", ("1", 1), 3).await.unwrap();
    assert_eq!(left("1").await, [one(3, "two", 0)]);
    // The session that continues it goes on with them.
    let next = store.shorten("w", shortening("1", "2", 4)).await;
    assert!(next.unwrap().is_some());
    assert_eq!(left("2").await, [one(3, "two", 0)]);
    // Also where nothing was found.
    let kept = store.remember("w", ("1", 3), Vec::new(), 10);
    kept.await.unwrap();
    assert!(left("2").await.is_empty());
}

conformance!(in_sqlite, sqlite;
    a_message_is_to_be_searched_until_it_was,
    line_021_a_shortened_session_goes_on_in_another_and_can_be_restored,
    line_084_a_summary_in_place_leaves_its_session_as_it_is,
    summaries_in_place_are_listed_and_the_newest_one_is_taken_back,
    a_session_is_taken_in_once_with_its_messages,
    settings_and_a_session_are_read_together,
    settings_and_facts_stay_with_their_workspace_and_user);
