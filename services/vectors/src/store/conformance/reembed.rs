//! What every adapter of [`ReembedStore`] does: the old vectors serve until the switch, then all of the new; nothing that is
//! written or taken back meanwhile is lost or comes back.

use tg_collections::{CollectionKey, WriteKind};

use super::points::Points;
use crate::engine::kind::Kind;
use crate::engine::point::{Facets, Point, Subject};
use crate::error::VectorError;
use crate::store::reembed::{Begin, Made, ReembedStore, State, Task};
use crate::store::{Search, Write};
use tg_schemas::Term;
use tg_schemas::msg::{Retract, Superseded};

/// What the suite needs of an adapter.
pub(in crate::store) trait Reembeds: Points + ReembedStore {}

impl<S: Points + ReembedStore> Reembeds for S {}

pub(super) const OLD: &str = "old/2";
pub(super) const NEW: &str = "new/3";

pub(super) fn key() -> CollectionKey {
    CollectionKey::new("w", "c")
}

/// What the new model makes of a text.
pub(super) fn newer(text: &str) -> Vec<f32> {
    let part = |at: usize| text.as_bytes().get(at).map_or(0.0, |byte| f32::from(*byte));
    vec![1.0, part(0), part(text.len().saturating_sub(1))]
}

fn chunk(id: &str, vector: &[f32]) -> Point {
    let subject = Subject::Chunk(id.to_owned());
    let facets = Facets::default();
    let point = Point::new("chunks[0]", subject, id.to_owned(), facets, vector.to_vec());
    point.unwrap()
}

pub(super) fn with_text(id: &str) -> Point {
    chunk(id, &[1.0, 0.0]).of_text(format!("text of {id}"))
}

pub(super) fn entity(name: &str, from: &str, context: &str) -> Point {
    let subject = Subject::Entity(Term::iri(name));
    let facets = Facets {
        types: vec!["urn:T".to_owned()],
        ..Facets::default()
    };
    let vector = vec![1.0, context.len() as f32];
    let point = Point::new("entities[0]", subject, from.to_owned(), facets, vector).unwrap();
    point.made_by("x@1".to_owned()).of_text(context.to_owned())
}

pub(super) async fn put(
    store: &impl Reembeds,
    kind: Kind,
    model: &str,
    points: Vec<Point>,
) -> Result<Option<usize>, VectorError> {
    let write = Write {
        key: key(),
        kind,
        model: model.to_owned(),
        write_kind: WriteKind::Direct,
        points,
    };
    store.put(write).await
}

pub(super) async fn old(store: &impl Reembeds, points: Vec<Point>) {
    put(store, Kind::Chunk, OLD, points).await.unwrap();
}

pub(super) async fn take_back(store: &impl Reembeds, kind: Kind, chunk: &str) -> u64 {
    let (key, what) = (key(), super::retraction(&[chunk]));
    let gone = store.retract(&key, WriteKind::Tracked, kind, what);
    gone.await.unwrap()
}

/// The chunks that a question by a model finds.
pub(super) async fn found(store: &impl Reembeds, model: &str) -> Result<Vec<String>, VectorError> {
    let search = Search {
        key: key(),
        kind: Kind::Chunk,
        vector: if model == OLD {
            vec![1.0, 0.0]
        } else {
            vec![1.0, 0.0, 0.0]
        },
        model: model.to_owned(),
        limit: 10_000,
        conditions: Vec::new(),
    };
    let hits = store.search(search).await?.into_iter();
    let mut ids: Vec<String> = hits
        .map(|hit| match hit.subject {
            Subject::Chunk(id) => id,
            other => panic!("{other:?}"),
        })
        .collect();
    ids.sort();
    Ok(ids)
}

pub(super) async fn begin(store: &impl Reembeds, leave_out: bool) -> Task {
    let begin = Begin {
        key: key(),
        model: NEW.to_owned(),
        topic: "t".to_owned(),
        leave_out,
    };
    store.begin(begin).await.unwrap();
    store.tasks(0, 10).await.unwrap().remove(0)
}

/// Makes one batch; `false` when there is none.
async fn step(store: &impl Reembeds, task: &Task) -> bool {
    let Some(batch) = store.batch(task).await.unwrap() else {
        return false;
    };
    let texts = batch.points.iter();
    let vectors = texts.map(|(_, text)| newer(text)).collect();
    let task = task.clone();
    let made = Made {
        task,
        batch,
        vectors,
        refused: Vec::new(),
    };
    assert!(store.stage(made).await.unwrap());
    true
}

pub(super) async fn finish(store: &impl Reembeds, task: &Task) -> bool {
    while step(store, task).await {}
    store.switch(task).await.unwrap()
}

pub(super) async fn the_old_serve_until_all_of_the_new_do(store: &impl Reembeds) {
    let all: Vec<String> = (0..600).map(|n| format!("k{n:03}")).collect();
    old(store, all.iter().map(|id| with_text(id)).collect()).await;
    let entities = vec![
        entity("urn:a", "k000", "a pump"),
        entity("urn:a", "k000", "a pump of steel"),
    ];
    put(store, Kind::Entity, OLD, entities).await.unwrap();
    let task = begin(store, false).await;
    let mut steps = 0;
    while step(store, &task).await {
        steps += 1;
        assert!(!store.switch(&task).await.unwrap() || steps > 3);
        assert!(steps > 3 || found(store, OLD).await.unwrap() == all);
        if steps == 2 {
            assert!(matches!(
                found(store, NEW).await,
                Err(VectorError::OtherModel { held, .. }) if held == OLD
            ));
            let told = store.progress(&key()).await.unwrap().unwrap();
            assert_eq!(
                (told.state, told.done, told.total),
                (State::Running, 258, 602)
            );
            assert_eq!(told.serving, [OLD]);
        }
    }
    assert_eq!(steps, 4, "entities, and three batches of chunks");
    let told = store.progress(&key()).await.unwrap().unwrap();
    assert_eq!(
        (told.state, told.done, told.total),
        (State::Switched, 602, 602)
    );
    assert_eq!(told.serving, [NEW]);
    assert_eq!(found(store, NEW).await.unwrap(), all);
    assert!(matches!(
        found(store, OLD).await,
        Err(VectorError::OtherModel { held, .. }) if held == NEW
    ));
    assert_eq!(store.count(&key(), Kind::Entity).await.unwrap(), 2);
    assert!(store.tasks(0, 10).await.unwrap().is_empty());
    // What they stand for, where from and by what they are found is as it was.
    assert_eq!(take_back(store, Kind::Entity, "k000").await, 2);
    // What was delivered before is known again.
    let again = with_text("k001");
    let again = Point {
        vector: newer("text of k001"),
        ..again
    };
    assert_eq!(put(store, Kind::Chunk, NEW, vec![again]).await, Ok(Some(0)));
}

pub(super) async fn what_is_written_and_taken_back_meanwhile_counts(store: &impl Reembeds) {
    let ids = ["a", "b", "c", "d"];
    old(store, ids.map(with_text).to_vec()).await;
    let task = begin(store, false).await;
    let pending = store.batch(&task).await.unwrap().unwrap();
    // Taken back while its vector is made, and written by a flow that has the new model.
    assert_eq!(take_back(store, Kind::Chunk, "a").await, 1);
    let written = Point {
        vector: vec![1.0, 7.0, 7.0],
        ..with_text("b")
    };
    put(store, Kind::Chunk, NEW, vec![written]).await.unwrap();
    let fresh = Point {
        vector: vec![1.0, 8.0, 8.0],
        ..with_text("fresh")
    };
    put(store, Kind::Chunk, NEW, vec![fresh]).await.unwrap();
    let vectors: Vec<_> = pending.points.iter().map(|(_, text)| newer(text)).collect();
    let made = Made {
        task: task.clone(),
        batch: pending,
        vectors,
        refused: Vec::new(),
    };
    assert!(store.stage(made.clone()).await.unwrap());
    assert!(!store.stage(made).await.unwrap(), "once");
    assert_eq!(found(store, OLD).await.unwrap(), ["b", "c", "d"]);
    // Afterwards: changed by a flow that has the old model, come, and gone.
    let changed = chunk("c", &[0.0, 1.0]).of_text("another text".to_owned());
    old(store, vec![changed, with_text("late")]).await;
    assert_eq!(take_back(store, Kind::Chunk, "d").await, 1);
    assert!(!store.switch(&task).await.unwrap(), "something is left");
    assert!(finish(store, &task).await);
    assert_eq!(
        found(store, NEW).await.unwrap(),
        ["b", "c", "fresh", "late"]
    );
    assert!(is_exactly(store, newer("another text"), "c").await);
    assert!(
        is_exactly(store, vec![1.0, 7.0, 7.0], "b").await,
        "the newer stays"
    );
}

/// Whether a vector of the new model is that of this chunk.
async fn is_exactly(store: &impl Reembeds, vector: Vec<f32>, id: &str) -> bool {
    let search = Search {
        key: key(),
        kind: Kind::Chunk,
        vector,
        model: NEW.to_owned(),
        limit: 1,
        conditions: Vec::new(),
    };
    let hits = store.search(search).await.unwrap();
    hits[0].subject == Subject::Chunk(id.to_owned()) && hits[0].score > 0.999_99
}

pub(super) async fn what_changes_while_a_batch_is_made_is_made_again(store: &impl Reembeds) {
    let textless = chunk("learns", &[1.0, 0.0]);
    old(
        store,
        vec![with_text("changes"), textless, with_text("stays")],
    )
    .await;
    let task = begin(store, false).await;
    let batch = store.batch(&task).await.unwrap().unwrap();
    let vectors = batch.points.iter().map(|(_, text)| newer(text)).collect();
    // The flow that has the old model goes on meanwhile.
    let changed = chunk("changes", &[0.0, 1.0]).of_text("another text".to_owned());
    old(store, vec![changed, with_text("learns")]).await;
    let made = Made {
        task: task.clone(),
        batch,
        vectors,
        refused: Vec::new(),
    };
    assert!(store.stage(made).await.unwrap());
    // What the new model wrote before, the old one writes later.
    let first = Point {
        vector: vec![1.0, 9.0, 9.0],
        ..with_text("both")
    };
    put(store, Kind::Chunk, NEW, vec![first]).await.unwrap();
    old(store, vec![with_text("both")]).await;
    assert!(finish(store, &task).await);
    assert_eq!(
        found(store, NEW).await.unwrap(),
        ["both", "changes", "learns", "stays"]
    );
    assert!(is_exactly(store, newer("another text"), "changes").await);
    assert!(is_exactly(store, newer("text of both"), "both").await);
}

pub(super) async fn what_was_to_go_at_the_switch_and_came_again_stays(store: &impl Reembeds) {
    let first = entity("urn:a", "k", "a thing");
    put(store, Kind::Entity, OLD, vec![first.clone()])
        .await
        .unwrap();
    let task = begin(store, false).await;
    let one = Superseded {
        processor: "x".to_owned(),
        kept: vec!["2".to_owned()],
        gone: Vec::new(),
        chunks: vec!["k".to_owned()],
    };
    let what = Retract {
        superseded: vec![one],
        ..Retract::default()
    };
    let key = key();
    let gone = store.retract(&key, WriteKind::Tracked, Kind::Entity, what);
    gone.await.unwrap();
    assert!(step(store, &task).await, "it is passed over");
    put(store, Kind::Entity, OLD, vec![first]).await.unwrap();
    assert!(finish(store, &task).await);
    assert_eq!(store.count(&key, Kind::Entity).await.unwrap(), 1);
    assert_eq!(store.progress(&key).await.unwrap().unwrap().serving, [NEW]);
}

pub(super) async fn what_is_made_anew_by_the_new_model_serves_from_the_switch_on(
    store: &impl Reembeds,
) {
    let found = async |numbers: usize| {
        let search = Search {
            key: key(),
            kind: Kind::Entity,
            vector: vec![1.0; numbers],
            model: String::new(),
            limit: 10,
            conditions: Vec::new(),
        };
        let hits = store.search(search).await.unwrap().into_iter();
        let mut names: Vec<String> = hits
            .map(|hit| match hit.subject {
                Subject::Entity(Term::Iri(iri)) => iri,
                other => panic!("{other:?}"),
            })
            .collect();
        names.sort();
        names
    };
    let anew = async || {
        let of = Point {
            made_by: "x@2".to_owned(),
            vector: vec![1.0, 2.0, 3.0],
            ..entity("urn:new", "k", "a new thing")
        };
        put(store, Kind::Entity, NEW, vec![of]).await.unwrap();
        let one = Superseded {
            processor: "x".to_owned(),
            kept: vec!["2".to_owned()],
            gone: Vec::new(),
            chunks: vec!["k".to_owned()],
        };
        let what = Retract {
            superseded: vec![one],
            ..Retract::default()
        };
        let key = key();
        let gone = store.retract(&key, WriteKind::Tracked, Kind::Entity, what);
        gone.await.unwrap();
    };
    let before = vec![
        entity("urn:old", "k", "an old thing"),
        entity("urn:other", "l", "another"),
    ];
    put(store, Kind::Entity, OLD, before).await.unwrap();
    for staged in [false, true] {
        let task = begin(store, false).await;
        if staged {
            assert!(step(store, &task).await);
        }
        anew().await;
        assert_eq!(found(2).await, ["urn:old", "urn:other"], "it serves");
        if staged {
            assert!(finish(store, &task).await);
            assert_eq!(found(3).await, ["urn:new", "urn:other"]);
        } else {
            // Given up, what was superseded goes all the same.
            assert!(store.abandon(&key()).await.unwrap());
            assert_eq!(found(2).await, ["urn:other"]);
            let old = vec![entity("urn:old", "k", "an old thing")];
            put(store, Kind::Entity, OLD, old).await.unwrap();
        }
    }
}

pub(super) async fn vectors_without_a_text_hold_it_up_until_there_are_others(
    store: &impl Reembeds,
) {
    let textless = |id: &str| chunk(id, &[1.0, 0.0]);
    old(
        store,
        vec![with_text("a"), textless("b"), textless("c"), textless("d")],
    )
    .await;
    let task = begin(store, false).await;
    assert!(!finish(store, &task).await);
    let told = store.progress(&key()).await.unwrap().unwrap();
    assert_eq!(
        (told.state, told.done, told.textless),
        (State::Waiting, 1, 3)
    );
    assert_eq!(found(store, OLD).await.unwrap(), ["a", "b", "c", "d"]);
    // One is processed again by the new model, one by the old.
    let b = Point {
        vector: vec![1.0, 2.0, 3.0],
        ..with_text("b")
    };
    put(store, Kind::Chunk, NEW, vec![b]).await.unwrap();
    old(store, vec![with_text("c")]).await;
    assert!(!finish(store, &task).await);
    let told = store.progress(&key()).await.unwrap().unwrap();
    assert_eq!((told.state, told.textless), (State::Waiting, 1));
    // Asked for again, the last one is left out.
    assert_eq!(begin(store, true).await.id, task.id);
    let task = store.tasks(0, 10).await.unwrap().remove(0);
    assert!(finish(store, &task).await);
    assert_eq!(found(store, NEW).await.unwrap(), ["a", "b", "c"]);
}

pub(super) async fn it_may_be_given_up_and_ends_with_its_collection(store: &impl Reembeds) {
    let nothing = Begin {
        key: key(),
        model: OLD.to_owned(),
        topic: "t".to_owned(),
        leave_out: false,
    };
    old(store, vec![with_text("a"), with_text("b")]).await;
    store.begin(nothing.clone()).await.unwrap();
    assert_eq!(store.progress(&key()).await.unwrap(), None, "all are of it");
    let task = begin(store, false).await;
    assert!(step(store, &task).await);
    assert!(store.abandon(&key()).await.unwrap());
    assert!(!store.abandon(&key()).await.unwrap());
    assert!(!store.switch(&task).await.unwrap());
    assert_eq!(found(store, OLD).await.unwrap(), ["a", "b"]);
    let refused = put(store, Kind::Chunk, NEW, vec![chunk("x", &[1.0, 1.0, 1.0])]).await;
    assert!(matches!(refused, Err(VectorError::OtherModel { .. })));
    // Begun again it begins at the start.
    let task = begin(store, false).await;
    assert!(step(store, &task).await);
    let told = store.progress(&key()).await.unwrap().unwrap();
    assert_eq!(told.done, 2);
    store.drop_collection(&key()).await.unwrap();
    assert!(!store.switch(&task).await.unwrap());
    assert!(store.tasks(0, 10).await.unwrap().is_empty());
    assert_eq!(store.progress(&key()).await.unwrap(), None);
    assert_eq!(store.count(&key(), Kind::Chunk).await.unwrap(), 0);
}

pub(super) async fn a_workspace_that_is_full_can_change(store: &impl Reembeds) {
    let ids: Vec<String> = (0..10_000).map(|n| format!("k{n}")).collect();
    for part in ids.chunks(1_000) {
        old(store, part.iter().map(|id| with_text(id)).collect()).await;
    }
    super::refused(
        put(store, Kind::Chunk, OLD, vec![with_text("more")]).await,
        "10000 vectors",
    );
    let task = begin(store, false).await;
    // Also by processing its documents again with the new model.
    let again = Point {
        vector: vec![1.0, 1.0, 1.0],
        ..with_text("k7")
    };
    let put_again = put(store, Kind::Chunk, NEW, vec![again]).await;
    assert_eq!(put_again, Ok(Some(1)));
    assert!(finish(store, &task).await);
    assert_eq!(found(store, NEW).await.unwrap().len(), 10_000);
    super::refused(
        put(
            store,
            Kind::Chunk,
            NEW,
            vec![chunk("more", &[1.0, 1.0, 1.0])],
        )
        .await,
        "10000 vectors",
    );
}
