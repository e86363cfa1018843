//! How a backup keeps one workspace of the rows: its sets, and of the tables of rows those that these name.

use rusqlite::Transaction;
use tg_storage::{OneWorkspace, StorageError, query_rows};

use super::MIGRATIONS;

/// See the module.
pub const ONE_WORKSPACE: OneWorkspace = OneWorkspace::new(
    MIGRATIONS,
    &[
        "DELETE FROM sets WHERE workspace <> ?1 OR dropped <> 0",
        "DELETE FROM sources WHERE set_id NOT IN (SELECT id FROM sets)",
    ],
)
.and(drop_tables);

/// Removes the tables of rows that belong to no set.
fn drop_tables(tx: &Transaction<'_>) -> Result<(), StorageError> {
    let sql = "SELECT name FROM sqlite_master
               WHERE type = 'table' AND name GLOB 'r[0-9]*'
               AND name NOT IN (SELECT 'r' || id FROM sets)";
    for name in query_rows(tx, sql, [], |row| row.get::<_, String>(0))? {
        tx.execute_batch(&format!("DROP TABLE {name}"))?;
    }
    Ok(())
}
