//! What every adapter of [`ReembedStore`] does with texts that the new model refuses, and with what flows write beside a change
//! of a workspace that is nearly full.

use super::reembed::{
    NEW, OLD, Reembeds, begin, entity, finish, found, key, newer, old, put, take_back, with_text,
};
use crate::engine::kind::Kind;
use crate::engine::point::Point;
use crate::store::reembed::{Made, State, Task};

/// Makes a batch, of which the model refuses what is of a chunk.
async fn refuses(store: &impl Reembeds, task: &Task, id: &str) {
    let batch = store.batch(task).await.unwrap().unwrap();
    let bad = |text: &str| text == format!("text of {id}");
    let texts = batch.points.iter();
    let vectors = texts.map(|(_, text)| match bad(text) {
        true => Vec::new(),
        false => newer(text),
    });
    let vectors = vectors.collect();
    let refused = batch.points.iter().filter(|(_, text)| bad(text));
    let refused = refused.map(|(number, _)| (*number, "too long".to_owned()));
    let made = Made {
        task: task.clone(),
        refused: refused.collect(),
        batch,
        vectors,
    };
    assert!(store.stage(made).await.unwrap());
}

pub(super) async fn refused_texts_hold_up_the_switch_alone(store: &impl Reembeds) {
    old(store, ["a", "b", "c"].map(with_text).to_vec()).await;
    let task = begin(store, false).await;
    refuses(store, &task, "b").await;
    let told = store.progress(&key()).await.unwrap().unwrap();
    assert_eq!(
        (told.state, told.done, told.refused),
        (State::Running, 2, 1)
    );
    for _ in 0..2 {
        assert!(!finish(store, &task).await);
        let told = store.progress(&key()).await.unwrap().unwrap();
        assert_eq!((told.state, told.refused), (State::Waiting, 1));
        assert_eq!(told.refusal, "chunk b: too long");
        assert_eq!(found(store, OLD).await.unwrap(), ["a", "b", "c"]);
        // Begun again it is tried again, and nothing else is.
        assert_eq!(begin(store, false).await.id, task.id);
        let again = store.batch(&task).await.unwrap().unwrap();
        assert_eq!(again.points.len(), 1);
        refuses(store, &task, "b").await;
    }
    begin(store, false).await;
    assert!(finish(store, &task).await, "now it is taken");
    assert_eq!(found(store, NEW).await.unwrap(), ["a", "b", "c"]);
    let told = store.progress(&key()).await.unwrap().unwrap();
    assert_eq!((told.done, told.refused, told.refusal.as_str()), (3, 0, ""));
}

pub(super) async fn refused_texts_are_left_out_and_told(store: &impl Reembeds) {
    old(store, ["a", "b", "c"].map(with_text).to_vec()).await;
    let task = begin(store, false).await;
    refuses(store, &task, "b").await;
    assert!(!finish(store, &task).await);
    // What is refused goes in silence where its chunk does, and counts once its text is another one.
    let task = begin(store, true).await;
    refuses(store, &task, "b").await;
    assert!(store.switch(&task).await.unwrap());
    assert_eq!(found(store, NEW).await.unwrap(), ["a", "c"]);
    let told = store.progress(&key()).await.unwrap().unwrap();
    assert_eq!((told.state, told.refused), (State::Switched, 1));
}

pub(super) async fn what_is_refused_and_changes_or_goes_holds_nothing_up(store: &impl Reembeds) {
    old(store, ["a", "b"].map(with_text).to_vec()).await;
    let task = begin(store, false).await;
    refuses(store, &task, "b").await;
    assert!(!finish(store, &task).await);
    assert!(!finish(store, &task).await, "nothing has changed");
    let shorter = Point {
        vector: vec![0.0, 1.0],
        ..with_text("b")
    };
    old(store, vec![shorter.of_text("shorter".to_owned())]).await;
    assert!(finish(store, &task).await);
    assert_eq!(found(store, NEW).await.unwrap(), ["a", "b"]);
    // Once more, and it is taken back.
    store.drop_collection(&key()).await.unwrap();
    let next = key().in_generation(1);
    assert_eq!(store.progress(&next).await.unwrap(), None);
}

pub(super) async fn what_is_taken_back_holds_nothing_up(store: &impl Reembeds) {
    old(store, ["a", "b"].map(with_text).to_vec()).await;
    let task = begin(store, false).await;
    refuses(store, &task, "b").await;
    assert!(!finish(store, &task).await);
    assert_eq!(take_back(store, Kind::Chunk, "b").await, 1);
    assert!(finish(store, &task).await);
    assert_eq!(found(store, NEW).await.unwrap(), ["a"]);
}

/// What is told of a batch is told with its vectors, or not at all.
pub(super) async fn what_cannot_be_kept_tells_of_no_refusal(store: &impl Reembeds) {
    old(store, ["a", "b"].map(with_text).to_vec()).await;
    let task = begin(store, false).await;
    let batch = store.batch(&task).await.unwrap().unwrap();
    let (first, second) = (batch.points[0].0, batch.points[1].0);
    let made = |other: Vec<f32>| Made {
        task: task.clone(),
        batch: batch.clone(),
        vectors: vec![Vec::new(), other],
        refused: vec![(first, "too long".to_owned())],
    };
    assert!(first < second, "what is refused comes first");
    assert!(store.stage(made(vec![f32::NAN, 1.0])).await.is_err());
    let told = async || {
        let told = store.progress(&key()).await.unwrap().unwrap();
        (told.done, told.refused)
    };
    assert_eq!(told().await, (0, 0), "nothing of it was kept");
    let again = store.batch(&task).await.unwrap().unwrap();
    assert_eq!(again.points.len(), 2);
    assert!(store.stage(made(newer(&batch.points[1].1))).await.unwrap());
    assert_eq!(told().await, (1, 1));
}

/// An entity that serves has another vector in the new model: by its text it is known to be the same.
pub(super) async fn entities_that_serve_are_not_counted_as_new(store: &impl Reembeds) {
    let was = |n: usize| entity(&format!("urn:e{n}"), "k0", &format!("text {n}"));
    let is = |n: usize| Point {
        vector: vec![1.0, 2.0, n as f32],
        ..was(n)
    };
    for from in (0..6_000).step_by(1_000) {
        let some = (from..from + 1_000).map(was).collect();
        put(store, Kind::Entity, OLD, some).await.unwrap();
    }
    begin(store, false).await;
    // All that serve again, by the new model: nothing is new, and there is room for what is.
    for from in (0..10_000).step_by(1_000) {
        let some = (from..from + 1_000).map(is).collect();
        put(store, Kind::Entity, NEW, some).await.unwrap();
    }
    let more = put(store, Kind::Entity, NEW, vec![is(10_000)]).await;
    super::refused(more, "10000 vectors");
}

/// Both spaces are not twice the quota: what comes new is counted beside all that serves.
pub(super) async fn what_comes_new_meanwhile_counts_beside_what_serves(store: &impl Reembeds) {
    let ids: Vec<String> = (0..6_000).map(|n| format!("k{n}")).collect();
    for part in ids.chunks(1_000) {
        old(store, part.iter().map(|id| with_text(id)).collect()).await;
    }
    let task = begin(store, false).await;
    let fresh = |n: usize| Point {
        vector: vec![1.0, 1.0, n as f32],
        ..with_text(&format!("f{n}"))
    };
    for from in [0, 2_000] {
        let some = (from..from + 2_000).map(fresh).collect();
        put(store, Kind::Chunk, NEW, some).await.unwrap();
    }
    let full = async |n| put(store, Kind::Chunk, NEW, vec![fresh(n)]).await;
    super::refused(full(4_000).await, "10000 vectors");
    // Again and otherwise, it is there already; and one that goes makes room for one.
    let other = Point {
        vector: vec![2.0, 1.0, 1.0],
        ..fresh(7)
    };
    put(store, Kind::Chunk, NEW, vec![other]).await.unwrap();
    assert_eq!(take_back(store, Kind::Chunk, "f8").await, 1);
    assert_eq!(full(4_000).await, Ok(Some(1)));
    super::refused(full(4_001).await, "10000 vectors");
    assert!(finish(store, &task).await);
    assert_eq!(found(store, NEW).await.unwrap().len(), 10_000);
    super::refused(full(4_001).await, "10000 vectors");
    assert_eq!(take_back(store, Kind::Chunk, "f9").await, 1);
    assert_eq!(full(4_001).await, Ok(Some(1)));
}
