//! Who asks.

use super::ids;

/// Who asks, under which question id, as part of which thread, and when.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asker {
    /// Key of the workspace.
    pub(crate) workspace: String,
    /// Id of the question; empty for a record.
    pub(crate) question: String,
    /// Thread of the record that is handled, for runs.
    pub(crate) thread: String,
    /// Milliseconds since the Unix epoch.
    pub(crate) now: i64,
}

impl Asker {
    /// Whether the question is part of a run.
    pub(crate) fn in_run(&self) -> bool {
        self.thread.starts_with(ids::RUN)
    }
}
