//! What the reaper of deleted workspaces does here: their library goes.

use async_trait::async_trait;
use tg_collections::WorkspaceStore;
use tg_schemas::{Error, WorkspaceKey, WorkspaceTombstone};
use tg_storage::Database;

use crate::service::Librarian;

#[async_trait]
impl WorkspaceStore for Librarian {
    async fn workspaces(&self) -> Result<Vec<String>, Error> {
        self.library.workspaces().await
    }

    async fn purge(&self, key: &WorkspaceKey, _: &WorkspaceTombstone) -> Result<(), Error> {
        self.library.purge(key.as_str()).await
    }

    fn database(&self) -> &Database {
        self.library.database()
    }
}
