//! What selects data: a collection of a workspace in one of its lives, and the kind of its vectors.

use std::sync::Arc;

/// A collection of a workspace. Always compared field by field; its parts are never joined to one name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CollectionKey {
    workspace: Arc<str>,
    collection: Arc<str>,
    incarnation: i64,
}

impl CollectionKey {
    /// Names a collection; an empty one is `default`. `incarnation` grows each time the name is created
    /// again after a deletion.
    pub fn new(workspace: &str, collection: &str, incarnation: i64) -> Self {
        let collection = if collection.is_empty() {
            "default"
        } else {
            collection
        };
        Self {
            workspace: workspace.into(),
            collection: collection.into(),
            incarnation,
        }
    }

    /// The same name in another of its lives.
    pub fn in_life(self, incarnation: i64) -> Self {
        Self {
            incarnation,
            ..self
        }
    }

    /// The workspace.
    pub fn workspace(&self) -> &str {
        &self.workspace
    }

    /// The collection.
    pub fn collection(&self) -> &str {
        &self.collection
    }

    /// Which life of the name.
    pub fn incarnation(&self) -> i64 {
        self.incarnation
    }
}

/// How a change comes to a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// In a run that began with this life of the collection: once that is dropped, what still comes is
    /// dropped too.
    Run,
    /// From anywhere else: a collection that does not exist begins with it.
    Open,
}

/// What a vector stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// An entity in some context.
    Entity,
    /// A chunk of a document.
    Chunk,
    /// A value of an index over rows.
    Row,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Entity, Self::Chunk, Self::Row];

    /// As stored; never changes.
    pub(crate) fn code(self) -> i64 {
        match self {
            Self::Entity => 1,
            Self::Chunk => 2,
            Self::Row => 3,
        }
    }

    /// For people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Entity => "entity",
            Self::Chunk => "chunk",
            Self::Row => "row",
        }
    }
}
