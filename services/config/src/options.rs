//! What whoever starts the service decides.

use std::path::PathBuf;
use std::time::Duration;

use tg_schemas::limits;
use tg_storage::Durability;

tg_settings::options! {
    /// Options of the config service.
    pub struct Options {
        /// How long a deleted workspace can be restored before its data is purged, in hours. 0: it is purged at once.
        restore_hours: u64 = 168, Whole(0..=24 * 366);
        /// Configuration of one workspace at most, in MiB of its types, keys and values and 256 bytes for each row and type,
        /// which bounds their number, too: all of it is held in memory, and each process holds the types that it reads. One
        /// type has at most half of that.
        workspace_mb: usize = limits::CONFIG_WORKSPACE >> 20, Whole(1..=4_096);
    }
    given {
        /// Directory of the service's files.
        data_dir: PathBuf,
        /// What a committed write survives.
        durability: Durability,
    }
}

impl Options {
    /// How long a deleted workspace can be restored.
    pub(crate) fn grace(&self) -> Duration {
        Duration::from_secs(self.restore_hours * 3600)
    }
}
