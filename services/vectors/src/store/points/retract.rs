//! Taking points back: all that came from a chunk, or what one processor made of it before.

use tg_collections::CollectionKey;
use tg_schemas::msg::Superseded;
use tg_storage::StorageError;
use tg_storage::rusqlite::{OptionalExtension, Transaction, params};

use super::done::Done;
use super::schema::{number, space};
use crate::engine::index::Change;
use crate::engine::kind::Kind;
use crate::engine::point::hash;

/// Removes what came from chunks, and what was superseded of others.
pub(super) fn retract(
    tx: &Transaction<'_>,
    key: &CollectionKey,
    kind: Kind,
    chunks: &[String],
    superseded: &[Superseded],
) -> Result<Done, StorageError> {
    let mut done = Done::default();
    let Some(held) = space(tx, key, kind)? else {
        return Ok(done);
    };
    let mut sources = Vec::new();
    for chunk in chunks {
        sources.extend(unnamed(tx, held.id, chunk)?);
        sources.extend(named(tx, held.id, chunk)?.into_iter().map(|(id, _)| id));
    }
    for one in superseded {
        sources.extend(outdated(tx, held.id, kind, one)?);
    }
    let mut bytes = 0;
    for source in sources {
        bytes += remove(tx, held.id, source, &mut done)?;
    }
    let sql = "UPDATE space SET points = points - ?2, bytes = bytes - ?3 WHERE id = ?1";
    tx.prepare_cached(sql)?
        .execute(params![held.id, done.count as i64, bytes])?;
    Ok(done)
}

/// Sources of what one processor made of chunks that goes. The vector of a chunk itself is
/// replaced where it stands, whoever made it.
fn outdated(
    tx: &Transaction<'_>,
    space: i64,
    kind: Kind,
    of: &Superseded,
) -> Result<Vec<i64>, StorageError> {
    let mut found = Vec::new();
    if kind == Kind::Chunk {
        return Ok(found);
    }
    for chunk in &of.chunks {
        if of.processor.is_empty() {
            found.extend(unnamed(tx, space, chunk)?);
            continue;
        }
        let all = named(tx, space, chunk)?.into_iter();
        found.extend(
            all.filter(|(_, made_by)| of.takes(made_by))
                .map(|(id, _)| id),
        );
    }
    Ok(found)
}

/// The source of what nobody says to have made of a chunk.
fn unnamed(tx: &Transaction<'_>, space: i64, chunk: &str) -> Result<Option<i64>, StorageError> {
    let hash = hash(space, chunk);
    let mut query = tx.prepare_cached("SELECT id FROM source WHERE hash = ?1")?;
    Ok(query.query_row([&hash[..]], |row| row.get(0)).optional()?)
}

/// Sources of a chunk with their makers.
fn named(
    tx: &Transaction<'_>,
    space: i64,
    chunk: &str,
) -> Result<Vec<(i64, String)>, StorageError> {
    let hash = hash(space, chunk);
    let mut query = tx.prepare_cached("SELECT id, made_by FROM source WHERE chunk = ?1")?;
    let rows = query.query_map([&hash[..]], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Removes the points of a source; how many bytes they had.
fn remove(
    tx: &Transaction<'_>,
    space: i64,
    source: i64,
    done: &mut Done,
) -> Result<i64, StorageError> {
    let sql = "DELETE FROM point WHERE source = ?1 RETURNING id, subject, octet_length(vector)";
    let gone: Vec<(i64, i64, i64)> = tx
        .prepare_cached(sql)?
        .query_map([source], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<Result<_, _>>()?;
    tx.prepare_cached("DELETE FROM source WHERE id = ?1")?
        .execute([source])?;
    let mut bytes = 0;
    for (point, subject, vector) in gone {
        let orphan = "DELETE FROM subject WHERE id = ?1
                      AND NOT EXISTS (SELECT 1 FROM point WHERE subject = ?1)
                      RETURNING octet_length(body)";
        let body: Option<i64> = tx
            .prepare_cached(orphan)?
            .query_row([subject], |row| row.get(0))
            .optional()?;
        bytes += vector + body.unwrap_or(0);
        done.changes.push((space, Change::Remove(number(point))));
        done.count += 1;
    }
    Ok(bytes)
}
