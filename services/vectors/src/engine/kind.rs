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

    /// For people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Entity => "entity",
            Self::Chunk => "chunk",
            Self::Row => "row",
        }
    }
}

/// What the code of a kind has more while its vectors are staged.
const STAGED: i64 = 100;

/// Where vectors of a kind are: those that answer questions, and beside them those of another model that will.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) kind: Kind,
    pub(crate) staged: bool,
}

impl Place {
    /// Where questions look.
    pub(crate) fn serving(kind: Kind) -> Self {
        Self {
            kind,
            staged: false,
        }
    }

    /// Where vectors wait for the switch.
    pub(crate) fn staged(kind: Kind) -> Self {
        Self { kind, staged: true }
    }

    /// As stored; never changes.
    pub(crate) fn code(self) -> i64 {
        let code = match self.kind {
            Kind::Entity => 1,
            Kind::Chunk => 2,
            Kind::Row => 3,
        };
        match self.staged {
            true => STAGED + code,
            false => code,
        }
    }
}
