//! Dropping whole collections: out of sight at once, off the disk little by little.

use rusqlite::types::Value;
use rusqlite::{OptionalExtension, Transaction};
use tg_collections::CollectionKey;
use tg_storage::StorageError;

use super::SqliteRows;

/// Rows removed in one transaction, so that writers need not wait long.
const STRIP: usize = 5_000;

impl SqliteRows {
    /// Takes every generation of a collection up to the key's out of use. Returns how many rows that were.
    pub(super) async fn drop_rows(&self, last: &CollectionKey) -> Result<i64, StorageError> {
        let bound = vec![
            Value::Text(last.workspace().to_owned()),
            Value::Text(last.collection().to_owned()),
            Value::Integer(last.generation()),
        ];
        let which = "workspace = ?1 AND collection = ?2 AND incarnation <= ?3";
        self.retire(which, bound).await
    }

    /// Takes everything of a workspace out of use. Returns how many rows that were.
    pub(super) async fn drop_workspace(&self, workspace: &str) -> Result<i64, StorageError> {
        let bound = vec![Value::Text(workspace.to_owned())];
        self.retire("workspace = ?1", bound).await
    }

    async fn retire(&self, which: &'static str, bound: Vec<Value>) -> Result<i64, StorageError> {
        let retire = move |tx: &Transaction<'_>| {
            let mut sets = tx.prepare(&format!(
                "SELECT id FROM sets WHERE dropped = 0 AND {which}"
            ))?;
            let ids = sets.query_map(rusqlite::params_from_iter(bound), |row| row.get(0))?;
            let ids: Vec<i64> = ids.collect::<Result<_, _>>()?;
            let mut rows = 0;
            for id in ids {
                let count = format!("SELECT count(*) FROM r{id}");
                rows += tx.query_row(&count, [], |row| row.get::<_, i64>(0))?;
                super::shape::retire(tx, id)?;
            }
            Ok(rows)
        };
        self.database.write(retire).await
    }

    /// Removes some of what is out of use. `false` when nothing was left.
    pub(super) async fn purge_step(&self) -> Result<bool, StorageError> {
        let step = |tx: &Transaction<'_>| {
            let dropped: Option<i64> = tx
                .query_row("SELECT id FROM sets WHERE dropped = 1 LIMIT 1", [], |row| {
                    row.get(0)
                })
                .optional()?;
            let Some(id) = dropped else { return Ok(false) };
            let sources = format!(
                "DELETE FROM sources WHERE set_id = {id} AND (set_id, key, chunk) IN \
                 (SELECT set_id, key, chunk FROM sources WHERE set_id = {id} LIMIT {STRIP})"
            );
            let rows = format!("DELETE FROM r{id} WHERE n IN (SELECT n FROM r{id} LIMIT {STRIP})");
            if tx.execute(&sources, [])? == 0 && tx.execute(&rows, [])? == 0 {
                tx.execute_batch(&format!("DROP TABLE r{id}"))?;
                tx.execute("DELETE FROM sets WHERE id = ?1", [id])?;
            }
            Ok(true)
        };
        self.database.write(step).await
    }
}
