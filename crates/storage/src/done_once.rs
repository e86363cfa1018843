//! Which records a store has done, by their ids, where doing one again at a later time would do something else. It
//! remembers the newest of each owner and purpose.

use rusqlite::{Connection, params};

use crate::{Database, StorageError};

/// Records that are remembered of one owner and purpose. What a broker delivers again is what a store had in hand when it
/// died, which is far less.
const MOST: i64 = 1_000;

/// A record that a store does once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoneOnce {
    /// Whose it is: the key of a workspace.
    pub owner: String,
    /// Tells apart who does the same record, each for themselves.
    pub purpose: String,
    /// Id of the record.
    pub record: String,
}

const TABLE: &str = "CREATE TABLE IF NOT EXISTS done_once (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    owner TEXT NOT NULL,
    purpose TEXT NOT NULL,
    record TEXT NOT NULL,
    UNIQUE (owner, purpose, record)
)";

impl DoneOnce {
    /// Whether it was done and is remembered.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn is_done(&self, conn: &Connection) -> Result<bool, StorageError> {
        let sql = "SELECT 1 FROM done_once WHERE owner = ?1 AND purpose = ?2 AND record = ?3";
        Ok(has_table(conn)?
            && conn
                .prepare_cached(sql)?
                .exists([&self.owner, &self.purpose, &self.record])?)
    }

    /// Remembers that it was done, in the transaction that does it, and forgets the oldest beyond the bound.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn note(&self, tx: &Connection) -> Result<(), StorageError> {
        tx.execute(TABLE, [])?;
        tx.prepare_cached(
            "INSERT OR IGNORE INTO done_once (owner, purpose, record) VALUES (?1, ?2, ?3)",
        )?
        .execute([&self.owner, &self.purpose, &self.record])?;
        tx.prepare_cached(
            "DELETE FROM done_once WHERE owner = ?1 AND purpose = ?2 AND number <= (
                 SELECT number FROM done_once WHERE owner = ?1 AND purpose = ?2
                 ORDER BY number DESC LIMIT 1 OFFSET ?3
             )",
        )?
        .execute(params![self.owner, self.purpose, MOST])?;
        Ok(())
    }

    /// Forgets all records of this owner and purpose that end like this one, in the transaction after which they can be done again.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub fn forget_endings(&self, tx: &Connection) -> Result<(), StorageError> {
        let sql = "DELETE FROM done_once
                   WHERE owner = ?1 AND purpose = ?2 AND substr(record, -length(?3)) = ?3";
        if has_table(tx)? {
            tx.prepare_cached(sql)?
                .execute([&self.owner, &self.purpose, &self.record])?;
        }
        Ok(())
    }
}

impl Database {
    /// Whether a record was done and is remembered.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn has_done(&self, one: DoneOnce) -> Result<bool, StorageError> {
        self.read(move |conn| one.is_done(conn)).await
    }

    /// Remembers that a record was done, and forgets the oldest beyond the bound.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn note_done(&self, one: DoneOnce) -> Result<(), StorageError> {
        self.write(move |tx| one.note(tx)).await
    }

    /// Forgets what was done for an owner.
    ///
    /// # Errors
    /// When the database cannot be written.
    pub async fn forget_done(&self, owner: String) -> Result<(), StorageError> {
        self.write(move |tx| {
            if has_table(tx)? {
                tx.execute("DELETE FROM done_once WHERE owner = ?1", [owner])?;
            }
            Ok(())
        })
        .await
    }
}

/// Forgets what was done for other owners.
pub(crate) fn keep_owner(tx: &Connection, owner: &str) -> Result<(), StorageError> {
    if has_table(tx)? {
        tx.execute("DELETE FROM done_once WHERE owner <> ?1", [owner])?;
    }
    Ok(())
}

fn has_table(conn: &Connection) -> Result<bool, StorageError> {
    Ok(conn
        .prepare_cached("SELECT 1 FROM sqlite_master WHERE name = 'done_once'")?
        .exists([])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(owner: &str, record: i64) -> DoneOnce {
        DoneOnce {
            owner: owner.to_owned(),
            purpose: "p".to_owned(),
            record: record.to_string(),
        }
    }

    #[tokio::test]
    async fn the_newest_of_each_owner_are_remembered() {
        let db = Database::in_memory(&[]).unwrap();
        db.note_done(one("b", 0)).await.unwrap();
        let more = 5;
        for record in 0..MOST + more {
            db.note_done(one("a", record)).await.unwrap();
        }
        for (record, known) in [(0, false), (more - 1, false), (more, true), (MOST, true)] {
            let has = db.has_done(one("a", record)).await.unwrap();
            assert_eq!(has, known, "{record}");
        }
        assert!(db.has_done(one("b", 0)).await.unwrap(), "not another's");
    }

    #[tokio::test]
    async fn records_are_forgotten_by_how_they_end() {
        let db = Database::in_memory(&[]).unwrap();
        let record = |owner: &str, record: &str| DoneOnce {
            record: record.to_owned(),
            ..one(owner, 0)
        };
        let forget = async || {
            let ending = record("a", " s");
            db.write(move |tx| ending.forget_endings(tx)).await.unwrap();
        };
        forget().await;
        for known in [record("a", "r s"), record("a", "r ss"), record("b", "r s")] {
            db.note_done(known).await.unwrap();
        }
        forget().await;
        for (of, known) in [
            (record("a", "r s"), false),
            (record("a", "r ss"), true),
            (record("b", "r s"), true),
        ] {
            let text = format!("{of:?}");
            assert_eq!(db.has_done(of).await.unwrap(), known, "{text}");
        }
    }
}
