//! One step of what an operation changes. The steps of an operation are stored together.

use super::{Key, User, Workspace};

/// A row that is put or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// New, or replaces the one with its id.
    PutWorkspace(Workspace),
    /// By id.
    RemoveWorkspace(String),
    /// New, or replaces the one with its id; the username never changes.
    PutUser(User),
    /// By id. The user's keys are removed by changes of their own.
    RemoveUser(String),
    /// New.
    PutKey(Key),
    /// By id.
    RemoveKey(String),
}
