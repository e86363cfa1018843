//! The end of workspaces: their cores, loads and waiting documents go.

use async_trait::async_trait;
use tg_collections::{KnownConfig, WorkspaceStore};
use tg_schemas::{Error, WorkspaceKey, WorkspaceTombstone};

use super::SqliteCores;

#[async_trait]
impl WorkspaceStore for SqliteCores {
    async fn workspaces(&self) -> Result<Vec<String>, Error> {
        Ok(self.known_workspaces().await?)
    }

    async fn purge(&self, key: &WorkspaceKey, _: &WorkspaceTombstone) -> Result<(), Error> {
        self.drop_workspace(key.as_str()).await?;
        Ok(())
    }

    fn known_config(&self) -> &dyn KnownConfig {
        self.file()
    }
}
