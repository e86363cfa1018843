//! The life cycle of what is kept here: what is taken back, and the end of collections and workspaces.

use async_trait::async_trait;
use tg_collections::{CollectionKey, CollectionStore, KnownConfig, WorkspaceStore, WriteKind};
use tg_schemas::msg::Retract;
use tg_schemas::{Error, WorkspaceKey, WorkspaceTombstone};

use super::keywords::SqliteKeywords;
use super::points::{SqlitePoints, schema};
use crate::engine::kind::Kind;

#[async_trait]
impl WorkspaceStore for SqlitePoints {
    async fn workspaces(&self) -> Result<Vec<String>, Error> {
        Ok(self.db().read(schema::workspaces).await?)
    }

    async fn purge(&self, key: &WorkspaceKey, _: &WorkspaceTombstone) -> Result<(), Error> {
        self.end_workspace(key.as_str()).await?;
        Ok(())
    }

    fn known_config(&self) -> &dyn KnownConfig {
        self.db()
    }
}

#[async_trait]
impl CollectionStore for SqlitePoints {
    const ITEMS: &'static str = "vectors";
    const RETRACTED: &'static str = "tg_vectors_retracted_total";
    /// Each writer retracts what it wrote.
    type Part = Kind;

    async fn retract(
        &self,
        key: &CollectionKey,
        _: WriteKind,
        part: Kind,
        what: Retract,
    ) -> Result<u64, Error> {
        Ok(self.retract_points(key, part, what.chunks).await? as u64)
    }

    async fn drop_collection(&self, last: &CollectionKey) -> Result<u64, Error> {
        Ok(self.end_collection(last).await? as u64)
    }
}

#[async_trait]
impl WorkspaceStore for SqliteKeywords {
    async fn workspaces(&self) -> Result<Vec<String>, Error> {
        Ok(self.db().read(schema::workspaces).await?)
    }

    async fn purge(&self, key: &WorkspaceKey, _: &WorkspaceTombstone) -> Result<(), Error> {
        self.end_workspace(key.as_str()).await?;
        Ok(())
    }

    fn known_config(&self) -> &dyn KnownConfig {
        self.db()
    }
}

#[async_trait]
impl CollectionStore for SqliteKeywords {
    const ITEMS: &'static str = "keywords";
    const RETRACTED: &'static str = "tg_keywords_retracted_total";
    type Part = ();

    async fn retract(
        &self,
        key: &CollectionKey,
        _: WriteKind,
        (): (),
        what: Retract,
    ) -> Result<u64, Error> {
        Ok(self.retract_chunks(key, what.chunks).await? as u64)
    }

    async fn drop_collection(&self, last: &CollectionKey) -> Result<u64, Error> {
        Ok(self.end_collection(last).await? as u64)
    }
}
