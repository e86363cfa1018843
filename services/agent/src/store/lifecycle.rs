//! The end of workspaces: what was asked and answered in them is purged.

use async_trait::async_trait;
use tg_collections::{KnownConfig, WorkspaceStore};
use tg_schemas::{Error, WorkspaceKey, WorkspaceTombstone};

use super::Ledger;

#[async_trait]
impl WorkspaceStore for Ledger {
    async fn workspaces(&self) -> Result<Vec<String>, Error> {
        Ok((**self).workspaces().await?)
    }

    async fn purge(&self, key: &WorkspaceKey, _: &WorkspaceTombstone) -> Result<(), Error> {
        while self.purge_some(key.as_str()).await? {}
        Ok(())
    }

    fn known_config(&self) -> &dyn KnownConfig {
        (**self).known_config()
    }
}
