//! Bounds of the service, and what whoever starts it decides.

use std::path::PathBuf;
use std::time::Duration;

use tg_collections::Quota;
use tg_storage::Durability;

/// Records in progress: they share commits.
pub(crate) const WRITES: usize = 128;
/// Questions in progress.
pub(crate) const QUESTIONS: usize = 64;
/// Pause between two looks for rows that were dropped.
pub(crate) const LOOK: Duration = Duration::from_secs(5);

tg_settings::options! {
    /// Options of the rows.
    pub struct Options {
        /// Rows of one workspace at most.
        workspace_rows: u64 = 20_000_000, Whole(1..=1 << 40);
        /// Rows of one workspace at most, in MiB of their fields as text.
        workspace_mb: u64 = 65_536, Whole(1..=1 << 30);
    }
    given {
        /// Directory of the service's files.
        data_dir: PathBuf,
        /// What a committed write survives.
        durability: Durability,
    }
}

impl Options {
    /// What a workspace may keep.
    pub(crate) fn quota(&self) -> Quota {
        Quota {
            items: self.workspace_rows,
            bytes: self.workspace_mb << 20,
        }
    }
}
