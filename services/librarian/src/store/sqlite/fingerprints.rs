//! What flows did with documents, each text once, by a number. 0 stands for what nobody noted.

use std::collections::HashMap;
use std::rc::Rc;

use tg_storage::StorageError;
use tg_storage::rusqlite::{Connection, OptionalExtension, Transaction, params};

use crate::engine::fingerprints::Fingerprints;

/// The number of what a flow does, which is given if need be.
pub(crate) fn number(tx: &Transaction<'_>, of: &Fingerprints) -> Result<i64, StorageError> {
    let text = of.text();
    let mut query = tx.prepare_cached("SELECT number FROM fingerprints WHERE text = ?1")?;
    if let Some(known) = query.query_row([&text], |row| row.get(0)).optional()? {
        return Ok(known);
    }
    tx.prepare_cached("INSERT INTO fingerprints (text) VALUES (?1)")?
        .execute(params![text])?;
    Ok(tx.last_insert_rowid())
}

/// Forgets what no run, document or part of one names any more.
pub(crate) fn forget_unused(tx: &Transaction<'_>) -> Result<(), StorageError> {
    tx.execute(
        "DELETE FROM fingerprints WHERE number NOT IN (
             SELECT fingerprints FROM run UNION SELECT fingerprints FROM target
             UNION SELECT fingerprints FROM made
             UNION SELECT before FROM made WHERE before IS NOT NULL)",
        [],
    )?;
    Ok(())
}

/// What flows did, read once each.
pub(crate) struct Known<'a> {
    conn: &'a Connection,
    read: HashMap<i64, Option<Rc<Fingerprints>>>,
}

impl<'a> Known<'a> {
    pub(crate) fn new(conn: &'a Connection) -> Self {
        Self {
            conn,
            read: HashMap::new(),
        }
    }

    /// By its number; `None` if nobody noted it.
    pub(crate) fn get(&mut self, number: i64) -> Result<Option<Rc<Fingerprints>>, StorageError> {
        if let Some(known) = self.read.get(&number) {
            return Ok(known.clone());
        }
        let mut query = self
            .conn
            .prepare_cached("SELECT text FROM fingerprints WHERE number = ?1")?;
        let text: Option<String> = query.query_row([number], |row| row.get(0)).optional()?;
        let known = text.and_then(|text| Fingerprints::read(&text)).map(Rc::new);
        self.read.insert(number, known.clone());
        Ok(known)
    }
}
