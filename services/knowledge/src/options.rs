//! Bounds of the service, and what whoever starts it decides.

use std::path::PathBuf;
use std::time::Duration;

use tg_storage::Durability;

/// Questions in progress in one workspace: an import puts many records side by side.
pub(crate) const QUESTIONS: usize = 128;
/// Records of a flow being kept: they share commits.
pub(crate) const RECORDS: usize = 128;
/// Longest pause between two looks for what was deleted.
pub(crate) const LOOK: Duration = Duration::from_secs(60);

/// Options of the knowledge cores.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Directory of the service's file.
    pub data_dir: PathBuf,
    /// How hard a commit is.
    pub durability: Durability,
}
