//! Large texts: kept once for each content, under its hash.

use sha2::{Digest, Sha256};
use tg_storage::rusqlite::{Connection, Params, Transaction};
use tg_storage::{StorageError, query_rows};

/// Bytes from which on a text is kept under its hash.
const LARGE: usize = 16 << 10;

/// What a text is kept under.
pub(super) type Hash = [u8; 32];

/// A text as a row has it: itself, or the hash that it is kept under.
pub(super) type Kept = (Option<String>, Option<Hash>);

/// Keeps a text.
pub(super) fn keep(tx: &Transaction<'_>, text: &str) -> Result<Kept, StorageError> {
    if text.len() < LARGE {
        return Ok((Some(text.to_owned()), None));
    }
    let hash: Hash = Sha256::digest(text.as_bytes()).into();
    tx.prepare_cached("INSERT INTO part (hash, content) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
        .execute((&hash, text))?;
    Ok((None, Some(hash)))
}

/// The texts of the messages of some sessions, each once. `which` chooses rows of `session`, called `s`.
pub(super) fn of(
    conn: &Connection,
    which: &str,
    bound: impl Params,
) -> Result<Vec<Hash>, StorageError> {
    let sql = format!(
        "SELECT DISTINCT m.part FROM session s JOIN message m ON m.session = s.number
         WHERE m.part IS NOT NULL AND {which}"
    );
    query_rows(conn, &sql, bound, |row| row.get(0))
}

/// Forgets those of these texts that no message has any more. The others of the workspace are not looked at.
pub(super) fn forget_unused(conn: &Connection, texts: &[Hash]) -> Result<(), StorageError> {
    let mut query = conn.prepare_cached(
        "DELETE FROM part WHERE hash = ?1 AND NOT EXISTS (SELECT 1 FROM message WHERE message.part = ?1)",
    )?;
    for text in texts {
        query.execute([text])?;
    }
    Ok(())
}
