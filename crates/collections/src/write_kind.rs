//! How a change comes to a collection.

use tg_mesh::Cx;
use tg_runs::RunContext;

/// How a change comes to a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteKind {
    /// For a generation of the collection that was there when it was sent, or when its run began: once that is
    /// dropped, what still comes is dropped too.
    Tracked,
    /// From anywhere else: a collection that does not exist begins with it.
    Direct,
}

impl WriteKind {
    /// The kind of what a handler writes to a collection.
    pub fn of(cx: &Cx, collection: &str) -> Self {
        match cx.is_tied(collection) {
            true => Self::Tracked,
            false => Self::Direct,
        }
    }
}
