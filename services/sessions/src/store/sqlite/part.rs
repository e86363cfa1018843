//! Large texts: kept once for each content, under its hash.

use sha2::{Digest, Sha256};
use tg_storage::StorageError;
use tg_storage::rusqlite::{Connection, Transaction};

/// Bytes from which on a text is kept under its hash.
const LARGE: usize = 16 << 10;

/// A text as a row has it: itself, or the hash that it is kept under.
pub(super) type Kept = (Option<String>, Option<[u8; 32]>);

/// Keeps a text.
pub(super) fn keep(tx: &Transaction<'_>, text: &str) -> Result<Kept, StorageError> {
    if text.len() < LARGE {
        return Ok((Some(text.to_owned()), None));
    }
    let hash: [u8; 32] = Sha256::digest(text.as_bytes()).into();
    tx.prepare_cached("INSERT INTO part (hash, content) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
        .execute((&hash, text))?;
    Ok((None, Some(hash)))
}

/// Forgets texts that no message has any more.
pub(super) fn forget_unused(conn: &Connection) -> Result<(), StorageError> {
    conn.prepare_cached(
        "DELETE FROM part WHERE NOT EXISTS (SELECT 1 FROM message WHERE message.part = part.hash)",
    )?
    .execute([])?;
    Ok(())
}
