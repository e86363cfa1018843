//! The rows on disk. All SQL of the service is here.

use std::path::Path;

use tg_storage::rusqlite::{Connection, params};
use tg_storage::{Database, Durability, StorageError};

use crate::engine::{Change, Row, RowKey, Rows};

/// A store that starts anew counts from the clock, so that it never falls behind versions that running
/// processors have seen.
const MIGRATIONS: &[&str] = &["
    CREATE TABLE config (
        workspace TEXT NOT NULL,
        type TEXT NOT NULL,
        key TEXT NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (workspace, type, key)
    );
    CREATE TABLE version (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        version INTEGER NOT NULL
    );
    INSERT INTO version VALUES (1, unixepoch());
"];

/// The service's file.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    db: Database,
}

impl Store {
    /// Opens the file and takes its lock. Blocks.
    pub(crate) fn open(file: &Path, durability: Durability) -> Result<Self, StorageError> {
        Ok(Self {
            db: Database::open(file, MIGRATIONS, durability)?,
        })
    }

    /// A store that ends with the process.
    #[cfg(test)]
    pub(crate) fn in_memory() -> Result<Self, StorageError> {
        Ok(Self {
            db: Database::in_memory(MIGRATIONS)?,
        })
    }

    /// Reads everything.
    pub(crate) async fn load(&self) -> Result<Rows, StorageError> {
        self.db.read(load).await
    }

    /// Makes a change durable, whole or not at all.
    pub(crate) async fn commit(&self, change: &Change) -> Result<(), StorageError> {
        let change = change.clone();
        self.db
            .write(move |tx| {
                let mut put = tx.prepare_cached(
                    "INSERT INTO config (workspace, type, key, value) VALUES (?1, ?2, ?3, ?4)
                     ON CONFLICT DO UPDATE SET value = excluded.value",
                )?;
                for Row { at, value } in &change.puts {
                    put.execute(params![&*at.workspace, &*at.kind, &*at.key, &**value])?;
                }
                let mut remove = tx.prepare_cached(
                    "DELETE FROM config WHERE workspace = ?1 AND type = ?2 AND key = ?3",
                )?;
                for at in &change.removes {
                    remove.execute(params![&*at.workspace, &*at.kind, &*at.key])?;
                }
                tx.prepare_cached("UPDATE version SET version = ?1")?
                    .execute([change.version])?;
                Ok(())
            })
            .await
    }
}

fn load(conn: &Connection) -> Result<Rows, StorageError> {
    let version = conn.query_row("SELECT version FROM version", [], |row| row.get(0))?;
    let mut select =
        conn.prepare("SELECT workspace, type, key, value FROM config ORDER BY workspace, type")?;
    let mut rows = select.query([])?;
    let mut all: Vec<Row> = Vec::new();
    while let Some(row) = rows.next()? {
        let (workspace, kind): (String, String) = (row.get(0)?, row.get(1)?);
        // Neighbours share their names.
        let last = all.last().map(|row| &row.at);
        let at = RowKey {
            workspace: match last {
                Some(last) if *last.workspace == *workspace => last.workspace.clone(),
                _ => workspace.into(),
            },
            kind: match last {
                Some(last) if *last.kind == *kind => last.kind.clone(),
                _ => kind.into(),
            },
            key: row.get::<_, String>(2)?.into(),
        };
        let value: String = row.get(3)?;
        all.push(Row {
            at,
            value: value.into(),
        });
    }
    Ok(Rows::new(version, all))
}
