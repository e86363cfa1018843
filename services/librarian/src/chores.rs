//! What the librarian did by itself, so that it is not done too often.

use tokio::time::Instant;

/// What was done since the library was opened.
#[derive(Debug, Default)]
pub(crate) struct Chores {
    /// Files that nothing names are gone.
    pub(crate) orphans: bool,
    /// When what nobody needs was taken away last.
    pub(crate) tidied: Option<Instant>,
}
