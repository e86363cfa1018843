//! Bounds of the service.

use std::time::Duration;

/// Questions in progress in one workspace: an import puts many records side by side.
pub(crate) const QUESTIONS: usize = 128;
/// Records of a flow being kept: they share commits.
pub(crate) const RECORDS: usize = 128;
/// Longest pause between two looks for what was deleted.
pub(crate) const LOOK: Duration = Duration::from_secs(60);
