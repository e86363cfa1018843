//! The file of cores and its tables.

use std::path::Path;

use tg_collections::Quota;
use tg_storage::{Database, Durability, OneWorkspace, StorageError, query_rows};

const MIGRATIONS: &[&str] = &[
    "
CREATE TABLE core (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace TEXT NOT NULL,
    name TEXT NOT NULL,
    kind INTEGER NOT NULL,
    UNIQUE (workspace, name, kind)
) STRICT;
CREATE TABLE dropped (core INTEGER PRIMARY KEY) STRICT;
CREATE TABLE piece (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    core INTEGER NOT NULL,
    part INTEGER NOT NULL,
    digest BLOB NOT NULL,
    model TEXT NOT NULL,
    items INTEGER NOT NULL,
    body BLOB NOT NULL,
    UNIQUE (core, digest)
) STRICT;
CREATE INDEX piece_order ON piece (core, part, id);
CREATE TABLE load (
    workspace TEXT NOT NULL,
    core TEXT NOT NULL,
    kind INTEGER NOT NULL,
    flow TEXT NOT NULL,
    collection TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    run TEXT NOT NULL,
    PRIMARY KEY (workspace, core, kind, flow, collection)
) STRICT, WITHOUT ROWID;
CREATE INDEX load_run ON load (run);
CREATE TABLE pending (
    workspace TEXT NOT NULL,
    document TEXT NOT NULL,
    metadata TEXT NOT NULL,
    upload TEXT NOT NULL,
    chunk INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (workspace, document)
) STRICT, WITHOUT ROWID;
CREATE INDEX pending_at ON pending (at);
",
    "
ALTER TABLE core ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
UPDATE core SET bytes = (SELECT coalesce(sum(length(body)), 0) FROM piece WHERE core = core.id);
",
    "
CREATE TABLE source (
    core INTEGER NOT NULL,
    collection TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    PRIMARY KEY (core, collection, incarnation)
) STRICT, WITHOUT ROWID;
CREATE TABLE judged (
    workspace TEXT NOT NULL,
    collection TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    PRIMARY KEY (workspace, collection, incarnation)
) STRICT, WITHOUT ROWID;
",
];

/// How a backup keeps one workspace of the cores.
pub const ONE_WORKSPACE: OneWorkspace = OneWorkspace::new(
    MIGRATIONS,
    &[
        "DELETE FROM core WHERE workspace <> ?1",
        "DELETE FROM piece WHERE core NOT IN (SELECT id FROM core)",
        "DELETE FROM source WHERE core NOT IN (SELECT id FROM core)",
        "DELETE FROM load WHERE workspace <> ?1",
        "DELETE FROM pending WHERE workspace <> ?1",
        "DELETE FROM judged WHERE workspace <> ?1",
        "DELETE FROM dropped",
    ],
);

/// The open file.
pub(crate) struct SqliteCores {
    pub(super) db: Database,
    /// What a workspace may keep.
    pub(super) quota: Quota,
}

impl SqliteCores {
    /// Opens or creates the file and takes its lock. Blocks: call it off the runtime.
    ///
    /// # Errors
    /// [`StorageError::InUse`] while another process has it; otherwise what is wrong with the file.
    pub(crate) fn open(
        path: &Path,
        durability: Durability,
        quota: Quota,
    ) -> Result<Self, StorageError> {
        let db = Database::open(path, MIGRATIONS, durability)?;
        Ok(Self { db, quota })
    }

    /// A file that exists only in memory.
    #[cfg(test)]
    pub(crate) fn in_memory(quota: Quota) -> Result<Self, StorageError> {
        let db = Database::in_memory(MIGRATIONS)?;
        Ok(Self { db, quota })
    }

    /// The file below.
    pub(crate) fn file(&self) -> &Database {
        &self.db
    }

    /// Workspaces that have anything here.
    pub(crate) async fn known_workspaces(&self) -> Result<Vec<String>, StorageError> {
        self.db
            .read(|conn| {
                let sql = "SELECT workspace FROM core UNION SELECT workspace FROM load
                           UNION SELECT workspace FROM pending UNION SELECT workspace FROM judged";
                query_rows(conn, sql, [], |row| row.get(0))
            })
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::key::{CoreKey, Kind};
    use crate::engine::piece::of_triples;
    use crate::store::CoreStore;

    #[tokio::test]
    async fn what_the_release_before_kept_counts() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("knowledge.sqlite");
        let old = Database::open(&file, &MIGRATIONS[..1], Durability::Process).unwrap();
        old.write(|tx| {
            Ok(tx.execute_batch(
                "INSERT INTO core (workspace, name, kind) VALUES ('w', 'urn:old', 1);
                 INSERT INTO piece (core, part, digest, model, items, body)
                 VALUES (1, 1, x'01', '', 1, zeroblob(1000));",
            )?)
        })
        .await
        .unwrap();
        drop(old);
        let quota = Quota {
            bytes: 1_010,
            ..Quota::UNLIMITED
        };
        let cores = SqliteCores::open(&file, Durability::Process, quota).unwrap();
        let key = CoreKey::new("w", Kind::Graph, "urn:new", "id").unwrap();
        let iri = tg_schemas::Term::iri;
        let triple = tg_schemas::Triple::new(iri("urn:a"), iri("urn:p"), iri("urn:b"));
        let pieces = of_triples(&[triple]).unwrap();
        assert!(cores.keep(key, pieces, None).await.is_err());
    }
}
