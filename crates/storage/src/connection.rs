//! Opening SQLite connections: pragmas and migrations.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::wal::{CHECKPOINT, WalLength};
use crate::{Durability, StorageError};

const STATEMENTS: usize = 128;
const BUSY: Duration = Duration::from_secs(5);

/// The one connection that writes, and its log; brings the schema up to date.
pub(crate) fn writer(
    path: &Path,
    migrations: &[&str],
    durability: Durability,
) -> Result<(Connection, WalLength), StorageError> {
    let mut conn = Connection::open(path)?;
    common(&conn)?;
    conn.pragma_update(None, "journal_mode", "WAL")?;
    conn.pragma_update(None, "synchronous", synchronous(durability))?;
    conn.pragma_update(None, "journal_size_limit", 64 << 20)?;
    conn.pragma_update(None, "wal_autocheckpoint", CHECKPOINT)?;
    migrate(&mut conn, migrations)?;
    // Takes the place of the pragma, which was for the migrations.
    let wal = WalLength::watch(&mut conn)?;
    Ok((conn, wal))
}

fn synchronous(durability: Durability) -> &'static str {
    match durability {
        Durability::Process => "NORMAL",
        Durability::Power => "FULL",
    }
}

/// A connection that moves pages of the log into the file, and does nothing else.
pub(crate) fn mover(path: &Path, durability: Durability) -> Result<Connection, StorageError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    common(&conn)?;
    conn.pragma_update(None, "synchronous", synchronous(durability))?;
    Ok(conn)
}

/// A connection that can only read.
pub(crate) fn reader(path: &Path) -> Result<Connection, StorageError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    common(&conn)?;
    conn.pragma_update(None, "query_only", true)?;
    Ok(conn)
}

/// The only connection of a database without a file.
pub(crate) fn memory(migrations: &[&str]) -> Result<Connection, StorageError> {
    let mut conn = Connection::open_in_memory()?;
    common(&conn)?;
    migrate(&mut conn, migrations)?;
    Ok(conn)
}

fn common(conn: &Connection) -> Result<(), StorageError> {
    conn.busy_timeout(BUSY)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    // Else some statements are compiled again for each value they are given.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    conn.pragma_update(None, "foreign_keys", true)?;
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(())
}

/// Runs the migrations that the file has not seen. Each is one transaction with its version number.
fn migrate(conn: &mut Connection, migrations: &[&str]) -> Result<(), StorageError> {
    let found: i64 = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let known = i64::try_from(migrations.len()).unwrap_or(i64::MAX);
    if found > known {
        return Err(StorageError::TooNew { found, known });
    }
    for (version, sql) in (1..)
        .zip(migrations)
        .filter(|(version, _)| *version > found)
    {
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        tx.execute_batch(sql)?;
        tx.pragma_update(None, "user_version", version)?;
        tx.commit()?;
    }
    Ok(())
}
