//! The directory on disk. All SQL of the service is here. Keys are stored as hashes only.

use std::collections::BTreeSet;
use std::path::Path;

use chrono::{DateTime, Utc};
use tg_storage::rusqlite::{Connection, Row, Transaction, params};
use tg_storage::{Database, Durability, StorageError};

use crate::engine::{Change, Directory, Key, User, Workspace};

/// The workspace `default` is there from the start, once: removed, it stays removed.
const MIGRATIONS: &[&str] = &["
    CREATE TABLE workspace (
        id TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        enabled INTEGER NOT NULL,
        created INTEGER NOT NULL
    );
    CREATE TABLE user (
        id TEXT PRIMARY KEY,
        home TEXT NOT NULL,
        username TEXT NOT NULL UNIQUE,
        name TEXT NOT NULL,
        email TEXT NOT NULL,
        roles TEXT NOT NULL,
        enabled INTEGER NOT NULL,
        must_change_password INTEGER NOT NULL,
        created INTEGER NOT NULL,
        made_by TEXT NOT NULL
    );
    CREATE TABLE api_key (
        id TEXT PRIMARY KEY,
        user_id TEXT NOT NULL,
        name TEXT NOT NULL,
        prefix TEXT NOT NULL,
        hash TEXT NOT NULL UNIQUE,
        expires INTEGER,
        created INTEGER NOT NULL,
        made_by TEXT NOT NULL
    );
    INSERT INTO workspace VALUES ('default', 'default', 1, unixepoch());
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

    /// Reads everything.
    pub(crate) async fn load(&self) -> Result<Directory, StorageError> {
        self.db.read(load).await
    }

    /// Makes changes durable, all or none.
    pub(crate) async fn commit(&self, changes: Vec<Change>) -> Result<(), StorageError> {
        self.db
            .write(move |tx| changes.iter().try_for_each(|change| write(tx, change)))
            .await
    }
}

fn write(tx: &Transaction<'_>, change: &Change) -> Result<(), StorageError> {
    match change {
        Change::PutWorkspace(w) => tx
            .prepare_cached("INSERT OR REPLACE INTO workspace VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![w.id, w.name, w.enabled, w.created.timestamp()])?,
        Change::RemoveWorkspace(id) => tx
            .prepare_cached("DELETE FROM workspace WHERE id = ?1")?
            .execute([id])?,
        Change::PutUser(u) => tx
            .prepare_cached(
                "INSERT INTO user VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
                 ON CONFLICT (id) DO UPDATE SET home = excluded.home, name = excluded.name,
                     email = excluded.email, roles = excluded.roles, enabled = excluded.enabled,
                     must_change_password = excluded.must_change_password",
            )?
            .execute(params![
                u.id,
                u.home,
                u.username,
                u.name,
                u.email,
                u.roles.iter().cloned().collect::<Vec<_>>().join(" "),
                u.enabled,
                u.must_change_password,
                u.created.timestamp(),
                u.made_by,
            ])?,
        Change::RemoveUser(id) => tx
            .prepare_cached("DELETE FROM user WHERE id = ?1")?
            .execute([id])?,
        Change::PutKey(k) => tx
            .prepare_cached("INSERT INTO api_key VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?
            .execute(params![
                k.id,
                k.user_id,
                k.name,
                k.prefix,
                k.hash,
                k.expires.map(|at| at.timestamp()),
                k.created.timestamp(),
                k.made_by,
            ])?,
        Change::RemoveKey(id) => tx
            .prepare_cached("DELETE FROM api_key WHERE id = ?1")?
            .execute([id])?,
    };
    Ok(())
}

fn load(conn: &Connection) -> Result<Directory, StorageError> {
    let mut directory = Directory::default();
    let mut take = |sql: &str, read: fn(&Row<'_>) -> Result<Change, StorageError>| {
        let mut statement = conn.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            directory.apply(&read(row)?);
        }
        Ok::<(), StorageError>(())
    };
    take(
        "SELECT id, name, enabled, created FROM workspace",
        workspace,
    )?;
    take(
        "SELECT id, home, username, name, email, roles, enabled, must_change_password, created, made_by
         FROM user",
        user,
    )?;
    take(
        "SELECT id, user_id, name, prefix, hash, expires, created, made_by FROM api_key",
        key,
    )?;
    Ok(directory)
}

fn workspace(row: &Row<'_>) -> Result<Change, StorageError> {
    Ok(Change::PutWorkspace(Workspace {
        id: row.get(0)?,
        name: row.get(1)?,
        enabled: row.get(2)?,
        created: time(row.get(3)?)?,
    }))
}

fn user(row: &Row<'_>) -> Result<Change, StorageError> {
    let roles: String = row.get(5)?;
    Ok(Change::PutUser(User {
        id: row.get(0)?,
        home: row.get(1)?,
        username: row.get(2)?,
        name: row.get(3)?,
        email: row.get(4)?,
        roles: roles
            .split_whitespace()
            .map(str::to_owned)
            .collect::<BTreeSet<_>>(),
        enabled: row.get(6)?,
        must_change_password: row.get(7)?,
        created: time(row.get(8)?)?,
        made_by: row.get(9)?,
    }))
}

fn key(row: &Row<'_>) -> Result<Change, StorageError> {
    let expires: Option<i64> = row.get(5)?;
    Ok(Change::PutKey(Key {
        id: row.get(0)?,
        user_id: row.get(1)?,
        name: row.get(2)?,
        prefix: row.get(3)?,
        hash: row.get(4)?,
        expires: expires.map(time).transpose()?,
        created: time(row.get(6)?)?,
        made_by: row.get(7)?,
    }))
}

fn time(seconds: i64) -> Result<DateTime<Utc>, StorageError> {
    DateTime::from_timestamp(seconds, 0)
        .ok_or_else(|| StorageError::Corrupt("a time is out of range".to_owned()))
}
