//! The life cycle of what is kept here: what is taken back, and the end of collections and workspaces. Rows go out of
//! use at once, and off the disk little by little.

use async_trait::async_trait;
use tg_collections::{
    CollectionKey, CollectionStore, KnownConfig, Retractions, WorkspaceStore, WriteKind,
};
use tg_schemas::msg::Retract;
use tg_schemas::{Error, WorkspaceKey, WorkspaceTombstone};

use super::SqliteRows;

#[async_trait]
impl WorkspaceStore for SqliteRows {
    async fn workspaces(&self) -> Result<Vec<String>, Error> {
        Ok(self.known_workspaces().await?)
    }

    async fn purge(&self, key: &WorkspaceKey, _: &WorkspaceTombstone) -> Result<(), Error> {
        self.retractions().forget(key.as_str()).await?;
        self.drop_workspace(key.as_str()).await?;
        Ok(())
    }

    fn known_config(&self) -> &dyn KnownConfig {
        self.file()
    }
}

#[async_trait]
impl CollectionStore for SqliteRows {
    const ITEMS: &'static str = "rows";
    const RETRACTED: &'static str = "tg_rows_retracted_total";
    type Part = ();

    fn retractions(&self) -> &dyn Retractions {
        self.file()
    }

    async fn retract(
        &self,
        key: &CollectionKey,
        _: WriteKind,
        (): (),
        what: Retract,
    ) -> Result<u64, Error> {
        Ok(self.retract_rows(key, what).await? as u64)
    }

    async fn drop_collection(&self, last: &CollectionKey) -> Result<u64, Error> {
        let rows = self.drop_rows(last).await?;
        Ok(rows.unsigned_abs())
    }
}
