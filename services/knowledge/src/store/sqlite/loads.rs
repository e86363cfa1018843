//! What was loaded where: an unload takes out what a load brought in.

use async_trait::async_trait;
use tg_storage::rusqlite::{OptionalExtension, Transaction, params};
use tg_storage::{StorageError, query_rows};

use super::file::SqliteCores;
use crate::engine::key::CoreKey;
use crate::store::{Load, LoadStore};

#[async_trait]
impl LoadStore for SqliteCores {
    async fn note_load(&self, load: &Load) -> Result<(), StorageError> {
        let load = load.clone();
        let sql = "INSERT INTO load VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                   ON CONFLICT (workspace, core, kind, flow, collection)
                   DO UPDATE SET incarnation = excluded.incarnation, run = excluded.run";
        self.db
            .write(move |tx| {
                tx.prepare_cached(sql)?.execute(params![
                    load.core.workspace,
                    load.core.id,
                    load.core.kind.code(),
                    load.flow,
                    load.collection,
                    load.generation,
                    load.run
                ])?;
                Ok(())
            })
            .await
    }

    async fn loads(
        &self,
        core: &CoreKey,
        flow: &str,
        collection: &str,
    ) -> Result<Vec<Load>, StorageError> {
        let (core, flow, collection) = (core.clone(), flow.to_owned(), collection.to_owned());
        let sql = "SELECT collection, incarnation, run FROM load
                   WHERE workspace = ?1 AND core = ?2 AND kind = ?3 AND flow = ?4
                     AND (?5 = '' OR collection = ?5)";
        self.db
            .read(move |conn| {
                let named = params![core.workspace, core.id, core.kind.code(), flow, collection];
                query_rows(conn, sql, named, |row| {
                    Ok(Load {
                        core: core.clone(),
                        flow: flow.clone(),
                        collection: row.get(0)?,
                        generation: row.get(1)?,
                        run: row.get(2)?,
                    })
                })
            })
            .await
    }

    async fn forget_load(&self, load: &Load) -> Result<(), StorageError> {
        let load = load.clone();
        let sql = "DELETE FROM load WHERE workspace = ?1 AND core = ?2 AND kind = ?3
                   AND flow = ?4 AND collection = ?5 AND run = ?6";
        self.db
            .write(move |tx| {
                tx.prepare_cached(sql)?.execute(params![
                    load.core.workspace,
                    load.core.id,
                    load.core.kind.code(),
                    load.flow,
                    load.collection,
                    load.run
                ])?;
                Ok(())
            })
            .await
    }
}

/// Whether a run is a load from here.
pub(super) fn is_load(tx: &Transaction<'_>, run: &str) -> Result<bool, StorageError> {
    let found: Option<i64> = tx
        .prepare_cached("SELECT 1 FROM load WHERE run = ?1")?
        .query_row([run], |row| row.get(0))
        .optional()?;
    Ok(found.is_some())
}

pub(super) fn drop_workspace(tx: &Transaction<'_>, workspace: &str) -> Result<(), StorageError> {
    tx.prepare_cached("DELETE FROM load WHERE workspace = ?1")?
        .execute([workspace])?;
    Ok(())
}
