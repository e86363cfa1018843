//! What a flow does, and what of a document is made anew when it does something else.

use std::collections::BTreeMap;

use tg_schemas::msg::RunTallyEntry;

use super::runs::{cut, entry, running_as, start, state};
use super::*;
use crate::engine::fingerprints::Fingerprints;
use crate::engine::state::State;
use crate::store::documents::Added;
use crate::store::runs::{Plan, Processed, Run, Selector, Start};

const WORDS: &str = "kw-index";
const FACTS: &str = "kg-extract-definitions";

/// What a flow does: its index of words, and its extractor with a prompt.
fn does(prompt: &str) -> Fingerprints {
    let text = format!(r#"{{"readers":{{"{WORDS}":{{}},"{FACTS}":{{"prompt":"{prompt}"}}}}}}"#);
    Fingerprints::read(&text).unwrap()
}

fn doing(prompt: &str) -> Start {
    Start {
        fingerprints: does(prompt),
        ..start()
    }
}

fn of_run(run: &Run) -> Asker {
    Asker {
        thread: run.thread.clone(),
        ..asker("")
    }
}

/// A run that has cut its document into a chunk.
async fn seen(store: &Store, processing: &str, start: Start, chunk: New) -> (Run, String, Added) {
    let (run, text) = running_as(store, processing, start).await;
    let added = store.add_children(&of_run(&run), vec![chunk], true).await;
    (run, text, added.unwrap())
}

/// The same, to its end.
async fn processed(store: &Store, processing: &str, start: Start, chunk: New) -> (Run, Added) {
    let (run, text, added) = seen(store, processing, start, chunk).await;
    store.hear(vec![cut(&run, &text, &[])], 3).await.unwrap();
    assert_eq!(state(store, run.number).await, State::Complete);
    (run, added)
}

fn chunk() -> New {
    part("urn:c", "urn:d", "1")
}

fn readers(added: &Added) -> BTreeMap<String, String> {
    assert!(added.unchanged.is_empty());
    added
        .readers
        .first()
        .map(|one| one.readers.clone())
        .unwrap_or_default()
}

/// What is superseded, told shortly, and taken away.
async fn superseded(store: &Store) -> Vec<(String, Vec<String>)> {
    let mut told = Vec::new();
    for due in store.due_retractions(0, 99).await.unwrap() {
        assert!(due.chunks.is_empty());
        for one in due.superseded {
            assert_eq!(one.chunks, ["urn:c"]);
            told.push((one.processor, one.kept));
        }
        store.remove_retraction(due.number).await.unwrap();
    }
    told
}

pub(super) async fn only_who_does_something_else_reads_again(store: Store) {
    let (_, first) = processed(&store, "1", doing("a"), chunk()).await;
    assert_eq!(readers(&first), does("a").of_readers(0));
    assert!(
        superseded(&store).await.is_empty(),
        "nothing was there before"
    );
    let (_, same) = processed(&store, "2", doing("a"), chunk()).await;
    assert_eq!(same.unchanged.len(), 1);
    let (run, text, other) = seen(&store, "3", doing("b"), chunk()).await;
    let now = does("b").of_readers(0);
    assert_eq!(
        readers(&other),
        BTreeMap::from([(FACTS.to_owned(), now[FACTS].clone())])
    );
    // The record that brought it comes again.
    let again = store.add_children(&of_run(&run), vec![chunk()], true).await;
    assert_eq!(readers(&again.unwrap()), readers(&other));
    assert!(
        superseded(&store).await.is_empty(),
        "it is not made anew yet"
    );
    store.hear(vec![cut(&run, &text, &[])], 3).await.unwrap();
    assert_eq!(state(&store, run.number).await, State::Complete);
    let due = store.due_retractions(0, 99).await.unwrap();
    let before = does("a").of_readers(0);
    assert_eq!(
        due[0].superseded[0].gone,
        [before[FACTS].clone()],
        "named, so that it takes nothing from a later run"
    );
    assert_eq!(
        superseded(&store).await,
        [(FACTS.to_owned(), vec![now[FACTS].clone()])]
    );
    // A processor that is there no more: what it made goes, and nobody reads.
    let alone = Start {
        fingerprints: Fingerprints::read(r#"{"readers":{"kw-index":{}}}"#).unwrap(),
        ..start()
    };
    let (_, fewer) = processed(&store, "4", alone, chunk()).await;
    assert_eq!(fewer.unchanged.len(), 1);
    assert_eq!(superseded(&store).await, [(FACTS.to_owned(), vec![])]);
}

/// Back to what it was, it is as if the other had never been: what that made goes by its name, and what is made now stays.
pub(super) async fn what_goes_back_is_made_anew_and_the_other_goes(store: Store) {
    processed(&store, "1", doing("a"), chunk()).await;
    let [a, b] = ["a", "b"].map(|prompt| does(prompt).of_readers(0)[FACTS].clone());
    for (at, (prompt, now, before)) in [("b", &b, &a), ("a", &a, &b), ("b", &b, &a)]
        .into_iter()
        .enumerate()
    {
        let (_, other) = processed(&store, &format!("{}", at + 2), doing(prompt), chunk()).await;
        let wanted = BTreeMap::from([(FACTS.to_owned(), now.clone())]);
        assert_eq!(readers(&other), wanted, "and nobody else reads it");
        let due = store.due_retractions(0, 99).await.unwrap();
        let told: Vec<_> = due.iter().flat_map(|one| &one.superseded).collect();
        assert_eq!(told.len(), 1);
        assert_eq!(
            (&told[0].kept, &told[0].gone),
            (&vec![now.clone()], &vec![before.clone()])
        );
        superseded(&store).await;
    }
    // Back before the other has come to its end: what is not known goes, and never what is made now.
    let (run, text, _) = seen(&store, "half", doing("a"), chunk()).await;
    drop(text);
    store
        .change_state(run.number, State::Running, State::Stopped, "")
        .await
        .unwrap();
    processed(&store, "back", doing("b"), chunk()).await;
    let told = superseded(&store).await;
    assert!(told.contains(&(FACTS.to_owned(), vec![b])), "{told:?}");
}

pub(super) async fn what_was_not_finished_or_noted_is_done_again_and_cleared(store: Store) {
    // Whoever cannot tell processors apart: all read it, and nothing is told of what was there.
    let (run, text) = running_as(&store, "1", doing("a")).await;
    let added = store
        .add_children(&of_run(&run), vec![chunk()], false)
        .await
        .unwrap();
    assert!(added.readers.is_empty() && added.unchanged.is_empty());
    // It does not come to its end.
    drop(text);
    store
        .change_state(run.number, State::Running, State::Stopped, "")
        .await
        .unwrap();
    let (_, all) = processed(&store, "2", doing("b"), chunk()).await;
    let now = does("b").of_readers(0);
    assert_eq!(readers(&all), now);
    let told = superseded(&store).await;
    let names: Vec<&str> = told.iter().map(|(id, _)| id.as_str()).collect();
    // Also what is kept under no processor's name.
    assert_eq!(names, ["", FACTS, WORDS]);
    assert_eq!(
        (told[0].1.len(), &told[1].1),
        (0, &vec![now[FACTS].clone()])
    );
}

pub(super) async fn another_place_is_another_text(store: Store) {
    processed(&store, "1", doing("a"), chunk()).await;
    let mut moved = chunk();
    moved.0.comments = "Another heading".to_owned();
    let (run, added) = processed(&store, "2", doing("a"), moved.clone()).await;
    let now = does("a").of_readers(run.number);
    assert_eq!(readers(&added), now);
    assert_ne!(now[FACTS], does("a").of_readers(0)[FACTS]);
    assert_eq!(
        superseded(&store).await[1],
        (FACTS.to_owned(), vec![now[FACTS].clone()])
    );
    let (_, same) = processed(&store, "3", doing("a"), moved).await;
    assert_eq!(same.unchanged.len(), 1);
}

pub(super) async fn what_failed_leaves_what_was_there(store: Store) {
    processed(&store, "1", doing("a"), chunk()).await;
    let (run, text, _) = seen(&store, "2", doing("b"), chunk()).await;
    let of_chunk = |chunk: &str, outcome: &str| RunTallyEntry {
        subject: chunk.to_owned(),
        ..entry(&run, WORDS, "r", outcome)
    };
    let failed = vec![cut(&run, &text, &["r"]), of_chunk("urn:c", "failed")];
    store.hear(failed, 3).await.unwrap();
    assert_eq!(state(&store, run.number).await, State::Failed);
    assert!(superseded(&store).await.is_empty());
    // Tried again it succeeds.
    store.hear(vec![of_chunk("urn:c", "ok")], 4).await.unwrap();
    assert_eq!(state(&store, run.number).await, State::Complete);
    assert_eq!(superseded(&store).await.len(), 1);
    // Of a chunk of which nothing failed it goes at once.
    let (run, text, _) = seen(&store, "3", doing("c"), chunk()).await;
    let failed = RunTallyEntry {
        subject: "urn:other".to_owned(),
        ..entry(&run, WORDS, "r", "failed")
    };
    let failed = vec![cut(&run, &text, &["r"]), failed];
    store.hear(failed, 3).await.unwrap();
    assert_eq!(state(&store, run.number).await, State::Failed);
    assert_eq!(superseded(&store).await.len(), 1);
    // What could not be read says of no chunk: it may be of any.
    let (run, text, _) = seen(&store, "4", doing("x"), chunk()).await;
    let unread = RunTallyEntry {
        subject: String::new(),
        ..entry(&run, WORDS, "r", "failed")
    };
    store
        .hear(vec![cut(&run, &text, &["r"]), unread], 4)
        .await
        .unwrap();
    assert_eq!(state(&store, run.number).await, State::Failed);
    assert_eq!(superseded(&store).await, []);
}

pub(super) async fn what_another_flow_made_stays(store: Store) {
    processed(&store, "1", doing("a"), chunk()).await;
    let mut other = super::runs::wanted("of another flow");
    other.processing.flow = "g".to_owned();
    let number = store.note_run(&asker("g"), other).await.unwrap().number;
    store.plan(number, doing("c")).await.unwrap();
    let run = store.run(number).await.unwrap().unwrap();
    store.started(&run, State::Running).await.unwrap();
    let added = store
        .add_children(&of_run(&run), vec![chunk()], true)
        .await
        .unwrap();
    assert_eq!(readers(&added), does("c").of_readers(0));
    store
        .change_state(number, State::Running, State::Stopped, "")
        .await
        .unwrap();
    processed(&store, "3", doing("b"), chunk()).await;
    let mut kept = ["b", "c"].map(|prompt| does(prompt).of_readers(0)[FACTS].clone());
    kept.sort();
    assert_eq!(
        superseded(&store).await,
        [(FACTS.to_owned(), kept.to_vec())]
    );
    // Cut otherwise by the first, it is still what the other has.
    let (run, text) = running_as(&store, "4", doing("b")).await;
    store.hear(vec![cut(&run, &text, &[])], 3).await.unwrap();
    assert_eq!(state(&store, run.number).await, State::Complete);
    let left = superseded(&store).await;
    let others = does("c").of_readers(0);
    let wanted = [FACTS, WORDS].map(|id| (id.to_owned(), vec![others[id].clone()]));
    assert_eq!(left, wanted);
}

/// A whole processing of the document by another flow.
async fn processed_by_another(store: &Store, processing: &str, start: Start) {
    let mut wanted = super::runs::wanted(processing);
    wanted.processing.flow = "g".to_owned();
    let number = store.note_run(&asker(processing), wanted).await;
    let number = number.unwrap().number;
    let Plan::Publish(run, records) = store.plan(number, start).await.unwrap() else {
        panic!("nothing is to be published");
    };
    store.started(&run, State::Running).await.unwrap();
    let added = store.add_children(&of_run(&run), vec![chunk()], true).await;
    added.unwrap();
    for record in records {
        store
            .hear(vec![cut(&run, &record.id, &[])], 3)
            .await
            .unwrap();
    }
    assert_eq!(state(store, number).await, State::Complete);
}

pub(super) async fn what_another_flow_had_before_it_failed_stays(store: Store) {
    processed(&store, "1", doing("a"), chunk()).await;
    processed_by_another(&store, "of g", doing("a")).await;
    // The first fails to make it anew: what it had is what it has.
    let (run, text, _) = seen(&store, "2", doing("c"), chunk()).await;
    let failed = RunTallyEntry {
        subject: "urn:c".to_owned(),
        ..entry(&run, WORDS, "r", "failed")
    };
    let failed = vec![cut(&run, &text, &["r"]), failed];
    store.hear(failed, 3).await.unwrap();
    assert_eq!(superseded(&store).await, []);
    processed_by_another(&store, "again", doing("b")).await;
    assert_eq!(superseded(&store).await, []);
}

pub(super) async fn what_was_processed_is_told_with_what_changed(store: Store) {
    store.begin_collection("w", "c", Some(0)).await.unwrap();
    processed(&store, "1", doing("a"), chunk()).await;
    let told =
        async |of: &Selector| -> Vec<Processed> { store.processed("w", of, 0, 9).await.unwrap() };
    let all = told(&Selector::default()).await;
    let one = &all[0];
    assert_eq!((all.len(), one.target.document.as_str()), (1, "urn:d"));
    assert_eq!(one.fingerprints, Some(does("a")));
    assert!(one.same_content && one.document.is_some());
    let chunks: Vec<_> = one
        .chunks
        .iter()
        .map(|some| (some.done, some.number))
        .collect();
    assert_eq!(chunks, [(true, 1)]);
    assert_eq!(one.latest.as_ref().unwrap().processing, "1");
    let of = |document: &str, flow: &str, collection: &str| Selector {
        document: document.to_owned(),
        flow: flow.to_owned(),
        collection: collection.to_owned(),
    };
    assert_eq!(told(&of("urn:d", "f", "c")).await.len(), 1);
    for none in [of("urn:e", "", ""), of("", "g", ""), of("", "", "d")] {
        assert!(told(&none).await.is_empty());
    }
    assert!(
        store
            .processed("w", &Selector::default(), one.number, 9)
            .await
            .unwrap()
            .is_empty()
    );
    assert!(
        store
            .processed("other", &Selector::default(), 0, 9)
            .await
            .unwrap()
            .is_empty()
    );
    let (document, content) = document("urn:d", "another text");
    store.update("w", document, Some(content)).await.unwrap();
    assert!(!told(&Selector::default()).await[0].same_content);
    store.do_again(&one.target).await.unwrap();
    assert!(!told(&Selector::default()).await[0].chunks[0].done);
}
