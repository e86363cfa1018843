//! The directory in one SQLite file. All SQL of the service is here, in `sqlite_access`, `sqlite_audit` and `one_workspace`.

use std::collections::BTreeSet;
use std::path::Path;

use async_trait::async_trait;
use tg_collections::KnownConfig;
use tg_schemas::Error;
use tg_schemas::msg::{AuditDropped, AuditEntry};
use tg_storage::rusqlite::{Connection, Row, Transaction, params};
use tg_storage::{ConfigKnown, Database, Durability, StorageError};

use super::sqlite_access::{self, time};
use super::{
    AuditBatch, AuditBounds, AuditStore, AuditWanted, DirectoryStore, Revocations, sqlite_audit,
};
use crate::engine::{Change, Key, User, Workspace};
use crate::password::PasswordHash;

/// Scripts in the order they are run; only ever appended. The workspace `default` is there from the start, once.
pub(super) const MIGRATIONS: &[&str] = &[
    "
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
",
    "
    ALTER TABLE workspace ADD COLUMN restoring TEXT NOT NULL DEFAULT '';
    CREATE TABLE revocation (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        made INTEGER NOT NULL,
        told INTEGER NOT NULL
    );
    INSERT INTO revocation VALUES (1, 0, 0);
",
    // Workspaces are kept under their generation; -1 where that was not seen yet, as for all of the release before.
    "
    ALTER TABLE workspace RENAME TO workspace_before;
    CREATE TABLE workspace (
        id TEXT NOT NULL,
        generation INTEGER NOT NULL,
        name TEXT NOT NULL,
        enabled INTEGER NOT NULL,
        created INTEGER NOT NULL,
        restoring TEXT NOT NULL,
        PRIMARY KEY (id, generation)
    );
    INSERT INTO workspace SELECT id, -1, name, enabled, created, restoring FROM workspace_before;
    DROP TABLE workspace_before;
",
    sqlite_access::TABLES,
    sqlite_audit::TABLES,
    sqlite_audit::BY_TIME,
    sqlite_audit::CLIENTS_ID,
    sqlite_audit::BY_WHOM,
];

/// Stands for a generation that was not seen yet.
const UNSEEN: i64 = -1;

/// The service's file.
#[derive(Debug, Clone)]
pub(crate) struct SqliteDirectory {
    db: Database,
    bounds: AuditBounds,
}

impl SqliteDirectory {
    /// Opens the file and takes its lock. Blocks.
    pub(crate) fn open(
        file: &Path,
        durability: Durability,
        bounds: AuditBounds,
    ) -> Result<Self, StorageError> {
        Ok(Self {
            db: Database::open(file, MIGRATIONS, durability)?,
            bounds,
        })
    }

    /// A directory that ends with the process.
    #[cfg(test)]
    pub(crate) fn in_memory(bounds: AuditBounds) -> Result<Self, StorageError> {
        Ok(Self {
            db: Database::in_memory(MIGRATIONS)?,
            bounds,
        })
    }

    /// Rows after an id, at most so many.
    async fn page<T: Send + 'static>(
        &self,
        sql: &'static str,
        after: &str,
        most: u32,
        read: fn(&Row<'_>) -> Result<T, StorageError>,
    ) -> Result<Vec<T>, StorageError> {
        let after = after.to_owned();
        self.db
            .read(move |conn| {
                let mut statement = conn.prepare_cached(sql)?;
                let mut rows = statement.query(params![after, most])?;
                let mut found = Vec::new();
                while let Some(row) = rows.next()? {
                    found.push(read(row)?);
                }
                Ok(found)
            })
            .await
    }
}

#[async_trait]
impl KnownConfig for SqliteDirectory {
    async fn config_known(&self) -> Result<Option<ConfigKnown>, Error> {
        KnownConfig::config_known(&self.db).await
    }

    async fn remember_config(&self, known: ConfigKnown) -> Result<(), Error> {
        KnownConfig::remember_config(&self.db, known).await
    }
}

#[async_trait]
impl DirectoryStore for SqliteDirectory {
    async fn workspaces(&self, after: &str, most: u32) -> Result<Vec<Workspace>, StorageError> {
        let sql = "SELECT id, name, enabled, created, restoring, generation FROM workspace
                   WHERE id > ?1 ORDER BY id LIMIT ?2";
        self.page(sql, after, most, workspace).await
    }

    async fn users(&self, after: &str, most: u32) -> Result<Vec<User>, StorageError> {
        let sql = "SELECT id, home, username, name, email, roles, enabled, must_change_password,
                          created, made_by, password, session
                   FROM user WHERE id > ?1 ORDER BY id LIMIT ?2";
        self.page(sql, after, most, user).await
    }

    async fn keys(&self, after: &str, most: u32) -> Result<Vec<Key>, StorageError> {
        let sql = "SELECT id, user_id, name, prefix, hash, expires, created, made_by, scopes
                   FROM api_key WHERE id > ?1 ORDER BY id LIMIT ?2";
        self.page(sql, after, most, key).await
    }

    async fn access(&self) -> Result<Vec<Change>, StorageError> {
        self.db.read(sqlite_access::read).await
    }

    async fn commit(
        &self,
        changes: &[Change],
        revokes: bool,
        events: &[AuditEntry],
    ) -> Result<Revocations, StorageError> {
        let (changes, events, bounds) = (changes.to_vec(), events.to_vec(), self.bounds);
        self.db
            .write(move |tx| {
                changes.iter().try_for_each(|change| write(tx, change))?;
                sqlite_audit::add(tx, &events, &BTreeSet::new(), &bounds)?;
                if revokes {
                    tx.prepare_cached("UPDATE revocation SET made = made + 1")?
                        .execute([])?;
                }
                revocations(tx)
            })
            .await
    }

    async fn revocations(&self) -> Result<Revocations, StorageError> {
        self.db.read(revocations).await
    }

    async fn told(&self, up_to: i64) -> Result<(), StorageError> {
        self.db
            .write(move |tx| {
                tx.prepare_cached("UPDATE revocation SET told = max(told, min(?1, made))")?
                    .execute([up_to])?;
                Ok(())
            })
            .await
    }
}

#[async_trait]
impl AuditStore for SqliteDirectory {
    async fn keep(&self, batch: &AuditBatch) -> Result<(), StorageError> {
        let (batch, bounds) = (batch.clone(), self.bounds);
        self.db
            .write(move |tx| sqlite_audit::keep(tx, &batch, &bounds))
            .await
    }

    async fn page(&self, wanted: &AuditWanted) -> Result<Vec<AuditEntry>, StorageError> {
        let wanted = wanted.clone();
        self.db
            .read_for("audit", move |conn| sqlite_audit::page(conn, &wanted))
            .await
    }

    async fn dropped(&self, workspace: Option<&str>) -> Result<Vec<AuditDropped>, StorageError> {
        let workspace = workspace.map(str::to_owned);
        self.db
            .read(move |conn| sqlite_audit::dropped(conn, workspace.as_deref()))
            .await
    }

    async fn forget(&self, now: i64) -> Result<bool, StorageError> {
        let bounds = self.bounds;
        self.db
            .write(move |tx| sqlite_audit::forget(tx, now, &bounds))
            .await
    }
}

fn revocations(conn: &Connection) -> Result<Revocations, StorageError> {
    let mut query = conn.prepare_cached("SELECT made, told FROM revocation")?;
    Ok(query.query_row([], |row| {
        Ok(Revocations {
            made: row.get(0)?,
            told: row.get(1)?,
        })
    })?)
}

fn write(tx: &Transaction<'_>, change: &Change) -> Result<(), StorageError> {
    match change {
        Change::PutWorkspace(w) => {
            // A name has one row: that of the generation before goes.
            tx.prepare_cached("DELETE FROM workspace WHERE id = ?1")?
                .execute([&w.id])?;
            tx.prepare_cached("INSERT INTO workspace VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
                .execute(params![
                    w.id,
                    w.generation.unwrap_or(UNSEEN),
                    w.name,
                    w.enabled,
                    w.created.timestamp(),
                    w.restoring
                ])?
        }
        Change::RemoveWorkspace(id) => {
            sqlite_access::without_workspace(tx, id)?;
            tx.prepare_cached("DELETE FROM workspace WHERE id = ?1")?
                .execute([id])?
        }
        Change::PutUser(u) => tx
            .prepare_cached(
                "INSERT INTO user VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
                 ON CONFLICT (id) DO UPDATE SET home = excluded.home, name = excluded.name,
                     email = excluded.email, roles = excluded.roles, enabled = excluded.enabled,
                     must_change_password = excluded.must_change_password,
                     password = excluded.password, session = excluded.session",
            )?
            .execute(params![
                u.id,
                u.home,
                u.username,
                u.name,
                u.email,
                words(&u.roles),
                u.enabled,
                u.must_change_password,
                u.created.timestamp(),
                u.made_by,
                u.password.as_ref().map_or("", PasswordHash::reveal),
                u.session,
            ])?,
        Change::RemoveUser(id) => {
            sqlite_access::without_user(tx, id)?;
            tx.prepare_cached("DELETE FROM user WHERE id = ?1")?
                .execute([id])?
        }
        Change::PutKey(k) => tx
            .prepare_cached(
                "INSERT INTO api_key VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
                 ON CONFLICT (id) DO NOTHING",
            )?
            .execute(params![
                k.id,
                k.user_id,
                k.name,
                k.prefix,
                k.hash,
                k.expires.map(|at| at.timestamp()),
                k.created.timestamp(),
                k.made_by,
                words(&k.scopes),
            ])?,
        Change::RemoveKey(id) => tx
            .prepare_cached("DELETE FROM api_key WHERE id = ?1")?
            .execute([id])?,
        access => return sqlite_access::write(tx, access),
    };
    Ok(())
}

fn workspace(row: &Row<'_>) -> Result<Workspace, StorageError> {
    Ok(Workspace {
        id: row.get(0)?,
        name: row.get(1)?,
        enabled: row.get(2)?,
        created: time(row.get(3)?)?,
        restoring: row.get(4)?,
        generation: Some(row.get(5)?).filter(|generation| *generation != UNSEEN),
    })
}

fn user(row: &Row<'_>) -> Result<User, StorageError> {
    let roles: String = row.get(5)?;
    Ok(User {
        id: row.get(0)?,
        home: row.get(1)?,
        username: row.get(2)?,
        name: row.get(3)?,
        email: row.get(4)?,
        roles: set(&roles),
        enabled: row.get(6)?,
        must_change_password: row.get(7)?,
        created: time(row.get(8)?)?,
        made_by: row.get(9)?,
        password: PasswordHash::stored(row.get(10)?),
        session: row.get(11)?,
    })
}

fn key(row: &Row<'_>) -> Result<Key, StorageError> {
    let expires: Option<i64> = row.get(5)?;
    let scopes: String = row.get(8)?;
    Ok(Key {
        id: row.get(0)?,
        user_id: row.get(1)?,
        name: row.get(2)?,
        prefix: row.get(3)?,
        hash: row.get(4)?,
        expires: expires.map(time).transpose()?,
        created: time(row.get(6)?)?,
        made_by: row.get(7)?,
        scopes: set(&scopes),
    })
}

fn words(set: &BTreeSet<String>) -> String {
    set.iter().cloned().collect::<Vec<_>>().join(" ")
}

fn set(words: &str) -> BTreeSet<String> {
    words.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn workspaces_of_the_release_before_are_there_in_a_generation_that_is_not_known() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("iam.sqlite");
        let old = Database::open(&file, &MIGRATIONS[..2], Durability::Process).unwrap();
        old.write(|tx| {
            let sql = "INSERT INTO workspace VALUES ('acme', 'Acme', 0, 1, 'q')";
            Ok(tx.execute(sql, [])?)
        })
        .await
        .unwrap();
        drop(old);
        let store =
            SqliteDirectory::open(&file, Durability::Process, AuditBounds::default()).unwrap();
        let found = store.workspaces("", 9).await.unwrap();
        assert_eq!(found.len(), 2);
        let acme = &found[0];
        assert_eq!((acme.id.as_str(), acme.name.as_str()), ("acme", "Acme"));
        assert_eq!((acme.enabled, acme.restoring.as_str()), (false, "q"));
        assert_eq!(acme.generation, None);
        let settled = Workspace {
            generation: Some(7),
            ..acme.clone()
        };
        let put = [Change::PutWorkspace(settled.clone())];
        store.commit(&put, false, &[]).await.unwrap();
        assert_eq!(store.workspaces("", 1).await.unwrap(), [settled]);
        assert_eq!(store.workspaces("", 9).await.unwrap().len(), 2);
    }
}
