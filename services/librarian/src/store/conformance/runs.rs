//! Runs from their beginning to their end.

use std::collections::BTreeMap;

use tg_schemas::msg::{ProcessingMetadata, RunTallyEntry, RunWritten};

use super::*;
use crate::engine::fingerprints::Fingerprints;
use crate::engine::flow::Flow;
use crate::engine::ids;
use crate::engine::readers::{Reader, Wiring};
use crate::engine::start::{self, Record};
use crate::engine::state::State;
use crate::store::runs::{Pair, Plan, Run, Start, Wanted};

const FLOW: &str = r#"{"status": "running", "epoch": 7, "interfaces": {
    "document-load": {"flow": "flow:tg:document-load:w:f"},
    "text-load": {"flow": "flow:tg:text:w:f"}}}"#;

fn reader(processor: &str, topic: &str) -> Reader {
    Reader {
        topic: format!("flow:tg:{topic}:w:f"),
        subscription: format!("{processor}--w--f--input"),
    }
}

pub(super) fn start() -> Start {
    Start {
        flow: Flow::read(FLOW).unwrap(),
        wiring: Wiring {
            readers: vec![reader("chunker", "text"), reader("kw-index", "chunk")],
        },
        fingerprints: Fingerprints::default(),
        tracked: true,
        now: 2,
    }
}

pub(super) fn wanted(processing: &str) -> Wanted {
    Wanted {
        workspace: "w".into(),
        processing: ProcessingMetadata {
            id: processing.into(),
            document_id: "urn:d".into(),
            flow: "f".into(),
            collection: "c".into(),
            ..ProcessingMetadata::default()
        },
        generation: 0,
    }
}

pub(super) fn entry(run: &Run, processor: &str, record: &str, outcome: &str) -> RunTallyEntry {
    RunTallyEntry {
        run: run.thread.clone(),
        record: record.into(),
        subscription: format!("{processor}--w--f--input"),
        subject: format!("about {record}"),
        outcome: outcome.into(),
        detail: if outcome == "failed" { "why" } else { "" }.into(),
        ..RunTallyEntry::default()
    }
}

pub(super) fn cut(run: &Run, record: &str, chunks: &[&str]) -> RunTallyEntry {
    let written = chunks.iter().map(|chunk| RunWritten {
        topic: "flow:tg:chunk:w:f".into(),
        record: (*chunk).into(),
    });
    RunTallyEntry {
        written: written.collect(),
        effects: BTreeMap::from([("chunks".into(), chunks.len() as i64)]),
        ..entry(run, "chunker", record, "ok")
    }
}

/// A document whose processing runs. Returns the run and the id of its first text record.
async fn running(store: &Store, processing: &str) -> (Run, String) {
    running_as(store, processing, start()).await
}

/// The same, with what the flow does.
pub(super) async fn running_as(store: &Store, processing: &str, start: Start) -> (Run, String) {
    let known = store.document("w", "urn:d").await.unwrap();
    if known.is_none() {
        let new = document("urn:d", "text");
        store.add_new(&asker(""), new).await.unwrap();
    }
    let question = format!("note {processing}");
    let run = store.note_run(&asker(&question), wanted(processing)).await;
    let number = run.unwrap().number;
    let Plan::Publish(run, records) = store.plan(number, start).await.unwrap() else {
        panic!("nothing is to be published");
    };
    store.started(&run, State::Running).await.unwrap();
    let text = records
        .iter()
        .find(|record| record.topic == "flow:tg:text:w:f");
    (*run, text.unwrap().id.clone())
}

pub(super) async fn state(store: &Store, number: i64) -> State {
    store.run(number).await.unwrap().unwrap().state
}

async fn counts(store: &Store, number: i64) -> (i64, i64, i64) {
    let counts = store.run(number).await.unwrap().unwrap().counts;
    (counts.expected, counts.settled, counts.failed)
}

pub(super) async fn a_processing_is_noted_once(store: Store) {
    let early = store.note_run(&asker("q0"), wanted("p")).await;
    assert_eq!(code(early), ErrorCode::NotFound);
    store
        .add_new(&asker(""), document("urn:d", "x"))
        .await
        .unwrap();
    let one = store.note_run(&asker("q"), wanted("p")).await.unwrap();
    let again = store.note_run(&asker("q"), wanted("p")).await.unwrap();
    assert_eq!((again.number, &again.thread), (one.number, &one.thread));
    assert_eq!(again.state, State::Queued);
    let repeated = store.note_run(&asker("q2"), wanted("p")).await.unwrap();
    assert_eq!(repeated.number, one.number);
    let mut elsewhere = wanted("p");
    elsewhere.processing.collection = "another".into();
    let other = store.note_run(&asker("q2b"), elsewhere).await;
    assert_eq!(code(other), ErrorCode::Conflict);
    let two = store.note_run(&asker("q3"), wanted("p2")).await.unwrap();
    assert_ne!(two.thread, one.thread);
    let first = store.shown_after("w", 0, 1, 5).await.unwrap();
    assert_eq!((first.len(), first[0].run.number), (1, one.number));
    let rest = store.shown_after("w", one.number, 9, 5).await.unwrap();
    assert_eq!((rest.len(), rest[0].run.number), (1, two.number));
    let numbers = async |flow: &str, most| {
        let last = store.shown_last("w", flow, most).await.unwrap();
        last.into_iter()
            .map(|one| one.run.number)
            .collect::<Vec<_>>()
    };
    let flow = one.target.flow.as_str();
    assert_eq!(numbers(flow, 9).await, [two.number, one.number]);
    assert_eq!(numbers(flow, 1).await, [two.number]);
    assert!(numbers("another", 9).await.is_empty());
    assert!(store.shown("x", "p", 5).await.unwrap().is_none());
}

/// Has the run of a processing come to its end.
async fn complete(store: &Store, processing: &str) -> Run {
    let (run, text) = running(store, processing).await;
    let told = store.hear(vec![cut(&run, &text, &[])], 3).await;
    assert!(told.unwrap());
    assert_eq!(state(store, run.number).await, State::Complete);
    run
}

/// Gives the document of the runs another text.
async fn edit(store: &Store, text: &str) {
    let (document, content) = document("urn:d", text);
    let edited = store.update("w", document, Some(content)).await;
    assert!(edited.unwrap());
}

/// All requests have the same time, as those of one second have.
pub(super) async fn a_request_whose_effect_is_gone_is_refused(store: Store) {
    let first = complete(&store, "p").await;
    let again = |question: &'static str| {
        let store = store.clone();
        async move { store.note_run(&asker(question), wanted("p")).await }
    };
    assert_eq!(again("q1").await.unwrap().number, first.number);
    // What the run read is not what the document says.
    edit(&store, "other text").await;
    assert_eq!(code(again("q2").await), ErrorCode::Conflict);
    // Another run came after it. Its first request may still come again.
    complete(&store, "p2").await;
    edit(&store, "text").await;
    assert_eq!(code(again("q3").await), ErrorCode::Conflict);
    let late = again("note p").await.unwrap();
    assert_eq!(late.number, first.number);
}

pub(super) async fn a_run_starts_and_ends_by_what_is_told(store: Store) {
    let (run, text) = running(&store, "p").await;
    // Publishing broke off: it is planned with the same records again, in no other state.
    assert!(matches!(
        store.plan(run.number, start()).await.unwrap(),
        Plan::Nothing
    ));
    assert_eq!(counts(&store, run.number).await.1, 0);
    let early = entry(&run, "kw-index", "c1", "ok");
    for _ in 0..2 {
        let told = vec![early.clone(), cut(&run, &text, &["c1", "c2"])];
        store.hear(told, 3).await.unwrap();
    }
    let (expected, settled, failed) = counts(&store, run.number).await;
    assert_eq!((expected - settled, failed), (1, 0));
    let open = store.open_pairs(run.number, 10).await.unwrap();
    assert_eq!(open.len(), 1);
    assert_eq!(open[0].record, ids::record("c2"));
    let over = store.hear(vec![entry(&run, "kw-index", "c2", "ok")], 4);
    assert!(over.await.unwrap());
    let shown = store.shown("w", "p", 5).await.unwrap().unwrap();
    assert_eq!(shown.run.state, State::Complete);
    assert!(
        shown.run.summary.contains("chunks"),
        "{}",
        shown.run.summary
    );
    assert!(store.live_runs(0, 10).await.unwrap().is_empty());
    // What is told after that changes nothing.
    let late = store.hear(vec![cut(&run, &text, &["c9"])], 5);
    assert!(!late.await.unwrap());
}

pub(super) async fn runs_wait_for_each_other(store: Store) {
    let (first, _) = running(&store, "p1").await;
    let second = store.note_run(&asker("q"), wanted("p2")).await.unwrap();
    let plan = |number| store.plan(number, start());
    assert!(matches!(plan(second.number).await.unwrap(), Plan::Nothing));
    let waits = store.run(second.number).await.unwrap().unwrap();
    assert_eq!(waits.state, State::Queued);
    assert!(waits.why.starts_with("waits for another run"));
    assert_eq!(store.live_runs(0, 1).await.unwrap().len(), 1);
    let rest = store.live_runs(first.number, 9).await.unwrap();
    assert_eq!((rest.len(), rest[0].number), (1, second.number));
    store.delete_run(first.number).await.unwrap();
    let planned = plan(second.number).await.unwrap();
    assert!(matches!(planned, Plan::Publish(..)));
    // The same records again, until they are published.
    let again = plan(second.number).await.unwrap();
    let (Plan::Publish(_, one), Plan::Publish(_, other)) = (planned, again) else {
        panic!("nothing is to be published");
    };
    assert_eq!(one, other);
    // Under another start of the flow it does not go on.
    let mut anew = start();
    anew.flow.epoch += 1;
    let stopped = store.plan(second.number, anew).await.unwrap();
    assert!(matches!(stopped, Plan::Nothing));
    assert_eq!(state(&store, second.number).await, State::Stopped);
}

pub(super) async fn a_failure_may_be_made_good(store: Store) {
    let (run, text) = running(&store, "p").await;
    let failed = entry(&run, "kw-index", "c1", "failed");
    for _ in 0..2 {
        let told = vec![cut(&run, &text, &["c1"]), failed.clone()];
        store.hear(told, 3).await.unwrap();
    }
    let shown = store.shown("w", "p", 5).await.unwrap().unwrap();
    assert_eq!(
        (shown.run.state, shown.run.counts.failed),
        (State::Failed, 1)
    );
    assert_eq!(
        (shown.faults.len(), shown.faults[0].message.as_str()),
        (1, "why")
    );
    assert!(
        store
            .shown("w", "p", 0)
            .await
            .unwrap()
            .unwrap()
            .faults
            .is_empty()
    );
    let pair = Pair {
        record: ids::record("c1"),
        subscription: "kw-index--w--f--input".into(),
    };
    assert_eq!(
        store.open_pairs(run.number, 9).await.unwrap(),
        std::slice::from_ref(&pair)
    );
    for _ in 0..2 {
        store.reopen_record(run.number, &pair).await.unwrap();
        assert_eq!(state(&store, run.number).await, State::Running);
        assert_eq!(counts(&store, run.number).await.2, 0);
    }
    for _ in 0..2 {
        store.close_record(run.number, &pair, "no").await.unwrap();
        assert_eq!(counts(&store, run.number).await.2, 1);
    }
    store.settle(run.number, 4).await.unwrap();
    assert_eq!(state(&store, run.number).await, State::Failed);
    let good = entry(&run, "kw-index", "c1", "ok");
    assert!(store.hear(vec![good], 5).await.unwrap());
    assert_eq!(state(&store, run.number).await, State::Complete);
}

pub(super) async fn a_run_is_taken_back_once(store: Store) {
    let missing = store.take_back(&asker("q0"), "p").await;
    assert_eq!(code(missing), ErrorCode::NotFound);
    let (run, _) = running(&store, "p").await;
    let (stood, left) = store.take_back(&asker("q"), "p").await.unwrap().unwrap();
    assert_eq!(stood.run.state, State::Running);
    assert!(left.unwrap() > 0);
    assert!(store.take_back(&asker("q"), "p").await.unwrap().is_none());
    assert!(store.shown("w", "p", 5).await.unwrap().is_none());
    assert_eq!(state(&store, run.number).await, State::Cancelled);
    // One that waits is gone at once.
    let queued = store.note_run(&asker("q2"), wanted("p")).await.unwrap();
    let taken = store.take_back(&asker("q3"), "p").await.unwrap().unwrap();
    assert_eq!(taken.1, None);
    assert!(store.run(queued.number).await.unwrap().is_none());
}

/// The start of a flow with a graph.
fn into_a_graph() -> Start {
    let mut start = start();
    let interface = r#""interfaces": {"triples-store": {"flow": "flow:tg:triples:w:f"}, "#;
    start.flow = Flow::read(&FLOW.replace(r#""interfaces": {"#, interface)).unwrap();
    start.wiring.readers.push(reader("graph", "triples"));
    start
}

/// Whether the first records of a run, which it has each time it is planned, name the vocabulary.
async fn names_the_vocabulary(store: &Store, number: i64) -> (bool, Run, Vec<Record>) {
    let planned = store.plan(number, into_a_graph()).await.unwrap();
    let Plan::Publish(run, records) = planned else {
        panic!("nothing is to be published");
    };
    let wanted = start::vocabulary_record(&run.thread);
    let named = records.iter().any(|record| record.id == wanted);
    (named, *run, records)
}

pub(super) async fn the_vocabulary_is_written_until_a_run_is_complete(store: Store) {
    store.remember_collection("w", "c", 0).await.unwrap();
    let new = document("urn:d", "text");
    store.add_new(&asker(""), new).await.unwrap();
    let first = store.note_run(&asker("q"), wanted("p")).await.unwrap();
    let (named, run, _) = names_the_vocabulary(&store, first.number).await;
    assert!(named);
    store.started(&run, State::Running).await.unwrap();
    // It begins anew before anything is stored: what it wrote may have been thrown away.
    let anew = store.replace_run(run.number, wanted("p"), 5).await.unwrap();
    let (named, _, records) = names_the_vocabulary(&store, anew.number).await;
    assert!(named);
    let (_, run, again) = names_the_vocabulary(&store, anew.number).await;
    assert_eq!(again, records);
    store.started(&run, State::Running).await.unwrap();
    let told = records.iter().map(|record| {
        let processor = match record.topic.contains("triples") {
            true => "graph",
            false => "chunker",
        };
        entry(&run, processor, &record.id, "ok")
    });
    assert!(store.hear(told.collect(), 6).await.unwrap());
    assert_eq!(state(&store, run.number).await, State::Complete);
    let next = store.note_run(&asker("q2"), wanted("p2")).await.unwrap();
    assert!(!names_the_vocabulary(&store, next.number).await.0);
}

pub(super) async fn a_run_takes_the_place_of_another_once(store: Store) {
    let (run, _) = running(&store, "p").await;
    let new = store.replace_run(run.number, wanted("p"), 5).await.unwrap();
    assert_ne!(new.number, run.number);
    let again = store.replace_run(run.number, wanted("p"), 6).await.unwrap();
    assert_eq!(again.number, new.number);
    assert!(store.run(run.number).await.unwrap().is_none());
    for _ in 0..2 {
        store.delete_run(new.number).await.unwrap();
        assert!(store.run(new.number).await.unwrap().is_none());
    }
}

pub(super) async fn a_state_changes_only_from_the_one_that_is_meant(store: Store) {
    let (run, _) = running(&store, "p").await;
    let change = |from, to| store.change_state(run.number, from, to, "why");
    change(State::Starting, State::Stopped).await.unwrap();
    assert_eq!(state(&store, run.number).await, State::Running);
    change(State::Running, State::Stopped).await.unwrap();
    let now = store.run(run.number).await.unwrap().unwrap();
    assert_eq!((now.state, now.why.as_str()), (State::Stopped, "why"));
    for _ in 0..2 {
        store.revive(run.number, 8).await.unwrap();
        let now = store.run(run.number).await.unwrap().unwrap();
        assert_eq!((now.state, now.epoch), (State::Running, 8));
    }
}

pub(super) async fn what_was_processed_is_retracted_when_its_document_goes(store: Store) {
    let (run, text) = running(&store, "p").await;
    let me = Asker {
        thread: run.thread.clone(),
        ..asker("")
    };
    let chunks = vec![part("urn:c1", "urn:d", "1"), part("urn:c2", "urn:d", "2")];
    let done = store.add_children(&me, chunks.clone(), false).await;
    assert!(done.unwrap().unchanged.is_empty());
    let told = vec![
        cut(&run, &text, &["c1"]),
        entry(&run, "kw-index", "c1", "ok"),
    ];
    store.hear(told, 3).await.unwrap();
    assert_eq!(state(&store, run.number).await, State::Complete);
    // The next run finds the first as it was, and sweeps the second.
    let (next, text) = running(&store, "p2").await;
    let me = Asker {
        thread: next.thread.clone(),
        ..asker("")
    };
    let done = store.add_children(&me, chunks[..1].to_vec(), false).await;
    assert_eq!(done.unwrap().unchanged, [chunks[0].0.clone()]);
    let gone = store
        .finish_children(&me, "urn:d", Vec::new())
        .await
        .unwrap();
    assert_eq!(gone, [chunks[1].0.clone()]);
    store.hear(vec![cut(&next, &text, &[])], 4).await.unwrap();
    let due = store.due_retractions(0, 9).await.unwrap();
    assert_eq!(
        (due.len(), due[0].chunks.clone()),
        (1, vec!["urn:c2".into()])
    );
    assert_eq!(due[0].thread, next.thread);
    for _ in 0..2 {
        store.remove_retraction(due[0].number).await.unwrap();
        assert!(store.due_retractions(0, 9).await.unwrap().is_empty());
    }
    store.remove(&asker("q"), "urn:d").await.unwrap();
    let due = store.due_retractions(0, 1).await.unwrap();
    assert_eq!(due.len(), 1, "a page of it");
    assert!(due[0].chunks.contains(&"urn:d".to_owned()));
    let all = store.due_retractions(0, 9).await.unwrap();
    assert!(all.iter().all(|one| one.target.document == "urn:d"));
}
