//! What names a core.

use tg_schemas::{Error, ErrorCode};

use crate::error;

/// Longest name in bytes.
const LONGEST: usize = 1024;

/// What a core is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// Triples and vectors of entities.
    Graph,
    /// Vectors of chunks.
    Document,
}

impl Kind {
    /// As stored; never changes.
    pub(crate) fn code(self) -> i64 {
        match self {
            Self::Graph => 1,
            Self::Document => 2,
        }
    }

    /// In the names of operations.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Graph => "kg",
            Self::Document => "de",
        }
    }
}

/// A core of a workspace. Compared field by field; its parts are never joined to one name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CoreKey {
    pub(crate) workspace: String,
    pub(crate) id: String,
    pub(crate) kind: Kind,
}

impl CoreKey {
    /// Names a core; `path` is told when it cannot be one.
    pub(crate) fn new(workspace: &str, kind: Kind, id: &str, path: &str) -> Result<Self, Error> {
        if id.is_empty() {
            return Err(error::field(path, "is required"));
        }
        if id.len() > LONGEST {
            let text = format!("{path}: is longer than {LONGEST} bytes");
            return Err(Error::new(ErrorCode::TooLarge, text));
        }
        Ok(Self {
            workspace: workspace.to_owned(),
            id: id.to_owned(),
            kind,
        })
    }
}
