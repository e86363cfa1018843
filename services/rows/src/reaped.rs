//! What the reaper of deleted workspaces does here: their rows go out of use, and off the disk little by little.

use async_trait::async_trait;
use tg_collections::WorkspaceStore;
use tg_schemas::{Error, WorkspaceKey, WorkspaceTombstone};
use tg_storage::Database;

use crate::store::Store;

#[async_trait]
impl WorkspaceStore for Store {
    async fn workspaces(&self) -> Result<Vec<String>, Error> {
        Ok(self.known_workspaces().await?)
    }

    async fn purge(&self, key: &WorkspaceKey, _: &WorkspaceTombstone) -> Result<(), Error> {
        self.drop_workspace(key.as_str()).await?;
        Ok(())
    }

    fn database(&self) -> &Database {
        self.file()
    }
}
