//! Which collections have policies, and which of them a core has parts of.

use async_trait::async_trait;
use tg_collections::CollectionKey;
use tg_storage::StorageError;
use tg_storage::rusqlite::{Transaction, params};

use super::file::SqliteCores;
use crate::engine::key::CoreKey;
use crate::store::PolicyStore;

#[async_trait]
impl PolicyStore for SqliteCores {
    async fn note_policies(&self, collection: &CollectionKey) -> Result<(), StorageError> {
        let of = collection.clone();
        let sql = "INSERT INTO judged VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
        self.db
            .write(move |tx| {
                let named = params![of.workspace(), of.collection(), of.generation()];
                tx.prepare_cached(sql)?.execute(named)?;
                Ok(())
            })
            .await
    }

    async fn has_policies(&self, collection: &CollectionKey) -> Result<bool, StorageError> {
        let of = collection.clone();
        let sql = "SELECT EXISTS (SELECT 1 FROM judged
                   WHERE workspace = ?1 AND collection = ?2 AND incarnation = ?3)";
        self.db
            .read(move |conn| {
                let named = params![of.workspace(), of.collection(), of.generation()];
                Ok(conn
                    .prepare_cached(sql)?
                    .query_row(named, |row| row.get(0))?)
            })
            .await
    }

    async fn is_judged(&self, core: &CoreKey) -> Result<bool, StorageError> {
        let core = core.clone();
        let sql = "SELECT EXISTS (
                       SELECT 1 FROM judged JOIN source USING (collection, incarnation)
                       WHERE judged.workspace = ?1 AND source.core =
                             (SELECT id FROM core WHERE workspace = ?1 AND name = ?2 AND kind = ?3)
                   ) OR EXISTS (
                       SELECT 1 FROM judged JOIN load USING (workspace, collection, incarnation)
                       WHERE judged.workspace = ?1 AND load.core = ?2 AND load.kind = ?3
                   )";
        self.db
            .read(move |conn| {
                let named = params![core.workspace, core.id, core.kind.code()];
                Ok(conn
                    .prepare_cached(sql)?
                    .query_row(named, |row| row.get(0))?)
            })
            .await
    }
}

pub(super) fn note_source(
    tx: &Transaction<'_>,
    core: i64,
    collection: &CollectionKey,
) -> Result<(), StorageError> {
    let sql = "INSERT INTO source VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    let named = params![core, collection.collection(), collection.generation()];
    tx.prepare_cached(sql)?.execute(named)?;
    Ok(())
}

pub(super) fn drop_sources(tx: &Transaction<'_>, core: i64) -> Result<(), StorageError> {
    tx.prepare_cached("DELETE FROM source WHERE core = ?1")?
        .execute([core])?;
    Ok(())
}

pub(super) fn drop_workspace(tx: &Transaction<'_>, workspace: &str) -> Result<(), StorageError> {
    tx.prepare_cached("DELETE FROM judged WHERE workspace = ?1")?
        .execute([workspace])?;
    Ok(())
}
