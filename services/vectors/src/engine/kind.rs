//! What the vectors of a collection stand for.

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
