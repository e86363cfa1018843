//! What vectors are taken back, and the end of collections and workspaces.

use async_trait::async_trait;
use tg_collections::{
    CollectionKey, CollectionStore, KnownConfig, Retractions, WorkspaceStore, WriteKind,
};
use tg_schemas::msg::Retract;
use tg_schemas::{Error, WorkspaceKey, WorkspaceTombstone};

use super::{Job, SqlitePoints, schema};
use crate::engine::kind::Kind;

#[async_trait]
impl WorkspaceStore for SqlitePoints {
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
impl CollectionStore for SqlitePoints {
    const ITEMS: &'static str = "vectors";
    const RETRACTED: &'static str = "tg_vectors_retracted_total";
    /// Each writer retracts what it wrote.
    type Part = Kind;

    fn retractions(&self) -> &dyn Retractions {
        &self.db
    }

    async fn retract(
        &self,
        key: &CollectionKey,
        _: WriteKind,
        kind: Kind,
        what: Retract,
    ) -> Result<u64, Error> {
        let job = Job::Retract {
            key: key.clone(),
            kind,
            chunks: what.chunks,
            superseded: what.superseded,
        };
        Ok(self.change(job).await?.unwrap_or(0) as u64)
    }

    async fn drop_collection(&self, last: &CollectionKey) -> Result<u64, Error> {
        let gone = self.change(Job::Drop(last.clone())).await?;
        Ok(gone.unwrap_or(0) as u64)
    }
}
