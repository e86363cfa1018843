//! The ledger's promises: one run for a question, one decision for a step.

use super::*;
use crate::engine::decision::{Taken, Usage};

fn decision(text: &str) -> Decision {
    Decision {
        thought: vec!["hm".into(), String::new()],
        answer: Vec::new(),
        taken: Taken::Answer { text: text.into() },
        usage: Usage::default(),
        candidates: vec!["a".into()],
    }
}

fn began(run: &str) -> Began {
    Began {
        run: run.into(),
        started_at: "t".into(),
    }
}

#[tokio::test]
async fn a_question_begins_one_run() {
    let ledger = Ledger::in_memory().unwrap();
    let begin =
        |text: &str, run: &str| ledger.begin("ws/f/inbox/q".into(), text.into(), began(run), 1);
    assert_eq!(begin("why", "r1").await.unwrap(), began("r1"));
    assert_eq!(begin("why", "r2").await.unwrap(), began("r1"));
    assert!(ledger.is_open("ws/f/inbox/q".into()).await.unwrap());
    assert!(!ledger.is_open("other".into()).await.unwrap());
    ledger.decide("r1", 1, &decision("x"), 1).await.unwrap();
    ledger.finish_step("r1", 1).await.unwrap();
    assert!(ledger.is_open("ws/f/inbox/q".into()).await.unwrap());
    ledger.finish_run("r1", 1).await.unwrap();
    assert!(!ledger.is_open("ws/f/inbox/q".into()).await.unwrap());
    assert_eq!(
        begin("how", "r3").await.unwrap(),
        began("r3"),
        "another question under the same id"
    );
}

#[tokio::test]
async fn the_first_decision_stands() {
    let ledger = Ledger::in_memory().unwrap();
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

#[tokio::test]
async fn an_ending_needs_no_decision() {
    let ledger = Ledger::in_memory().unwrap();
    let ending = Ending::from_error(&tg_schemas::Error::new(
        tg_schemas::ErrorCode::Cancelled,
        "cancelled",
    ));
    ledger.end("r", 3, &ending, 1).await.unwrap();
    let row = ledger.load("r".into(), 3).await.unwrap();
    assert_eq!(row.ending, Some(ending));
    assert_eq!(row.decision, None);
}

#[tokio::test]
async fn old_rows_go() {
    let ledger = Ledger::in_memory().unwrap();
    ledger.decide("old", 1, &decision("x"), 1).await.unwrap();
    let now = (KEEP_MS / PURGE_EVERY + 2) * PURGE_EVERY;
    ledger
        .begin("q".into(), "t".into(), began("new"), now)
        .await
        .unwrap();
    assert_eq!(
        ledger.load("old".into(), 1).await.unwrap(),
        StepRow::default()
    );
}
