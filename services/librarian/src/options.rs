//! What whoever starts the service decides.

use std::path::PathBuf;

use tg_storage::Durability;

use crate::engine::quota::Quota;

/// Options of the librarian.
#[derive(Debug, Clone)]
pub struct Options {
    /// Directory of the rows, and of the content beside them.
    pub data_dir: PathBuf,
    /// How hard a commit is.
    pub durability: Durability,
    /// What each workspace may keep.
    pub quota: Quota,
}
