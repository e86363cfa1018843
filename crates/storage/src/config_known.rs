//! Which configuration a store has known: from another one, or an older one, it takes no proof of a deletion.

use rusqlite::{Connection, OptionalExtension};

use crate::{Database, StorageError};

/// A config store at a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigKnown {
    /// Which config store.
    pub identity: String,
    /// Its version when it was seen last.
    pub version: i64,
}

const TABLE: &str = "CREATE TABLE IF NOT EXISTS config_known (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    identity TEXT NOT NULL,
    version INTEGER NOT NULL
)";

impl Database {
    /// The configuration that was remembered.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn config_known(&self) -> Result<Option<ConfigKnown>, StorageError> {
        self.read(|conn| match has_table(conn)? {
            true => Ok(conn
                .query_row("SELECT identity, version FROM config_known", [], |row| {
                    Ok(ConfigKnown {
                        identity: row.get(0)?,
                        version: row.get(1)?,
                    })
                })
                .optional()?),
            false => Ok(None),
        })
        .await
    }

    /// Remembers a configuration instead of the one before.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn remember_config(&self, known: ConfigKnown) -> Result<(), StorageError> {
        self.write(move |tx| {
            tx.execute(TABLE, [])?;
            tx.execute(
                "INSERT OR REPLACE INTO config_known VALUES (1, ?1, ?2)",
                (&known.identity, known.version),
            )?;
            Ok(())
        })
        .await
    }
}

fn has_table(conn: &Connection) -> Result<bool, StorageError> {
    Ok(conn
        .prepare_cached("SELECT 1 FROM sqlite_master WHERE name = 'config_known'")?
        .exists([])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_configuration_is_remembered() {
        let db = Database::in_memory(&[]).unwrap();
        assert_eq!(db.config_known().await.unwrap(), None);
        for version in [3, 5] {
            let known = ConfigKnown {
                identity: "x".into(),
                version,
            };
            db.remember_config(known.clone()).await.unwrap();
            assert_eq!(db.config_known().await.unwrap(), Some(known));
        }
    }
}
