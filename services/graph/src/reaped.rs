//! What the reaper of deleted workspaces does here: their journals end.

use async_trait::async_trait;
use tg_collections::WorkspaceStore;
use tg_schemas::{Error, ErrorCode, WorkspaceKey, WorkspaceTombstone};
use tg_storage::Database;

use crate::{Engine, store};

#[async_trait]
impl WorkspaceStore for Engine {
    async fn workspaces(&self) -> Result<Vec<String>, Error> {
        let known = self.shared.journal.read(store::workspaces).await;
        Ok(known.map_err(Error::from)?)
    }

    async fn purge(&self, key: &WorkspaceKey, _: &WorkspaceTombstone) -> Result<(), Error> {
        let ended = self.drop_workspace(key.as_str()).await;
        ended.map_err(|error| error.to_wire(ErrorCode::Storage.as_str()))?;
        Ok(())
    }

    fn database(&self) -> &Database {
        &self.shared.journal
    }
}
