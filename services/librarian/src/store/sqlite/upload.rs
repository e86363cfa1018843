//! Upload sessions and the parts that arrived.

use tg_storage::blob::{BlobId, Part};
use tg_storage::rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use tg_storage::{StorageError, query_rows};

use crate::engine::upload::Session;
use crate::store::uploads::{Arrived, Listed};

const COLUMNS: &str = "id, workspace, document, metadata, size, chunk, created, object, adopting, replaces, announced";

fn read(row: &Row<'_>) -> tg_storage::rusqlite::Result<Session> {
    let number = |at| row.get::<_, i64>(at).map(|value| value.max(0) as u64);
    Ok(Session {
        id: row.get(0)?,
        workspace: row.get(1)?,
        document: row.get(2)?,
        metadata: row.get(3)?,
        size: number(4)?,
        chunk: number(5)?,
        created: row.get(6)?,
        object: row.get(7)?,
        adopting: row.get(8)?,
        replaces: row.get(9)?,
        announced: row.get(10)?,
    })
}

pub(crate) fn insert(tx: &Transaction<'_>, session: &Session) -> Result<(), StorageError> {
    tx.prepare_cached(
        "INSERT INTO upload (id, workspace, document, metadata, size, chunk, created, object, replaces, announced)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?
    .execute(params![
        session.id,
        session.workspace,
        session.document,
        session.metadata,
        session.size as i64,
        session.chunk as i64,
        session.created,
        session.object,
        session.replaces,
        session.announced,
    ])?;
    Ok(())
}

/// The latest open session that would come to the same as one that announces a hash.
pub(crate) fn same(conn: &Connection, of: &Session) -> Result<Option<Session>, StorageError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM upload
         WHERE workspace = ?1 AND document = ?2 AND object = '' AND announced = ?3
               AND size = ?4 AND chunk = ?5 AND replaces = ?6
         ORDER BY created DESC, rowid DESC LIMIT 1"
    );
    let mut query = conn.prepare_cached(&sql)?;
    let (size, chunk) = (of.size as i64, of.chunk as i64);
    let of = params![
        of.workspace,
        of.document,
        of.announced,
        size,
        chunk,
        of.replaces
    ];
    Ok(query.query_row(of, read).optional()?)
}

/// What the document will be is said anew.
pub(crate) fn set_metadata(
    tx: &Transaction<'_>,
    id: &str,
    metadata: &str,
) -> Result<(), StorageError> {
    tx.prepare_cached("UPDATE upload SET metadata = ?2 WHERE id = ?1")?
        .execute([id, metadata])?;
    Ok(())
}

pub(crate) fn get(conn: &Connection, id: &str) -> Result<Option<Session>, StorageError> {
    let sql = format!("SELECT {COLUMNS} FROM upload WHERE id = ?1");
    let mut query = conn.prepare_cached(&sql)?;
    Ok(query.query_row([id], read).optional()?)
}

/// Sessions in progress after a number, oldest first.
pub(crate) fn list(
    conn: &Connection,
    workspace: &str,
    after: i64,
    most: u32,
) -> Result<Vec<Listed>, StorageError> {
    let sql = format!(
        "SELECT {COLUMNS}, rowid, (SELECT count(*) FROM upload_part WHERE upload = upload.id)
         FROM upload WHERE workspace = ?1 AND object = '' AND rowid > ?2 ORDER BY rowid LIMIT ?3"
    );
    query_rows(conn, &sql, params![workspace, after, most], |row| {
        Ok(Listed {
            number: row.get(11)?,
            session: read(row)?,
            received: row.get::<_, i64>(12)?.unsigned_abs(),
        })
    })
}

/// All parts arrived, and this is the hash of the whole: its file is about to become the content.
pub(crate) fn set_adopting(tx: &Transaction<'_>, id: &str, hash: &str) -> Result<(), StorageError> {
    tx.prepare_cached("UPDATE upload SET adopting = ?2 WHERE id = ?1")?
        .execute([id, hash])?;
    Ok(())
}

/// Sessions whose content was about to be taken over, sorted, after one.
pub(crate) fn adopting(
    conn: &Connection,
    after: &str,
    most: u32,
) -> Result<Vec<String>, StorageError> {
    let sql = "SELECT id FROM upload WHERE adopting <> '' AND object = '' AND id > ?1
         ORDER BY id LIMIT ?2";
    query_rows(conn, sql, params![after, most], |row| row.get(0))
}

/// Parts that arrived, in order.
pub(crate) fn parts(conn: &Connection, id: &str) -> Result<Vec<Arrived>, StorageError> {
    let sql = "SELECT position, hash, size FROM upload_part WHERE upload = ?1 ORDER BY position";
    query_rows(conn, sql, [id], |row| {
        Ok(Arrived {
            position: row.get::<_, i64>(0)?.max(0) as u64,
            part: Part {
                hash: BlobId::from_bytes(row.get(1)?),
                length: row.get::<_, i64>(2)?.max(0) as u64,
            },
        })
    })
}

/// Hash of a part that arrived.
pub(crate) fn part(
    conn: &Connection,
    id: &str,
    position: u64,
) -> Result<Option<BlobId>, StorageError> {
    let mut query =
        conn.prepare_cached("SELECT hash FROM upload_part WHERE upload = ?1 AND position = ?2")?;
    let hash = query.query_row(params![id, position as i64], |row| {
        row.get::<_, [u8; 32]>(0)
    });
    Ok(hash.optional()?.map(BlobId::from_bytes))
}

pub(crate) fn set_part(
    tx: &Transaction<'_>,
    id: &str,
    arrived: Arrived,
) -> Result<(), StorageError> {
    tx.prepare_cached(
        "INSERT OR REPLACE INTO upload_part (upload, position, hash, size) VALUES (?1, ?2, ?3, ?4)",
    )?
    .execute(params![
        id,
        arrived.position as i64,
        arrived.part.hash.bytes(),
        arrived.part.length as i64,
    ])?;
    Ok(())
}

/// Forgets that a part arrived.
pub(crate) fn drop_part(tx: &Transaction<'_>, id: &str, position: u64) -> Result<(), StorageError> {
    tx.prepare_cached("DELETE FROM upload_part WHERE upload = ?1 AND position = ?2")?
        .execute(params![id, position as i64])?;
    Ok(())
}

/// The session is complete: its parts are one document's content now.
pub(crate) fn complete(tx: &Transaction<'_>, id: &str, object: &str) -> Result<(), StorageError> {
    tx.prepare_cached("UPDATE upload SET object = ?2 WHERE id = ?1")?
        .execute([id, object])?;
    drop_parts(tx, id)
}

pub(crate) fn remove(tx: &Transaction<'_>, id: &str) -> Result<(), StorageError> {
    drop_parts(tx, id)?;
    tx.prepare_cached("DELETE FROM upload WHERE id = ?1")?
        .execute([id])?;
    Ok(())
}

fn drop_parts(tx: &Transaction<'_>, id: &str) -> Result<(), StorageError> {
    tx.prepare_cached("DELETE FROM upload_part WHERE upload = ?1")?
        .execute([id])?;
    Ok(())
}

/// Ids of sessions begun before a moment.
pub(crate) fn begun_before(
    conn: &Connection,
    moment: i64,
    most: u32,
) -> Result<Vec<String>, StorageError> {
    query_rows(
        conn,
        "SELECT id FROM upload WHERE created <= ?1 LIMIT ?2",
        params![moment, most],
        |row| row.get(0),
    )
}

/// Ids of a workspace's sessions, complete ones too.
pub(crate) fn of_workspace(
    conn: &Connection,
    workspace: &str,
    most: u32,
) -> Result<Vec<String>, StorageError> {
    query_rows(
        conn,
        "SELECT id FROM upload WHERE workspace = ?1 LIMIT ?2",
        params![workspace, most],
        |row| row.get(0),
    )
}
