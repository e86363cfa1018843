//! A file whose tables are full of one text: what tests of all stores look for after another workspace was kept.

use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::OneWorkspace;
use crate::{Durability, StorageError, connection, identity, query_rows};

/// What stands in columns of numbers: of no row that a store makes.
const NUMBER: i64 = 7_000_007;

impl OneWorkspace {
    /// For tests: makes the file, if it is not there, and adds a row to each table, the text in each of its columns that
    /// takes one. Tables of `but` are left out. Its triggers go. Blocks.
    ///
    /// # Errors
    /// When the file cannot be written.
    #[doc(hidden)]
    pub fn fill(&self, file: &Path, text: &str, but: &[&str]) -> Result<(), StorageError> {
        let (conn, _wal) = connection::writer(file, self.migrations, Durability::Process)?;
        identity::ensure(&conn)?;
        // A row of nothing but the text fits no rule of its table.
        conn.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON;")?;
        let triggers = "SELECT name FROM sqlite_master WHERE type = 'trigger'";
        for trigger in query_rows(&conn, triggers, [], |row| row.get::<_, String>(0))? {
            conn.execute_batch(&format!("DROP TRIGGER \"{trigger}\""))?;
        }
        let tables =
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
        for table in query_rows(&conn, tables, [], |row| row.get::<_, String>(0))? {
            if !but.contains(&table.as_str()) {
                add(&conn, &table, text)?;
            }
        }
        conn.close().map_err(|(_, error)| error.into())
    }
}

fn add(conn: &Connection, table: &str, text: &str) -> Result<(), StorageError> {
    let columns = "SELECT type FROM pragma_table_info(?1) ORDER BY cid";
    let values = query_rows(conn, columns, [table], |row| {
        let kind: String = row.get(0)?;
        Ok(match kind.as_str() {
            "TEXT" => Value::Text(text.to_owned()),
            "BLOB" => Value::Blob(text.as_bytes().to_vec()),
            _ => Value::Integer(NUMBER),
        })
    })?;
    let marks = vec!["?"; values.len()].join(", ");
    let sql = format!("INSERT OR REPLACE INTO \"{table}\" VALUES ({marks})");
    conn.execute(&sql, params_from_iter(values))?;
    Ok(())
}
