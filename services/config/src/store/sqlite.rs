//! The rows in one SQLite file. All SQL of the service is here.

use std::path::Path;

use async_trait::async_trait;
use tg_schemas::WorkspaceKey;
use tg_schemas::workspace_key::{GENERATION, REGISTERED, REGISTRY, TOMBSTONE};
use tg_storage::rusqlite::{Connection, OptionalExtension, Transaction, params};
use tg_storage::{Database, Durability, OneWorkspace, StorageError, read_file};

use super::{ConfigStore, MAX_TRASH};
use crate::engine::{Change, Row, RowKey, Trash};

/// Scripts in the order they are run; only ever appended.
const MIGRATIONS: &[&str] = &[
    "
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
",
    "
    INSERT OR IGNORE INTO config
    VALUES ('__workspaces__', 'store', 'identity', lower(hex(randomblob(16))));
    CREATE TABLE trash (
        workspace TEXT PRIMARY KEY,
        purge_after INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE trash_row (
        workspace TEXT NOT NULL REFERENCES trash (workspace) ON DELETE CASCADE,
        type TEXT NOT NULL,
        key TEXT NOT NULL,
        value TEXT NOT NULL,
        PRIMARY KEY (workspace, type, key)
    ) WITHOUT ROWID;
",
];

/// How a backup keeps one workspace of the configuration. A restored system is seeded as a fresh one is: with the template of
/// its release, and with the workspace `default`, unless that is the one that was kept.
pub const ONE_WORKSPACE: OneWorkspace = OneWorkspace::new(
    MIGRATIONS,
    &[
        "DELETE FROM config
         WHERE workspace NOT IN (?2, '__workspaces__', '__system__', '__schemas__', '__iam__')",
        "DELETE FROM config WHERE workspace = '__workspaces__' AND type <> 'store' AND key <> ?2",
        "DELETE FROM config WHERE workspace = '__system__'
         AND NOT (?2 = 'default' AND key IN ('default-workspace', 'default-flow'))",
        "DELETE FROM trash_row",
        "DELETE FROM trash",
    ],
);

/// The key of a workspace that is registered or disabled in a file of the config service; `None`: there is no such workspace.
/// Blocks, and takes no lock.
///
/// # Errors
/// When the file cannot be read.
pub fn workspace_key(file: &Path, name: &str) -> Result<Option<WorkspaceKey>, StorageError> {
    read_file(file, |conn| {
        let registry = |kind: &str| -> Result<Option<String>, StorageError> {
            let sql = "SELECT value FROM config WHERE workspace = ?1 AND type = ?2 AND key = ?3";
            let value = conn
                .prepare_cached(sql)?
                .query_row([REGISTRY, kind, name], |row| row.get(0));
            Ok(value.optional()?)
        };
        if let Some(generation) = registry(GENERATION)? {
            let generation = generation.parse().unwrap_or(0);
            return Ok(Some(WorkspaceKey::new(name, generation)));
        }
        // One from before there were generations: registered, or disabled with its configuration.
        let there = match registry(REGISTERED)? {
            Some(_) => true,
            None if registry(TOMBSTONE)?.is_some() => false,
            None => conn
                .prepare_cached("SELECT 1 FROM config WHERE workspace = ?1")?
                .exists([name])?,
        };
        Ok(there.then(|| WorkspaceKey::new(name, 0)))
    })
}

/// The service's file.
#[derive(Debug, Clone)]
pub(crate) struct SqliteStore {
    db: Database,
}

impl SqliteStore {
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
}

#[async_trait]
impl ConfigStore for SqliteStore {
    async fn version(&self) -> Result<i64, StorageError> {
        self.db
            .read(|conn| Ok(conn.query_row("SELECT version FROM version", [], |row| row.get(0))?))
            .await
    }

    async fn page(&self, after: Option<RowKey>, most: u32) -> Result<Vec<Row>, StorageError> {
        self.db
            .read(move |conn| page(conn, after.as_ref(), most))
            .await
    }

    async fn trash(&self, workspace: &str) -> Result<Option<Vec<Row>>, StorageError> {
        let workspace = workspace.to_owned();
        self.db.read(move |conn| trash(conn, &workspace)).await
    }

    async fn commit(&self, change: &Change, now: i64) -> Result<(), StorageError> {
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
                throw_away(tx, &change.trash, now)?;
                tx.prepare_cached("UPDATE version SET version = ?1")?
                    .execute([change.version])?;
                Ok(())
            })
            .await
    }
}

fn throw_away(tx: &Transaction<'_>, trash: &Trash, now: i64) -> Result<(), StorageError> {
    let forgotten = match trash {
        Trash::Stays => return Ok(()),
        Trash::Keeps(workspace, ..) | Trash::Forgets(workspace) => workspace,
    };
    tx.prepare_cached("DELETE FROM trash_row WHERE workspace = ?1")?
        .execute([&**forgotten])?;
    tx.prepare_cached("DELETE FROM trash WHERE workspace = ?1")?
        .execute([&**forgotten])?;
    let Trash::Keeps(workspace, purge_after, rows) = trash else {
        return Ok(());
    };
    tx.prepare_cached("INSERT INTO trash VALUES (?1, ?2)")?
        .execute(params![&**workspace, purge_after])?;
    let mut keep = tx.prepare_cached("INSERT INTO trash_row VALUES (?1, ?2, ?3, ?4)")?;
    for Row { at, value } in rows {
        keep.execute(params![&*at.workspace, &*at.kind, &*at.key, &**value])?;
    }
    let over = "SELECT workspace FROM trash
         WHERE purge_after <= ?2
            OR workspace NOT IN (SELECT workspace FROM trash ORDER BY purge_after DESC LIMIT ?1)";
    let mut gone = tx.prepare_cached(over)?;
    let gone = gone.query_map(params![MAX_TRASH, now], |row| row.get::<_, String>(0))?;
    for workspace in gone.collect::<Result<Vec<_>, _>>()? {
        tx.prepare_cached("DELETE FROM trash_row WHERE workspace = ?1")?
            .execute([&workspace])?;
        tx.prepare_cached("DELETE FROM trash WHERE workspace = ?1")?
            .execute([&workspace])?;
    }
    Ok(())
}

fn trash(conn: &Connection, workspace: &str) -> Result<Option<Vec<Row>>, StorageError> {
    let mut known = conn.prepare_cached("SELECT 1 FROM trash WHERE workspace = ?1")?;
    if !known.exists([workspace])? {
        return Ok(None);
    }
    let mut select =
        conn.prepare_cached("SELECT type, key, value FROM trash_row WHERE workspace = ?1")?;
    let rows = select.query_map([workspace], |row| {
        let text = |at| row.get::<_, String>(at);
        Ok(Row {
            at: RowKey {
                workspace: workspace.into(),
                kind: text(0)?.into(),
                key: text(1)?.into(),
            },
            value: text(2)?.into(),
        })
    })?;
    Ok(Some(rows.collect::<Result<_, _>>()?))
}

fn page(conn: &Connection, after: Option<&RowKey>, most: u32) -> Result<Vec<Row>, StorageError> {
    let mut select = conn.prepare_cached(
        "SELECT workspace, type, key, value FROM config
         WHERE ?1 IS NULL OR (workspace, type, key) > (?1, ?2, ?3)
         ORDER BY workspace, type, key LIMIT ?4",
    )?;
    let mut rows = select.query(params![
        after.map(|at| &*at.workspace),
        after.map(|at| &*at.kind),
        after.map(|at| &*at.key),
        most
    ])?;
    let mut all: Vec<Row> = Vec::new();
    while let Some(row) = rows.next()? {
        let (workspace, kind): (String, String) = (row.get(0)?, row.get(1)?);
        // Neighbours share their names.
        let last = all.last().map(|row| &row.at).or(after);
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
    Ok(all)
}
