//! One workspace alone in a copy of a store's file, for backups. Each store names the statements that delete the rest:
//! they keep what provably belongs to the workspace, so that a row of nobody goes, too.
//!
//! The file is written anew afterwards, because a deleted row stays readable in the free pages of a database. This module
//! never touches a file that a process owns.

mod filled;

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, Transaction, params_from_iter};
use tg_schemas::WorkspaceKey;

use crate::{Durability, StorageError, connection, done_once, identity, private, query_rows};

/// What SQLite puts beside a database while it is open.
const BESIDE: [&str; 2] = ["-wal", "-shm"];
/// Ending of a file that is not written to its end.
const PART: &str = ".part";

/// How a store's file is brought to hold one workspace alone.
#[derive(Clone, Copy)]
pub struct OneWorkspace {
    migrations: &'static [&'static str],
    statements: &'static [&'static str],
    more: fn(&Transaction<'_>) -> Result<(), StorageError>,
}

impl OneWorkspace {
    /// The migrations of the store, and statements that delete what is not the workspace's. In these `?1` is the text form
    /// of the workspace's key and `?2` its name.
    pub const fn new(
        migrations: &'static [&'static str],
        statements: &'static [&'static str],
    ) -> Self {
        Self {
            migrations,
            statements,
            more: nothing,
        }
    }

    /// The same with what no fixed statement can do. It runs after the statements.
    #[must_use]
    pub const fn and(self, more: fn(&Transaction<'_>) -> Result<(), StorageError>) -> Self {
        Self {
            migrations: self.migrations,
            statements: self.statements,
            more,
        }
    }

    /// Leaves one workspace in a file, and writes the file anew, onto the disk. The file becomes another store: a bus that
    /// knows the whole one does not take this one for it. Blocks, and takes no owner's lock: it is for copies.
    ///
    /// # Errors
    /// The file is not a database of this release or an earlier one, there is no room, or a table still has another
    /// workspace. The file is of no use then.
    pub fn keep(&self, file: &Path, key: &WorkspaceKey) -> Result<(), StorageError> {
        let (mut conn, _wal) = connection::writer(file, self.migrations, Durability::Process)?;
        identity::ensure(&conn)?;
        let tx = conn.transaction()?;
        self.sweep(&tx, key)?;
        left(&tx, key)?;
        tx.commit()?;
        let part = with_ending(file, PART);
        let to = part.to_str().ok_or_else(unwritable)?;
        conn.execute("VACUUM INTO ?1", [to])?;
        conn.close().map_err(|(_, error)| error)?;
        private::close(&part);
        let written = || {
            File::open(&part)?.sync_all()?;
            fs::rename(&part, file)?;
            // Beside the new file these would be of another database.
            BESIDE
                .iter()
                .try_for_each(|ending| match fs::remove_file(with_ending(file, ending)) {
                    Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
                    _ => Ok(()),
                })
        };
        written().map_err(|error| StorageError::from_io(&error))
    }

    fn sweep(&self, tx: &Transaction<'_>, key: &WorkspaceKey) -> Result<(), StorageError> {
        for sql in self.statements {
            let mut statement = tx.prepare(sql)?;
            let count = statement.parameter_count();
            let given = [key.as_str(), key.name()].into_iter().take(count);
            statement.execute(params_from_iter(given))?;
        }
        (self.more)(tx)?;
        done_once::keep_owner(tx, key.as_str())?;
        tx.execute(
            "UPDATE store_identity SET id = lower(hex(randomblob(16)))",
            [],
        )?;
        Ok(())
    }
}

/// Reads a database that may belong to another process. Blocks.
///
/// # Errors
/// The file is not there or is not a database; otherwise what the closure says.
pub fn read_file<T>(
    file: &Path,
    read: impl FnOnce(&Connection) -> Result<T, StorageError>,
) -> Result<T, StorageError> {
    read(&connection::reader(file)?)
}

/// Refuses a file in which a table that names workspaces still names another one: a store that got such a table later may
/// have no statement for it.
fn left(conn: &Connection, key: &WorkspaceKey) -> Result<(), StorageError> {
    let sql = "SELECT t.name FROM sqlite_master AS t JOIN pragma_table_info(t.name) AS c
               WHERE t.type = 'table' AND c.name = 'workspace'";
    for table in query_rows(conn, sql, [], |row| row.get::<_, String>(0))? {
        // Reserved names begin with two underlines, which no workspace's name does.
        let sql = format!(
            "SELECT EXISTS (SELECT 1 FROM \"{table}\"
             WHERE workspace NOT IN (?1, ?2, '') AND substr(workspace, 1, 2) <> '__')"
        );
        let others: bool = conn.query_row(&sql, [key.as_str(), key.name()], |row| row.get(0))?;
        if others {
            let text = format!("the table {table} still has other workspaces");
            return Err(StorageError::Failed(text));
        }
    }
    Ok(())
}

fn nothing(_: &Transaction<'_>) -> Result<(), StorageError> {
    Ok(())
}

fn with_ending(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn unwritable() -> StorageError {
    StorageError::Io("the path of a store is not UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Database, DoneOnce, identity_of};

    const MIGRATIONS: &[&str] = &["
        CREATE TABLE note (workspace TEXT NOT NULL, text TEXT NOT NULL);
        CREATE TABLE name (number INTEGER PRIMARY KEY, name TEXT NOT NULL);"];
    const NOTES: OneWorkspace = OneWorkspace::new(
        MIGRATIONS,
        &[
            "DELETE FROM note WHERE workspace <> ?1",
            "DELETE FROM name WHERE name <> ?2",
        ],
    );

    /// A database that two workspaces wrote to; its path.
    async fn written(dir: &Path) -> PathBuf {
        let file = dir.join("notes.sqlite");
        let db = Database::open(&file, MIGRATIONS, Durability::Process).unwrap();
        for workspace in ["acme#7", "acme", "other"] {
            let text = format!("text of {workspace};").repeat(500);
            let row = (workspace, text);
            db.write(move |tx| {
                tx.execute("INSERT INTO note VALUES (?1, ?2)", row)?;
                let name = WorkspaceKey::parse(workspace).name().to_owned();
                tx.execute("INSERT INTO name (name) VALUES (?1)", [name])?;
                Ok(())
            })
            .await
            .unwrap();
            let done = DoneOnce {
                owner: workspace.to_owned(),
                purpose: "p".to_owned(),
                record: format!("record of {workspace};"),
            };
            db.note_done(done).await.unwrap();
        }
        file
    }

    fn has(file: &Path, text: &str) -> bool {
        let bytes = fs::read(file).unwrap();
        bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    }

    #[tokio::test]
    async fn one_workspace_is_kept_and_no_byte_of_another() {
        let dir = tempfile::tempdir().unwrap();
        let file = written(dir.path()).await;
        let before = identity_of(&file).unwrap();
        NOTES.keep(&file, &WorkspaceKey::new("acme", 7)).unwrap();
        for text in ["text of acme#7;", "record of acme#7;"] {
            assert!(has(&file, text), "{text}");
        }
        for text in ["other", "text of acme;", "record of acme;"] {
            assert!(!has(&file, text), "{text}");
        }
        let beside: Vec<_> = fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .filter(|name| name != "notes.sqlite.lock")
            .collect();
        assert_eq!(beside, ["notes.sqlite"]);
        assert_ne!(identity_of(&file).unwrap(), before);
        // It is a store of this release.
        drop(Database::open(&file, MIGRATIONS, Durability::Process).unwrap());
    }

    #[tokio::test]
    async fn a_table_without_a_statement_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = written(dir.path()).await;
        let forgets = OneWorkspace::new(MIGRATIONS, &["DELETE FROM name WHERE name <> ?2"]);
        let refused = forgets.keep(&file, &WorkspaceKey::new("acme", 7));
        assert_eq!(
            refused,
            Err(StorageError::Failed(
                "the table note still has other workspaces".to_owned()
            ))
        );
    }

    #[test]
    fn a_table_that_is_filled_shows() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("notes.sqlite");
        NOTES.fill(&file, "marker", &["name"]).unwrap();
        assert!(has(&file, "marker"));
        NOTES.keep(&file, &WorkspaceKey::new("acme", 7)).unwrap();
        assert!(!has(&file, "marker"));
        NOTES.fill(&file, "marker", &["note"]).unwrap();
        let other = OneWorkspace::new(MIGRATIONS, &[]);
        other.keep(&file, &WorkspaceKey::new("acme", 7)).unwrap();
        assert!(has(&file, "marker"));
    }
}
