//! Records of runs that failed and are sent again.

use tg_storage::StorageError;
use tg_storage::rusqlite::{OptionalExtension, Transaction, params};

use super::completion::short;
use crate::engine::ids::RecordKey;
use crate::engine::readers::Reader;

/// A failed record was sent again: it is on its way.
pub(crate) fn reopen(
    tx: &Transaction<'_>,
    number: i64,
    record: &RecordKey,
    subscription: &str,
) -> Result<(), StorageError> {
    let sql = "UPDATE run_pair SET outcome = NULL WHERE run = ?1 AND record = ?2 AND outcome = 2
         AND expected = 1
         AND reader = (SELECT number FROM run_reader WHERE run = ?1 AND subscription = ?3)
         RETURNING reader";
    let Some(reader) = turned(tx, sql, number, record, subscription)? else {
        return Ok(());
    };
    failed(tx, number, reader, -1)?;
    tx.prepare_cached("UPDATE run SET state = 'running', why = '' WHERE number = ?1")?
        .execute([number])?;
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
    let sql = "UPDATE run_pair SET outcome = 2 WHERE run = ?1 AND record = ?2 AND outcome IS NULL
         AND reader = (SELECT number FROM run_reader WHERE run = ?1 AND subscription = ?3)
         RETURNING reader";
    let Some(reader) = turned(tx, sql, number, record, subscription)? else {
        return Ok(());
    };
    failed(tx, number, reader, 1)?;
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

/// The reader whose record this statement has turned; `None` where it was not as it had to be.
fn turned(
    tx: &Transaction<'_>,
    sql: &str,
    number: i64,
    record: &RecordKey,
    subscription: &str,
) -> Result<Option<i64>, StorageError> {
    let mut query = tx.prepare_cached(sql)?;
    let reader = query.query_row(params![number, record, subscription], |row| row.get(0));
    Ok(reader.optional()?)
}

/// So many more records of a run are settled, as failures of a reader.
fn failed(tx: &Transaction<'_>, number: i64, reader: i64, more: i64) -> Result<(), StorageError> {
    tx.prepare_cached(
        "UPDATE run SET settled = settled + ?2, failed = failed + ?2 WHERE number = ?1",
    )?
    .execute([number, more])?;
    tx.prepare_cached("UPDATE run_reader SET failed = failed + ?3 WHERE run = ?1 AND number = ?2")?
        .execute([number, reader, more])?;
    Ok(())
}
