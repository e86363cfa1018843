//! What words are taken back, and the end of collections and workspaces.

use async_trait::async_trait;
use tg_collections::{
    CollectionKey, CollectionStore, KnownConfig, Retractions, WorkspaceStore, WriteKind,
};
use tg_schemas::msg::Retract;
use tg_schemas::{Error, WorkspaceKey, WorkspaceTombstone};

use super::{Job, SqliteKeywords};
use crate::store::points::schema;

#[async_trait]
impl WorkspaceStore for SqliteKeywords {
    async fn workspaces(&self) -> Result<Vec<String>, Error> {
        Ok(self.db.read(schema::workspaces).await?)
    }

    async fn purge(&self, key: &WorkspaceKey, _: &WorkspaceTombstone) -> Result<(), Error> {
        self.retractions().forget(key.as_str()).await?;
        self.change(Job::DropWorkspace(key.to_string())).await?;
        Ok(())
    }

    fn known_config(&self) -> &dyn KnownConfig {
        &self.db
    }
}

#[async_trait]
impl CollectionStore for SqliteKeywords {
    const ITEMS: &'static str = "keywords";
    const RETRACTED: &'static str = "tg_keywords_retracted_total";
    type Part = ();

    fn retractions(&self) -> &dyn Retractions {
        &self.db
    }

    async fn retract(
        &self,
        key: &CollectionKey,
        _: WriteKind,
        (): (),
        what: Retract,
    ) -> Result<u64, Error> {
        Ok(self.change(Job::Retract(key.clone(), what.chunks)).await? as u64)
    }

    async fn drop_collection(&self, last: &CollectionKey) -> Result<u64, Error> {
        Ok(self.change(Job::Drop(last.clone())).await? as u64)
    }
}
