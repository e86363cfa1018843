//! What every adapter of [`LedgerStore`] does: one run for a question, one decision for a step. A new one is added by
//! one line at the end.

use std::sync::Arc;

use super::sqlite::SqliteLedger;
use super::*;
use crate::engine::decision::{Taken, Usage};

type Store = Arc<dyn LedgerStore>;

fn decision(text: &str) -> Decision {
    Decision {
        thought: vec!["hm".into(), String::new()],
        answer: Vec::new(),
        taken: Taken::Answer { text: text.into() },
        usage: Usage::default(),
        candidates: vec!["a".into()],
        citations: Vec::new(),
        refused: false,
    }
}

fn began(run: &str) -> Began {
    Began {
        run: run.into(),
        started_at: "t".into(),
    }
}

fn asked(workspace: &str, key: &str, text: &str) -> Asked {
    Asked {
        workspace: workspace.into(),
        is_over: IsOver::when(|| false),
        key: key.into(),
        text: text.into(),
        detached: None,
    }
}

fn detached(user: &str, question: &str, deadline_ms: i64) -> Asked {
    let caller = Caller {
        user: user.into(),
        question: question.into(),
        flow: "f".into(),
        request: "x".into(),
        deadline_ms,
    };
    Asked {
        detached: Some(caller),
        ..asked("ws#3", &format!("key of {question}"), "t")
    }
}

fn of(run: &str) -> RunKey {
    RunKey {
        run: run.into(),
        is_over: IsOver::when(|| false),
    }
}

/// The same where its workspace was deleted.
fn of_ended(run: &str) -> RunKey {
    RunKey {
        is_over: IsOver::when(|| true),
        ..of(run)
    }
}

/// The end of a run's trace.
fn end(workspace: &str, day: &str, run: &str, hash: &str) -> RunEnd {
    RunEnd {
        workspace: workspace.into(),
        day: day.into(),
        ended: Ended {
            run: run.into(),
            collection: "c".into(),
            hash: hash.into(),
        },
    }
}

async fn ends_of_a_day_stand_in_their_order(ledger: Store) {
    let finish = async |workspace: &str, day: &str, run: &str, hash: &str| {
        let end = end(workspace, day, run, hash);
        ledger.finish_run(&of(run), 1, &end, 1).await.unwrap();
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
        .finish_run(&of_ended("late"), 1, &end("ws", "d1", "late", "h"), 1)
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

async fn heads_follow_one_another_and_the_key_stays(ledger: Store) {
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
}

async fn a_question_begins_one_run(ledger: Store) {
    let begin =
        |text: &str, run: &str| ledger.begin(asked("ws", "ws/f/inbox/q", text), began(run), 1);
    for run in ["r1", "r2"] {
        assert_eq!(begin("why", run).await.unwrap(), Some(began("r1")));
    }
    assert!(ledger.is_open("ws/f/inbox/q".into()).await.unwrap());
    assert!(!ledger.is_open("other".into()).await.unwrap());
    ledger
        .decide(&of("r1"), 1, &decision("x"), 1)
        .await
        .unwrap();
    ledger.finish_step("r1", 1).await.unwrap();
    assert!(ledger.is_open("ws/f/inbox/q".into()).await.unwrap());
    for _ in 0..2 {
        ledger
            .finish_run(&of("r1"), 1, &end("ws", "", "r1", ""), 1)
            .await
            .unwrap();
    }
    assert!(!ledger.is_open("ws/f/inbox/q".into()).await.unwrap());
    assert_eq!(
        begin("how", "r3").await.unwrap(),
        Some(began("r3")),
        "another question under the same id"
    );
}

async fn the_first_decision_stands(ledger: Store) {
    ledger
        .decide(&of("r"), 1, &decision("one"), 1)
        .await
        .unwrap();
    ledger
        .decide(&of("r"), 1, &decision("two"), 2)
        .await
        .unwrap();
    let row = ledger.load("r".into(), 1).await.unwrap();
    assert_eq!(row.decision, Some(decision("one")));
    assert!(!row.later && !row.done);
    ledger
        .observe("r", 1, &Observation::failed("x"))
        .await
        .unwrap();
    ledger
        .decide(&of("r"), 2, &decision("end"), 3)
        .await
        .unwrap();
    assert!(ledger.load("r".into(), 1).await.unwrap().later);
    let last = ledger.load("r".into(), 2).await.unwrap();
    assert!(!last.later && !last.done);
    ledger.finish_step("r", 2).await.unwrap();
    assert!(ledger.load("r".into(), 2).await.unwrap().done);
}

async fn an_ending_needs_no_decision(ledger: Store) {
    let ending = Ending::from_error(&tg_schemas::Error::new(
        tg_schemas::ErrorCode::Cancelled,
        "cancelled",
    ));
    ledger.end(&of("r"), 3, &ending, 1).await.unwrap();
    let row = ledger.load("r".into(), 3).await.unwrap();
    assert_eq!(row.ending, Some(ending));
    assert_eq!(row.decision, None);
}

async fn old_rows_go(ledger: Store) {
    ledger
        .decide(&of("old"), 1, &decision("x"), 1)
        .await
        .unwrap();
    let now = (KEEP_MS / PURGE_EVERY + 2) * PURGE_EVERY;
    let begun = ledger.begin(asked("ws", "q", "t"), began("new"), now);
    begun.await.unwrap();
    assert_eq!(
        ledger.load("old".into(), 1).await.unwrap(),
        StepRow::default()
    );
}

async fn pieces_are_heard_as_far_as_they_were_passed_on(ledger: Store) {
    let piece = |kind, text: &str| Piece {
        kind,
        text: text.into(),
    };
    let said = vec![
        piece(PieceKind::Thought, "a"),
        piece(PieceKind::ThoughtEnd, "b"),
        piece(PieceKind::Answer, "c"),
    ];
    for _ in 0..2 {
        ledger.say(&of("r"), 1, 4, said.clone(), 1).await.unwrap();
    }
    let heard = |from, until| ledger.heard("r", 1, from, until);
    assert_eq!(heard(4, 7).await.unwrap(), Some(said.clone()));
    assert_eq!(heard(5, 7).await.unwrap(), Some(said[1..].to_vec()));
    assert_eq!(heard(4, 8).await.unwrap(), None, "one more is not known");
    // What comes after what was passed on is forgotten.
    assert_eq!(heard(4, 6).await.unwrap(), Some(said[..2].to_vec()));
    assert_eq!(heard(4, 7).await.unwrap(), None);
    assert_eq!(heard(4, 4).await.unwrap(), Some(Vec::new()));
    ledger.say(&of("r"), 1, 4, said, 1).await.unwrap();
    ledger.decide(&of("r"), 1, &decision("x"), 1).await.unwrap();
    assert_eq!(heard(4, 7).await.unwrap(), None, "it is decided");
}

async fn the_first_observation_of_a_decided_step_stands(ledger: Store) {
    let observe = async |text: &str| {
        let seen = Observation::failed(text);
        ledger.observe("r", 1, &seen).await.unwrap();
    };
    observe("early").await;
    assert_eq!(
        ledger.load("r".into(), 1).await.unwrap(),
        StepRow::default()
    );
    ledger.decide(&of("r"), 1, &decision("x"), 1).await.unwrap();
    observe("one").await;
    observe("two").await;
    let row = ledger.load("r".into(), 1).await.unwrap();
    assert_eq!(row.observation, Some(Observation::failed("one")));
}

async fn detached_runs_of_a_user_are_listed_until_they_end_or_are_cancelled(ledger: Store) {
    for (n, (user, deadline)) in [("ann", 9), ("ann", 9), ("bob", 9), ("ann", 5)]
        .iter()
        .enumerate()
    {
        let asked = detached(user, &format!("q{n}"), *deadline);
        let begun = ledger.begin(asked, began(&format!("r{n}")), 1).await;
        begun.unwrap();
    }
    // One whose caller waits is none.
    let waits = ledger.begin(asked("ws", "k", "t"), began("r9"), 1);
    waits.await.unwrap();
    let listed = async |user: &str, after: &str, most: usize, now: i64| {
        let runs = ledger.detached(user, after, most, now).await.unwrap();
        let ids = runs.iter().map(|run| run.id.clone());
        ids.collect::<Vec<_>>()
    };
    let all = ledger.detached("ann", "", 9, 1).await.unwrap();
    let row = DetachedRun {
        id: "q0".into(),
        workspace: "ws".into(),
        flow: "f".into(),
        request_id: "x".into(),
        started_ms: 1,
    };
    assert_eq!((all.len(), &all[0]), (3, &row));
    assert_eq!(listed("ann", "", 2, 1).await, ["q0", "q1"]);
    assert_eq!(listed("ann", "q1", 2, 1).await, ["q3"]);
    // Its deadline has passed.
    assert_eq!(listed("ann", "", 9, 5).await, ["q0", "q1"]);
    ledger
        .decide(&of("r0"), 1, &decision("x"), 1)
        .await
        .unwrap();
    assert_eq!(listed("ann", "", 9, 5).await, ["q0", "q1"]);
    let end = end("ws#3", "d", "r0", "h");
    ledger.finish_run(&of("r0"), 1, &end, 1).await.unwrap();
    assert_eq!(listed("ann", "", 9, 5).await, ["q1"]);
    // Of its own user only, and once.
    for (user, question, done) in [
        ("bob", "q1", false),
        ("ann", "q0", false),
        ("ann", "q1", true),
        ("ann", "q1", false),
    ] {
        assert_eq!(
            ledger.cancel(user, question, 5).await.unwrap(),
            done,
            "{user} {question}"
        );
    }
    assert!(listed("ann", "", 9, 5).await.is_empty());
    let cancelled = ["r0", "r1", "r2"].map(|run| ledger.is_cancelled(run));
    let cancelled = futures::future::join_all(cancelled).await;
    let cancelled: Vec<_> = cancelled.into_iter().map(Result::unwrap).collect();
    assert_eq!(cancelled, [false, true, false]);
    while ledger.purge_some("ws#3").await.unwrap() {}
    assert!(listed("bob", "", 9, 1).await.is_empty());
}

async fn nothing_is_written_of_a_workspace_that_has_ended(ledger: Store) {
    let late = Asked {
        is_over: IsOver::when(|| true),
        ..asked("ws", "q", "t")
    };
    assert_eq!(
        ledger.begin(late.clone(), began("r"), 1).await.unwrap(),
        None
    );
    assert!(ledger.workspaces().await.unwrap().is_empty());
    // A run that was under way when its workspace was purged.
    ledger
        .begin(asked("ws", "q", "t"), began("r"), 1)
        .await
        .unwrap();
    ledger.decide(&of("r"), 1, &decision("x"), 1).await.unwrap();
    while ledger.purge_some("ws").await.unwrap() {}
    let run = of_ended("r");
    let piece = Piece {
        kind: PieceKind::Answer,
        text: "said".into(),
    };
    let ending = Ending::from_error(&tg_schemas::Error::new(
        tg_schemas::ErrorCode::Cancelled,
        "cancelled",
    ));
    assert!(!ledger.decide(&run, 2, &decision("x"), 1).await.unwrap());
    assert!(!ledger.end(&run, 3, &ending, 1).await.unwrap());
    assert!(!ledger.say(&run, 4, 0, vec![piece], 1).await.unwrap());
    for step in 1..4 {
        let row = ledger.load("r".into(), step).await.unwrap();
        assert_eq!(row, StepRow::default(), "{step}");
    }
    assert_eq!(ledger.heard("r", 4, 0, 1).await.unwrap(), None);
}

async fn a_workspace_is_purged_whole_and_alone(ledger: Store) {
    // More runs than are purged at once, in one generation of a name; one in the next.
    let named =
        |workspace: &str, n: usize| (format!("{workspace}/{n}"), format!("{workspace} {n}"));
    for (workspace, count) in [("ws", 600), ("ws#1", 1)] {
        for n in 0..count {
            let (key, run) = named(workspace, n);
            let begun = ledger.begin(asked(workspace, &key, "t"), began(&run), 1);
            begun.await.unwrap();
            ledger
                .decide(&of(&run), 1, &decision("x"), 1)
                .await
                .unwrap();
            let piece = Piece {
                kind: PieceKind::Answer,
                text: "said".into(),
            };
            ledger.say(&of(&run), 2, 0, vec![piece], 1).await.unwrap();
        }
    }
    let mut known = ledger.workspaces().await.unwrap();
    known.sort();
    assert_eq!(known, ["ws", "ws#1"]);
    while ledger.purge_some("ws").await.unwrap() {}
    assert_eq!(ledger.workspaces().await.unwrap(), ["ws#1"]);
    for (workspace, n, left) in [("ws", 0, false), ("ws", 599, false), ("ws#1", 0, true)] {
        let (key, run) = named(workspace, n);
        assert_eq!(ledger.is_open(key).await.unwrap(), left, "{run}");
        let row = ledger.load(run.clone(), 1).await.unwrap();
        assert_eq!(row.decision.is_some(), left, "{run}");
        let heard = ledger.heard(&run, 2, 0, 1).await.unwrap();
        assert_eq!(heard.is_some(), left, "{run}");
    }
    assert!(!ledger.purge_some("ws").await.unwrap());
}

async fn a_known_config_store_is_remembered(ledger: Store) {
    let config = ledger.known_config();
    assert_eq!(config.config_known().await.unwrap(), None);
    for version in [3, 5, 5] {
        let known = tg_storage::ConfigKnown {
            identity: "x".into(),
            version,
        };
        config.remember_config(known.clone()).await.unwrap();
        assert_eq!(config.config_known().await.unwrap(), Some(known));
    }
}

/// Every promise, kept by one adapter.
macro_rules! suite {
    ($adapter:ident, $open:expr) => {
        mod $adapter {
            use super::*;

            suite!(@ $open;
                a_question_begins_one_run,
                the_first_decision_stands,
                the_first_observation_of_a_decided_step_stands,
                an_ending_needs_no_decision,
                pieces_are_heard_as_far_as_they_were_passed_on,
                ends_of_a_day_stand_in_their_order,
                heads_follow_one_another_and_the_key_stays,
                old_rows_go,
                a_workspace_is_purged_whole_and_alone,
                nothing_is_written_of_a_workspace_that_has_ended,
                detached_runs_of_a_user_are_listed_until_they_end_or_are_cancelled,
                a_known_config_store_is_remembered,
            );
        }
    };
    (@ $open:expr; $($promise:ident,)+) => {
        $(
            #[tokio::test]
            async fn $promise() {
                super::$promise(Arc::new($open)).await;
            }
        )+
    };
}

suite!(sqlite, SqliteLedger::in_memory().unwrap());
