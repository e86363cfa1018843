//! What the reaper of deleted workspaces does here: replies that were paid for them are forgotten.

use async_trait::async_trait;
use tg_collections::{KnownConfig, WorkspaceStore};
use tg_schemas::{Error, WorkspaceKey, WorkspaceTombstone};

use crate::store::Ledger;

#[async_trait]
impl WorkspaceStore for Ledger {
    async fn workspaces(&self) -> Result<Vec<String>, Error> {
        Ok(Self::workspaces(self).await?)
    }

    async fn purge(&self, key: &WorkspaceKey, _: &WorkspaceTombstone) -> Result<(), Error> {
        while self.forget_some(key.as_str().to_owned()).await? {}
        Ok(())
    }

    fn known_config(&self) -> &dyn KnownConfig {
        self.file()
    }
}
