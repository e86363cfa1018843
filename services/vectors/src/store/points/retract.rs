//! Taking points back: all that came from a chunk, or what one processor made of it before.

use tg_collections::CollectionKey;
use tg_schemas::msg::Superseded;
use tg_storage::StorageError;
use tg_storage::rusqlite::{OptionalExtension, Transaction};

use super::changing;
use super::done::{Done, Less};
use super::left;
use super::schema::{Space, number, range, space};
use crate::engine::index::Change;
use crate::engine::kind::{Kind, Place};
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
    let changing = changing::is_changing(tx, key)?;
    // What waits for a switch goes, too.
    for place in [Place::staged(kind), Place::serving(kind)] {
        let Some(held) = space(tx, key, place)? else {
            continue;
        };
        let before = std::mem::take(&mut done.count);
        match changing && !place.staged {
            // What was made anew may wait for the switch: until then the old serves.
            true => {
                take_back(tx, &held, kind, chunks, &[], &mut done)?;
                mark(tx, &held, kind, superseded)?;
                left::count_again(tx, key)?;
            }
            false => take_back(tx, &held, kind, chunks, superseded, &mut done)?,
        }
        done.count = done.count.max(before);
    }
    Ok(done)
}

fn take_back(
    tx: &Transaction<'_>,
    held: &Space,
    kind: Kind,
    chunks: &[String],
    superseded: &[Superseded],
    done: &mut Done,
) -> Result<(), StorageError> {
    let mut sources = Vec::new();
    for chunk in chunks {
        sources.extend(unnamed(tx, held.id, chunk)?);
        sources.extend(named(tx, held.id, chunk)?.into_iter().map(|(id, _)| id));
    }
    for one in superseded {
        sources.extend(outdated(tx, held.id, kind, one)?);
    }
    let mut less = Less::default();
    for source in sources {
        remove(tx, held.id, source, &mut less, done)?;
    }
    less.take(tx, held.id)
}

/// Notes what goes at the switch.
fn mark(
    tx: &Transaction<'_>,
    held: &Space,
    kind: Kind,
    superseded: &[Superseded],
) -> Result<(), StorageError> {
    for one in superseded {
        for source in outdated(tx, held.id, kind, one)? {
            tx.prepare_cached("UPDATE source SET superseded = 1 WHERE id = ?1")?
                .execute([source])?;
        }
    }
    Ok(())
}

/// Removes what was to go at a switch that does not come.
pub(super) fn remove_marked(
    tx: &Transaction<'_>,
    held: &Space,
    done: &mut Done,
) -> Result<(), StorageError> {
    let (from, to) = range(held.id);
    let marked: Vec<i64> = tx
        .prepare_cached("SELECT id FROM source WHERE id >= ?1 AND id < ?2 AND superseded")?
        .query_map([from, to], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let mut less = Less::default();
    for source in marked {
        remove(tx, held.id, source, &mut less, done)?;
    }
    less.take(tx, held.id)
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

/// Removes the points of a source.
fn remove(
    tx: &Transaction<'_>,
    space: i64,
    source: i64,
    less: &mut Less,
    done: &mut Done,
) -> Result<(), StorageError> {
    let sql = "DELETE FROM point WHERE source = ?1 RETURNING id, subject,
               octet_length(vector) + coalesce(octet_length(text), 0), fresh";
    let gone: Vec<(i64, i64, i64, bool)> = tx
        .prepare_cached(sql)?
        .query_map([source], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })?
        .collect::<Result<_, _>>()?;
    tx.prepare_cached("DELETE FROM source WHERE id = ?1")?
        .execute([source])?;
    for (point, subject, bytes, fresh) in gone {
        let orphan = "DELETE FROM subject WHERE id = ?1
                      AND NOT EXISTS (SELECT 1 FROM point WHERE subject = ?1)
                      RETURNING octet_length(body)";
        let body: Option<i64> = tx
            .prepare_cached(orphan)?
            .query_row([subject], |row| row.get(0))
            .optional()?;
        less.point(bytes, body.unwrap_or(0), fresh);
        done.changes.push((space, Change::Remove(number(point))));
        done.count += 1;
    }
    Ok(())
}
