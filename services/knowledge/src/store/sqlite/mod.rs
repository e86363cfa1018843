//! Cores in one SQLite file. All SQL of this service is below this module.
//!
//! Pieces hang on the number of their core. A deleted core loses its row at once; the pieces are purged
//! step by step, by number, so that a new core of the same name never meets them.

mod cores;
mod file;
mod lifecycle;
mod loads;
mod pending;
mod policies;

use tg_storage::StorageError;

pub use self::file::ONE_WORKSPACE;
pub(crate) use self::file::SqliteCores;

impl SqliteCores {
    /// Ends everything of a workspace.
    pub(crate) async fn drop_workspace(&self, workspace: &str) -> Result<(), StorageError> {
        let workspace = workspace.to_owned();
        self.db
            .write(move |tx| {
                cores::drop_workspace(tx, &workspace)?;
                loads::drop_workspace(tx, &workspace)?;
                policies::drop_workspace(tx, &workspace)?;
                pending::drop_workspace(tx, &workspace)
            })
            .await
    }
}
