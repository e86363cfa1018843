//! Bounds of the service.

/// Records in progress: they share commits.
pub(crate) const WRITES: usize = 128;
/// Questions in progress.
pub(crate) const QUESTIONS: usize = 64;
