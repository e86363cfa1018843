//! Holds workspaces to their quota. Looked at in the transaction that would add some, before anything is written.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::{Transaction, params};
use tg_collections::{Quota, Usage, Words};
use tg_storage::{StorageError, query_rows};
use tokio::time::Instant;

/// How the quota is told.
const WORDS: Words = Words {
    place: "the tables",
    items: "rows",
    bytes: "of text",
};
/// Counting goes through all rows: a workspace at its limit has that done no more often.
const EVERY: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Gate {
    /// `None`: everything has room.
    quota: Option<Quota>,
    /// Workspaces that were counted and found full, and when.
    full: Mutex<HashMap<String, Instant>>,
}

impl Gate {
    pub(super) fn of(quota: Quota) -> Self {
        Self {
            quota: Some(quota),
            full: Mutex::default(),
        }
    }

    /// Refuses so many rows of so many bytes for a workspace that has no room for them, taking all of them for new
    /// ones.
    pub(super) fn check(
        &self,
        tx: &Transaction<'_>,
        workspace: &str,
        rows: usize,
        bytes: usize,
    ) -> Result<(), StorageError> {
        let Some(quota) = self.quota else {
            return Ok(());
        };
        self.check_rows(tx, quota, workspace, rows as u64)?;
        let usage = |bytes| Usage { items: 0, bytes };
        let outcome = quota.check(&WORDS, usage(held(tx, workspace)?), usage(bytes as u64));
        outcome.map_err(StorageError::Refused)
    }

    fn check_rows(
        &self,
        tx: &Transaction<'_>,
        quota: Quota,
        workspace: &str,
        more: u64,
    ) -> Result<(), StorageError> {
        let usage = |items| Usage { items, bytes: 0 };
        let check = |held| quota.check(&WORDS, usage(held), usage(more));
        // The greatest number is found at once, and there are no more rows than that.
        let most = rows(tx, workspace, "coalesce(max(n), 0)")?;
        let Err(mut refused) = check(most) else {
            return Ok(());
        };
        let mut full = self.full.lock();
        full.retain(|_, when| when.elapsed() < EVERY);
        if !full.contains_key(workspace) {
            match check(rows(tx, workspace, "count(*)")?) {
                Ok(()) => return Ok(()),
                Err(error) => refused = error,
            }
            full.insert(workspace.to_owned(), Instant::now());
        }
        Err(StorageError::Refused(refused))
    }
}

fn live(tx: &Transaction<'_>, workspace: &str, which: &str) -> Result<Vec<i64>, StorageError> {
    let sql = format!("SELECT id FROM sets WHERE workspace = ?1 AND dropped = 0 {which}");
    query_rows(tx, &sql, params![workspace], |row| row.get(0))
}

fn rows(tx: &Transaction<'_>, workspace: &str, what: &str) -> Result<u64, StorageError> {
    let mut sum: u64 = 0;
    for id in live(tx, workspace, "")? {
        let count = format!("SELECT {what} FROM r{id}");
        let count: i64 = tx.query_row(&count, [], |row| row.get(0))?;
        sum = sum.saturating_add(count.unsigned_abs());
    }
    Ok(sum)
}

/// Bytes of a workspace's rows. Tables of the release before are measured once.
fn held(tx: &Transaction<'_>, workspace: &str) -> Result<u64, StorageError> {
    for id in live(tx, workspace, "AND bytes IS NULL")? {
        measure(tx, id)?;
    }
    let sql = "SELECT coalesce(sum(bytes), 0) FROM sets WHERE workspace = ?1 AND dropped = 0";
    let sum: i64 = tx
        .prepare_cached(sql)?
        .query_row(params![workspace], |row| row.get(0))?;
    Ok(sum.unsigned_abs())
}

/// Notes how many bytes the rows of a table have.
pub(super) fn measure(tx: &Transaction<'_>, id: i64) -> Result<(), StorageError> {
    let sql = format!(
        "UPDATE sets SET bytes = (SELECT coalesce(sum(octet_length(texts)), 0) FROM r{id}) WHERE id = {id}"
    );
    tx.execute(&sql, [])?;
    Ok(())
}

/// Notes that the rows of a table have so many bytes more, or fewer. One that was not measured yet stays so.
pub(super) fn grown(tx: &Transaction<'_>, id: i64, by: i64) -> Result<(), StorageError> {
    if by != 0 {
        tx.prepare_cached("UPDATE sets SET bytes = bytes + ?2 WHERE id = ?1")?
            .execute([id, by])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tg_collections::{CollectionKey, Quota};
    use tg_schemas::table::Table;

    use crate::engine::value;
    use crate::store::RowStore;
    use crate::store::sqlite::SqliteRows;

    #[tokio::test]
    async fn tables_of_the_release_before_are_measured() {
        let quota = Quota {
            bytes: 1_000,
            ..Quota::UNLIMITED
        };
        let store = SqliteRows::in_memory().unwrap().holding(quota);
        let table = Table::read(
            "notes",
            r#"{"fields": [{"name": "id", "primary_key": true}]}"#,
        );
        let table = table.unwrap();
        let write = async |id: &str| {
            let texts = [("id".to_owned(), id.repeat(600))].into();
            let row = value::row(&table, &texts).unwrap();
            let key = CollectionKey::new("w", "c");
            let written = store.write(&key, table.clone(), vec![row], String::new());
            written.await
        };
        write("a").await.unwrap();
        let forget =
            |tx: &rusqlite::Transaction<'_>| Ok(tx.execute("UPDATE sets SET bytes = NULL", [])?);
        store.file().write(forget).await.unwrap();
        assert!(write("b").await.is_err());
    }
}
