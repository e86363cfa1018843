//! What the reaper of deleted workspaces does here: their vectors and words end.

use async_trait::async_trait;
use tg_collections::WorkspaceStore;
use tg_schemas::{Error, WorkspaceKey, WorkspaceTombstone};
use tg_storage::Database;

use crate::engine::Engine;
use crate::keywords::Keywords;
use crate::store;

#[async_trait]
impl WorkspaceStore for Engine {
    async fn workspaces(&self) -> Result<Vec<String>, Error> {
        Ok(self.db().read(store::workspaces).await?)
    }

    async fn purge(&self, key: &WorkspaceKey, _: &WorkspaceTombstone) -> Result<(), Error> {
        self.drop_workspace(key.as_str()).await?;
        Ok(())
    }

    fn database(&self) -> &Database {
        self.db()
    }
}

#[async_trait]
impl WorkspaceStore for Keywords {
    async fn workspaces(&self) -> Result<Vec<String>, Error> {
        Ok(self.db().read(store::workspaces).await?)
    }

    async fn purge(&self, key: &WorkspaceKey, _: &WorkspaceTombstone) -> Result<(), Error> {
        self.drop_workspace(key.as_str()).await?;
        Ok(())
    }

    fn database(&self) -> &Database {
        self.db()
    }
}
