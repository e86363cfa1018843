//! Content by hash, counted by who uses it. Small content is in its row, large content in a file that the
//! row speaks for.

use tg_storage::StorageError;
use tg_storage::blob::BlobId;
use tg_storage::rusqlite::{Connection, OptionalExtension, Transaction, params};

use crate::store::documents::{ContentLocation, Prepared};

/// One more use of content. Returns its number.
pub(crate) fn acquire(tx: &Transaction<'_>, content: &Prepared) -> Result<i64, StorageError> {
    let mut insert = tx.prepare_cached(
        "INSERT INTO content (hash, size, refs, body) VALUES (?1, ?2, 1, ?3)
         ON CONFLICT (hash) DO UPDATE SET refs = refs + 1 RETURNING number",
    )?;
    let values = params![
        content.hash.bytes(),
        content.size as i64,
        content.body.as_deref()
    ];
    Ok(insert.query_row(values, |row| row.get(0))?)
}

/// One use less. What nobody uses and is small is gone; files wait for [`take_unused`].
pub(crate) fn release(tx: &Transaction<'_>, number: i64) -> Result<(), StorageError> {
    tx.prepare_cached("UPDATE content SET refs = refs - 1 WHERE number = ?1")?
        .execute([number])?;
    tx.prepare_cached("DELETE FROM content WHERE number = ?1 AND refs <= 0 AND body IS NOT NULL")?
        .execute([number])?;
    Ok(())
}

/// Hash of content.
pub(crate) fn hash(conn: &Connection, number: i64) -> Result<Option<BlobId>, StorageError> {
    let mut query = conn.prepare_cached("SELECT hash FROM content WHERE number = ?1")?;
    let hash = query.query_row([number], |row| row.get::<_, [u8; 32]>(0));
    Ok(hash.optional()?.map(BlobId::from_bytes))
}

/// Where content is, with its body if it is small.
pub(crate) fn place(
    conn: &Connection,
    number: i64,
) -> Result<Option<ContentLocation>, StorageError> {
    let mut query =
        conn.prepare_cached("SELECT hash, size, body FROM content WHERE number = ?1")?;
    let place = query.query_row([number], |row| {
        let size: Option<i64> = row.get(1)?;
        Ok(ContentLocation {
            hash: BlobId::from_bytes(row.get(0)?),
            size: size.and_then(|size| u64::try_from(size).ok()),
            body: row.get(2)?,
        })
    });
    Ok(place.optional()?)
}

/// Forgets some files that nobody uses, and names them. The caller keeps adders away until the files are
/// removed.
pub(crate) fn take_unused(tx: &Transaction<'_>, most: u32) -> Result<Vec<BlobId>, StorageError> {
    let mut take = tx.prepare_cached(
        "DELETE FROM content WHERE number IN (
             SELECT number FROM content WHERE refs <= 0 AND lower(hex(hash)) NOT IN (
                 SELECT adopting FROM upload WHERE adopting <> '' AND object = '')
             LIMIT ?1)
         RETURNING hash",
    )?;
    let hashes = take
        .query_map([most], |row| row.get::<_, [u8; 32]>(0))?
        .collect::<Result<Vec<_>, _>>()?;
    Ok(hashes.into_iter().map(BlobId::from_bytes).collect())
}

/// Those of the hashes that no row speaks for, neither content nor an upload that is about to become one.
pub(crate) fn unknown(conn: &Connection, hashes: &[BlobId]) -> Result<Vec<BlobId>, StorageError> {
    let mut query = conn.prepare_cached(
        "SELECT 1 FROM content WHERE hash = ?1 AND body IS NULL
         UNION ALL SELECT 1 FROM upload WHERE adopting = ?2 AND object = ''",
    )?;
    let mut unknown = Vec::new();
    for hash in hashes {
        if !query.exists(params![hash.bytes(), hash.to_string()])? {
            unknown.push(*hash);
        }
    }
    Ok(unknown)
}
