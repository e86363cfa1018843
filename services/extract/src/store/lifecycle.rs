//! The end of workspaces: replies that were paid for them are purged, and what they said in vain.

use async_trait::async_trait;
use tg_collections::{KnownConfig, WorkspaceStore};
use tg_schemas::{Error, WorkspaceKey, WorkspaceTombstone};

use super::sqlite::SqliteLedger;

#[async_trait]
impl WorkspaceStore for SqliteLedger {
    async fn workspaces(&self) -> Result<Vec<String>, Error> {
        Ok(self.known_workspaces().await?)
    }

    async fn purge(&self, key: &WorkspaceKey, _: &WorkspaceTombstone) -> Result<(), Error> {
        while self.purge_some(key.as_str().to_owned()).await? {}
        Ok(())
    }

    fn known_config(&self) -> &dyn KnownConfig {
        self.file()
    }
}
