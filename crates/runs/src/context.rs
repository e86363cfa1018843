//! What a handler says and sees of the run that its message belongs to.

use std::any::Any;

use tg_mesh::Cx;
use tg_schemas::msg::collection_or_default;

use crate::run_id::JobId;
use crate::track::Track;

/// The run of a message, for its handler.
pub trait RunContext {
    /// The run that the record being handled belongs to, or inside which the question was asked.
    fn run(&self) -> Option<&JobId>;

    /// Notes what handling this record did: `count` more of a kind, e.g. `triples`. Without a run nothing
    /// happens. Counts start again at 0 when the record is handled again.
    fn effect(&self, kind: &str, count: i64);

    /// Notes something that people should know of a record that was handled all the same, e.g. what of it was
    /// left out. The last remark stays; of a failure only its own text is reported.
    fn remark(&self, text: &str);

    /// Notes what this record is about, e.g. the id of a page or chunk.
    fn subject(&self, id: &str);

    /// The generation under which things of a collection are kept: the run's inside a run (its collection
    /// is the only one it writes to), else the one that the message was sent for, else the collection's as configuration
    /// has it; 0 if it is not registered.
    fn generation(&self, collection: &str) -> i64;

    /// Whether a collection is still the one that this record is for: that its run began with, or that was there when
    /// it was sent. `false`: it was deleted and made again since, what belongs to the old one is to be dropped. Always
    /// `true` of what a foreign sender wrote outside runs. A collection that is being deleted looks current here: stores
    /// also keep to their own marks.
    fn is_current(&self, collection: &str) -> bool;

    /// Whether this record is for a generation of a collection that was registered when it was sent, or that its run
    /// began with: once that has ended, the record changes nothing.
    fn is_tied(&self, collection: &str) -> bool;
}

impl RunContext for Cx {
    fn run(&self) -> Option<&JobId> {
        track(self).map(|track| &track.run)
    }

    fn effect(&self, kind: &str, count: i64) {
        if let Some(track) = track(self) {
            track.note(|did| did.effect(kind, count));
        }
    }

    fn remark(&self, text: &str) {
        if let Some(track) = track(self) {
            track.note(|did| did.remark(text));
        }
    }

    fn subject(&self, id: &str) {
        if let Some(track) = track(self) {
            track.note(|did| did.subject(id));
        }
    }

    fn generation(&self, collection: &str) -> i64 {
        match meant(self, collection) {
            Some(generation) => generation.max(0),
            None => registered(self, collection),
        }
    }

    fn is_current(&self, collection: &str) -> bool {
        meant(self, collection).is_none_or(|meant| meant.max(0) >= registered(self, collection))
    }

    fn is_tied(&self, collection: &str) -> bool {
        meant(self, collection).is_some_and(|meant| meant >= 0)
    }
}

/// The generation of a collection that a message is for, where it says so; negative: the collection was not registered.
fn meant(cx: &Cx, collection: &str) -> Option<i64> {
    match cx.run() {
        Some(run) => Some(run.generation()),
        None => cx.sent_for(collection_or_default(collection)),
    }
}

fn registered(cx: &Cx, collection: &str) -> i64 {
    let collection = collection_or_default(collection);
    cx.config()
        .collection_generation(cx.workspace(), collection)
}

fn track(cx: &Cx) -> Option<&Track> {
    let follow: &dyn Any = cx.follow()?;
    follow.downcast_ref()
}
