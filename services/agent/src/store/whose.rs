//! Whose runs and tasks are meant, and whether their workspace is still there.

use std::sync::Arc;

/// Whether the workspace of what is written has ended meanwhile. Asked in the transaction that writes: what was purged is
/// not written again.
#[derive(Clone)]
pub struct IsOver(Arc<dyn Fn() -> bool + Send + Sync>);

impl IsOver {
    /// As something else says.
    pub fn when(says: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(says))
    }

    /// Whether it has.
    pub fn holds(&self) -> bool {
        (self.0)()
    }
}

/// A run that is written to.
#[derive(Clone)]
pub struct RunKey {
    /// Its id.
    pub run: String,
    /// Whether its workspace has ended.
    pub is_over: IsOver,
}

/// Whose runs are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// Those of a user.
    User(String),
    /// Those of a workspace, by the text form of its key, whoever asked for them.
    Workspace(String),
}
