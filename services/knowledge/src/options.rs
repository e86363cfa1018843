//! Bounds of the service, and what whoever starts it decides.

use std::path::PathBuf;
use std::time::Duration;

use tg_collections::Quota;
use tg_storage::Durability;

/// Questions in progress in one workspace: an import puts many records side by side.
pub(crate) const QUESTIONS: usize = 128;
/// Records of a flow being kept: they share commits.
pub(crate) const RECORDS: usize = 128;
/// Longest pause between two looks for what was deleted.
pub(crate) const LOOK: Duration = Duration::from_secs(60);

tg_settings::options! {
    /// Options of the knowledge cores.
    pub struct Options {
        /// Knowledge cores of one workspace at most.
        workspace_cores: u64 = 200_000, Whole(1..=1 << 40);
        /// What the knowledge cores of one workspace hold at most, in MiB.
        workspace_mb: u64 = 65_536, Whole(1..=1 << 30);
    }
    given {
        /// Directory of the service's file.
        data_dir: PathBuf,
        /// What a committed write survives.
        durability: Durability,
    }
}

impl Options {
    /// What a workspace may keep.
    pub(crate) fn quota(&self) -> Quota {
        Quota {
            items: self.workspace_cores,
            bytes: self.workspace_mb << 20,
        }
    }
}
