//! The library's tables in one SQLite file. All SQL of this crate is below this module: a file of statements for each
//! table, and one for each trait or part of one that puts them together to transactions.

mod adding;
mod children;
mod collection;
mod collections;
mod completion;
mod content;
mod cutting;
mod document;
mod documents;
mod fingerprints;
mod json;
mod one_workspace;
mod outbox;
mod plan;
mod processed;
mod removing;
mod report;
mod retry;
mod run;
mod runs;
mod schema;
mod settle;
mod superseded;
mod upload;
mod uploads;
mod usage;

use std::path::Path;

use async_trait::async_trait;
use tg_collections::KnownConfig;
use tg_schemas::Error;
use tg_schemas::processors::collection_stores;
use tg_storage::rusqlite::{Connection, Transaction};
use tg_storage::{ConfigKnown, Database, Durability, StorageError};

pub use self::one_workspace::{ONE_WORKSPACE, files_of_content};
use self::schema::MIGRATIONS;
use super::LibraryStore;
use super::collections::Life;

/// The library in one file.
#[derive(Debug, Clone)]
pub(crate) struct SqliteLibrary {
    db: Database,
}

impl SqliteLibrary {
    /// Opens the file and takes its lock. Blocks.
    pub(crate) fn open(file: &Path, durability: Durability) -> Result<Self, StorageError> {
        Ok(Self {
            db: Database::open(file, MIGRATIONS, durability)?,
        })
    }

    /// A library that ends with the process.
    #[cfg(test)]
    pub(crate) fn in_memory() -> Result<Self, StorageError> {
        Ok(Self {
            db: Database::in_memory(MIGRATIONS)?,
        })
    }

    async fn read<T: Send + 'static>(
        &self,
        f: impl FnOnce(&Connection) -> Result<T, StorageError> + Send + 'static,
    ) -> Result<T, StorageError> {
        self.db.read(f).await
    }

    async fn write<T: Send + 'static>(
        &self,
        f: impl FnOnce(&Transaction<'_>) -> Result<T, StorageError> + Send + 'static,
    ) -> Result<T, StorageError> {
        self.db.write(f).await
    }
}

#[async_trait]
impl LibraryStore for SqliteLibrary {
    async fn workspaces(&self, after: &str, most: u32) -> Result<Vec<String>, StorageError> {
        let after = after.to_owned();
        self.read(move |conn| document::workspaces(conn, &after, most))
            .await
    }

    async fn purge(&self, workspace: &str) -> Result<(), StorageError> {
        let workspace = workspace.to_owned();
        self.write(move |tx| {
            for (id, generation) in collection::live(tx, &workspace)? {
                collection::bury(tx, &workspace, &id, generation, collection_stores())?;
                collection::set(tx, &workspace, &id, generation, Life::Gone)?;
            }
            run::purge(tx, &workspace)?;
            children::purge(tx, &workspace)?;
            fingerprints::forget_unused(tx)?;
            document::purge(tx, &workspace)
        })
        .await
    }
}

#[async_trait]
impl KnownConfig for SqliteLibrary {
    async fn config_known(&self) -> Result<Option<ConfigKnown>, Error> {
        KnownConfig::config_known(&self.db).await
    }

    async fn remember_config(&self, known: ConfigKnown) -> Result<(), Error> {
        KnownConfig::remember_config(&self.db, known).await
    }
}

/// Questions that changed something are remembered, so that a repeat changes nothing.
const REMEMBERED: i64 = 10_000;

/// Notes a question. `false` if it was noted before: its change is made already.
fn note(tx: &Transaction<'_>, question: &str) -> Result<bool, StorageError> {
    if question.is_empty() {
        return Ok(true);
    }
    let new = tx
        .prepare_cached("INSERT INTO request (id) VALUES (?1) ON CONFLICT DO NOTHING")?
        .execute([question])?;
    if new > 0 {
        tx.prepare_cached("DELETE FROM request WHERE number <= ?1")?
            .execute([tx.last_insert_rowid() - REMEMBERED])?;
    }
    Ok(new > 0)
}

#[cfg(test)]
mod tests;
