//! The end of workspaces: what was said in them is purged with their files.

use async_trait::async_trait;
use tg_collections::{KnownConfig, WorkspaceStore};
use tg_schemas::{Error, WorkspaceKey, WorkspaceTombstone};

use super::sqlite::SqliteSessions;

#[async_trait]
impl WorkspaceStore for SqliteSessions {
    async fn workspaces(&self) -> Result<Vec<String>, Error> {
        Ok(self.files().workspaces().await?)
    }

    async fn purge(&self, key: &WorkspaceKey, _: &WorkspaceTombstone) -> Result<(), Error> {
        Ok(self.purge_whole(key).await?)
    }

    fn known_config(&self) -> &dyn KnownConfig {
        self.files().index()
    }
}
