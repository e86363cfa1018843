//! What whoever starts the service decides.

use std::path::PathBuf;

use tg_storage::Durability;

use crate::settings::FlowSettings;

/// Options of the flow service.
#[derive(Debug, Clone)]
pub struct Options {
    /// Directory of the service's file.
    pub data_dir: PathBuf,
    /// How hard a commit is.
    pub durability: Durability,
    /// How long things may take and how much is kept.
    pub settings: FlowSettings,
}
