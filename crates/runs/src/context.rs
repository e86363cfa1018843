//! What a handler says and sees of the run that its message belongs to.

use std::any::Any;

use tg_mesh::Cx;

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
    /// is the only one it writes to), else the collection's as configuration has it; 0 if it is not
    /// registered.
    fn generation(&self, collection: &str) -> i64;

    /// Whether a collection is still the one that the run of this record began with. `false`: it was deleted
    /// and made again since, what belongs to the old one is to be dropped. Always `true` outside runs. A
    /// collection that is being deleted looks current here: stores also keep to their own marks.
    fn is_current(&self, collection: &str) -> bool;
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
        match self.run() {
            Some(run) => run.generation(),
            None => self
                .config()
                .collection_generation(self.workspace(), collection),
        }
    }

    fn is_current(&self, collection: &str) -> bool {
        self.run().is_none_or(|run| {
            let now = self
                .config()
                .collection_generation(self.workspace(), collection);
            run.generation() >= now
        })
    }
}

fn track(cx: &Cx) -> Option<&Track> {
    let follow: &dyn Any = cx.follow()?;
    follow.downcast_ref()
}
