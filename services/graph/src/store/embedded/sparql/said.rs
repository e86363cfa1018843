//! What passes from the thread of a query to its reader.

use crate::error::GraphError;
use crate::store::{Form, Part};

/// What the query's thread says.
pub(super) enum Said {
    Open(Form, Vec<String>),
    /// Results, and the bytes of memory they take.
    Part(Part, usize),
    Error(GraphError),
    End,
}
