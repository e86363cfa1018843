//! What the reaper of deleted workspaces does here: their library goes.

use async_trait::async_trait;
use tg_collections::{KnownConfig, WorkspaceStore};
use tg_schemas::{Error, WorkspaceKey, WorkspaceTombstone};

use crate::librarian::Librarian;

#[async_trait]
impl WorkspaceStore for Librarian {
    async fn workspaces(&self) -> Result<Vec<String>, Error> {
        self.library.workspaces().await
    }

    async fn purge(&self, key: &WorkspaceKey, _: &WorkspaceTombstone) -> Result<(), Error> {
        self.library.purge(key.as_str()).await
    }

    fn known_config(&self) -> &dyn KnownConfig {
        self.library.rows()
    }
}
