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
        key: key.into(),
        text: text.into(),
    }
}

async fn a_question_begins_one_run(ledger: Store) {
    let begin =
        |text: &str, run: &str| ledger.begin(asked("ws", "ws/f/inbox/q", text), began(run), 1);
    assert_eq!(begin("why", "r1").await.unwrap(), began("r1"));
    assert_eq!(begin("why", "r2").await.unwrap(), began("r1"));
    assert!(ledger.is_open("ws/f/inbox/q".into()).await.unwrap());
    assert!(!ledger.is_open("other".into()).await.unwrap());
    ledger.decide("r1", 1, &decision("x"), 1).await.unwrap();
    ledger.finish_step("r1", 1).await.unwrap();
    assert!(ledger.is_open("ws/f/inbox/q".into()).await.unwrap());
    for _ in 0..2 {
        ledger.finish_run("r1", 1).await.unwrap();
    }
    assert!(!ledger.is_open("ws/f/inbox/q".into()).await.unwrap());
    assert_eq!(
        begin("how", "r3").await.unwrap(),
        began("r3"),
        "another question under the same id"
    );
}

async fn the_first_decision_stands(ledger: Store) {
    ledger.decide("r", 1, &decision("one"), 1).await.unwrap();
    ledger.decide("r", 1, &decision("two"), 2).await.unwrap();
    let row = ledger.load("r".into(), 1).await.unwrap();
    assert_eq!(row.decision, Some(decision("one")));
    assert!(!row.later && !row.done);
    ledger
        .observe("r", 1, &Observation::failed("x"))
        .await
        .unwrap();
    ledger.decide("r", 2, &decision("end"), 3).await.unwrap();
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
    ledger.end("r", 3, &ending, 1).await.unwrap();
    let row = ledger.load("r".into(), 3).await.unwrap();
    assert_eq!(row.ending, Some(ending));
    assert_eq!(row.decision, None);
}

async fn old_rows_go(ledger: Store) {
    ledger.decide("old", 1, &decision("x"), 1).await.unwrap();
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
        ledger.say("r", 1, 4, said.clone(), 1).await.unwrap();
    }
    let heard = |from, until| ledger.heard("r", 1, from, until);
    assert_eq!(heard(4, 7).await.unwrap(), Some(said.clone()));
    assert_eq!(heard(5, 7).await.unwrap(), Some(said[1..].to_vec()));
    assert_eq!(heard(4, 8).await.unwrap(), None, "one more is not known");
    // What comes after what was passed on is forgotten.
    assert_eq!(heard(4, 6).await.unwrap(), Some(said[..2].to_vec()));
    assert_eq!(heard(4, 7).await.unwrap(), None);
    assert_eq!(heard(4, 4).await.unwrap(), Some(Vec::new()));
    ledger.say("r", 1, 4, said, 1).await.unwrap();
    ledger.decide("r", 1, &decision("x"), 1).await.unwrap();
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
    ledger.decide("r", 1, &decision("x"), 1).await.unwrap();
    observe("one").await;
    observe("two").await;
    let row = ledger.load("r".into(), 1).await.unwrap();
    assert_eq!(row.observation, Some(Observation::failed("one")));
}

async fn a_workspace_is_purged_whole_and_alone(ledger: Store) {
    // More runs than are purged at once, in one generation of a name; one in the next.
    let of = |workspace: &str, n: usize| (format!("{workspace}/{n}"), format!("{workspace} {n}"));
    for (workspace, count) in [("ws", 600), ("ws#1", 1)] {
        for n in 0..count {
            let (key, run) = of(workspace, n);
            let begun = ledger.begin(asked(workspace, &key, "t"), began(&run), 1);
            begun.await.unwrap();
            ledger.decide(&run, 1, &decision("x"), 1).await.unwrap();
            let piece = Piece {
                kind: PieceKind::Answer,
                text: "said".into(),
            };
            ledger.say(&run, 2, 0, vec![piece], 1).await.unwrap();
        }
    }
    let mut known = ledger.workspaces().await.unwrap();
    known.sort();
    assert_eq!(known, ["ws", "ws#1"]);
    while ledger.purge_some("ws").await.unwrap() {}
    assert_eq!(ledger.workspaces().await.unwrap(), ["ws#1"]);
    for (workspace, n, left) in [("ws", 0, false), ("ws", 599, false), ("ws#1", 0, true)] {
        let (key, run) = of(workspace, n);
        assert_eq!(ledger.is_open(key).await.unwrap(), left, "{run}");
        let row = ledger.load(run.clone(), 1).await.unwrap();
        assert_eq!(row.decision.is_some(), left, "{run}");
        let heard = ledger.heard(&run, 2, 0, 1).await.unwrap();
        assert_eq!(heard.is_some(), left, "{run}");
    }
    assert!(!ledger.purge_some("ws").await.unwrap());
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
                old_rows_go,
                a_workspace_is_purged_whole_and_alone,
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
