//! What whoever starts the service decides.

use std::path::PathBuf;
use std::time::Duration;

use tg_storage::Durability;

/// Options of the config service.
#[derive(Debug, Clone)]
pub struct Options {
    /// Directory of the service's file.
    pub data_dir: PathBuf,
    /// How hard a commit is.
    pub durability: Durability,
    /// How long a deleted workspace can be restored. Zero: not at all.
    pub grace: Duration,
}
