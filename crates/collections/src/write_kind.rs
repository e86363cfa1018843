//! How a change comes to a collection.

use tg_mesh::Cx;
use tg_runs::RunContext;

/// How a change comes to a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteKind {
    /// In a run that began with this generation of the collection: once that is dropped, what still comes is
    /// dropped too.
    Tracked,
    /// From anywhere else: a collection that does not exist begins with it.
    Direct,
}

impl WriteKind {
    /// The kind of what a handler writes.
    pub fn of(cx: &Cx) -> Self {
        match cx.run() {
            Some(_) => Self::Tracked,
            None => Self::Direct,
        }
    }
}
