//! Records of runs that failed and are sent again.

use tg_storage::StorageError;
use tg_storage::rusqlite::{OptionalExtension, Transaction, params};

use super::tally::short;
use crate::engine::ids::RecordKey;
use crate::engine::readers::Reader;

/// A failed record was sent again: it is on its way.
pub(crate) fn reopen(
    tx: &Transaction<'_>,
    number: i64,
    record: &RecordKey,
    subscription: &str,
) -> Result<(), StorageError> {
    let mut query = tx.prepare_cached(
        "UPDATE run_pair SET outcome = NULL WHERE run = ?1 AND record = ?2 AND outcome = 2
         AND expected = 1
         AND reader = (SELECT number FROM run_reader WHERE run = ?1 AND subscription = ?3)
         RETURNING reader",
    )?;
    let reader: Option<i64> = query
        .query_row(params![number, record, subscription], |row| row.get(0))
        .optional()?;
    let Some(reader) = reader else {
        return Ok(());
    };
    tx.prepare_cached(
        "UPDATE run SET settled = settled - 1, failed = failed - 1, state = 'running', why = ''
         WHERE number = ?1",
    )?
    .execute([number])?;
    tx.prepare_cached("UPDATE run_reader SET failed = failed - 1 WHERE run = ?1 AND number = ?2")?
        .execute([number, reader])?;
    tx.prepare_cached("DELETE FROM run_fault WHERE run = ?1 AND record = ?2 AND reader = ?3")?
        .execute(params![number, record, reader])?;
    Ok(())
}

/// A record that was to be sent again was not: it failed, as before.
pub(crate) fn close(
    tx: &Transaction<'_>,
    number: i64,
    record: &RecordKey,
    subscription: &str,
    why: &str,
) -> Result<(), StorageError> {
    let mut query = tx.prepare_cached(
        "UPDATE run_pair SET outcome = 2 WHERE run = ?1 AND record = ?2 AND outcome IS NULL
         AND reader = (SELECT number FROM run_reader WHERE run = ?1 AND subscription = ?3)
         RETURNING reader",
    )?;
    let reader: Option<i64> = query
        .query_row(params![number, record, subscription], |row| row.get(0))
        .optional()?;
    let Some(reader) = reader else {
        return Ok(());
    };
    tx.prepare_cached(
        "UPDATE run SET settled = settled + 1, failed = failed + 1 WHERE number = ?1",
    )?
    .execute([number])?;
    tx.prepare_cached("UPDATE run_reader SET failed = failed + 1 WHERE run = ?1 AND number = ?2")?
        .execute([number, reader])?;
    let by = Reader {
        topic: String::new(),
        subscription: subscription.to_owned(),
    };
    tx.prepare_cached(
        "INSERT OR REPLACE INTO run_fault (run, record, reader, subject, processor, message)
         VALUES (?1, ?2, ?3, '', ?4, ?5)",
    )?
    .execute(params![number, record, reader, by.processor(), short(why)])?;
    Ok(())
}
