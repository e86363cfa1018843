//! Changes of the file: points come and go, collections end. Every function runs inside the writer's
//! transaction and reports what changed, so that what is in memory can follow.

use tg_storage::StorageError;
use tg_storage::rusqlite::{OptionalExtension, Transaction, params};

use super::cache::too_large;
use super::done::{Done, drop_where};
use super::put::{Open, is_there, weight};
use super::schema::{has_ended, note_end, number, space, usage};
use crate::engine::index::{Change, Index};
use crate::engine::kind::Kind;
use crate::engine::point::{Point, hash};
use crate::error::VectorError;
use crate::options::Limits;
use crate::store::Write;
use tg_collections::{CollectionKey, Quota, Usage, Words, WriteKind};

/// How the quota is told.
const WORDS: Words = Words {
    place: "the collections",
    items: "vectors",
    bytes: "of vectors",
};

/// Puts points. An error of the inner kind means that nothing was changed.
pub(super) fn put(
    tx: &Transaction<'_>,
    limits: Limits,
    write: Write,
) -> Result<Result<Done, VectorError>, StorageError> {
    let Write {
        key,
        kind,
        model,
        write_kind,
        points,
    } = write;
    let mut done = Done::default();
    if write_kind == WriteKind::Tracked && has_ended(tx, &key)? {
        return Ok(Ok(done));
    }
    let Some(dimension) = points.first().map(|point| point.vector.len()) else {
        return Ok(Ok(done));
    };
    if let Some(other) = points.iter().find(|point| point.vector.len() != dimension) {
        return Ok(Err(VectorError::OtherDimension {
            kind,
            held: dimension,
            given: other.vector.len(),
        }));
    }
    if let Err(refused) = room(tx, limits.quota, &key, kind, &points)? {
        return Ok(Err(refused));
    }
    if let Err(refused) = memory(tx, limits.memory, &key, kind, &points)? {
        return Ok(Err(refused));
    }
    let mut open = match Open::find(tx, &key, kind, &model, dimension, &mut done)? {
        Ok(open) => open,
        Err(refused) => return Ok(Err(refused)),
    };
    for point in points {
        if let Some(change) = open.put(tx, point)? {
            done.changes.push((open.id, change));
            done.count += 1;
        }
    }
    open.save(tx)?;
    Ok(Ok(done))
}

/// Refuses points that the workspace has no room for. What is there already needs none; it is looked for only where
/// room is short.
fn room(
    tx: &Transaction<'_>,
    quota: Quota,
    key: &CollectionKey,
    kind: Kind,
    points: &[Point],
) -> Result<Result<(), VectorError>, StorageError> {
    let held = usage(tx, key.workspace())?;
    let weights = points.iter().map(weight);
    let weights = weights.collect::<Result<Vec<u64>, _>>()?;
    let mut more = Usage {
        items: points.len() as u64,
        bytes: weights.iter().sum(),
    };
    if quota.check(&WORDS, held, more).is_ok() {
        return Ok(Ok(()));
    }
    if let Some(space) = space(tx, key, kind)? {
        for (point, weight) in points.iter().zip(weights) {
            if is_there(tx, space.id, point)? {
                more.items -= 1;
                more.bytes -= weight;
            }
        }
    }
    // What changes nothing but vectors that are there is let through, however full it is.
    Ok(quota.check(&WORDS, held, more).map_err(VectorError::Quota))
}

/// Refuses points with which the space could not be searched any more.
fn memory(
    tx: &Transaction<'_>,
    most: usize,
    key: &CollectionKey,
    kind: Kind,
    points: &[Point],
) -> Result<Result<(), VectorError>, StorageError> {
    let dimension = points.first().map_or(0, |point| point.vector.len());
    let space = space(tx, key, kind)?;
    let held = space
        .as_ref()
        .map_or(0, |space| space.points.max(0) as usize);
    let needs = |more: usize| Index::estimate(dimension, held + more);
    if needs(points.len()) <= most {
        return Ok(Ok(()));
    }
    let mut more = points.len();
    for point in points {
        if let Some(space) = &space
            && is_there(tx, space.id, point)?
        {
            more -= 1;
        }
    }
    Ok(match more == 0 || needs(more) <= most {
        true => Ok(()),
        false => Err(too_large(needs(more), most)),
    })
}

/// Removes what came from chunks.
pub(super) fn retract(
    tx: &Transaction<'_>,
    key: &CollectionKey,
    kind: Kind,
    chunks: &[String],
) -> Result<Done, StorageError> {
    let mut done = Done::default();
    let Some(held) = space(tx, key, kind)? else {
        return Ok(done);
    };
    let mut bytes = 0;
    for chunk in chunks {
        let hash = hash(held.id, chunk);
        let source: Option<i64> = tx
            .prepare_cached("SELECT id FROM source WHERE hash = ?1")?
            .query_row([&hash[..]], |row| row.get(0))
            .optional()?;
        if let Some(source) = source {
            bytes += remove(tx, held.id, source, &mut done)?;
        }
    }
    let sql = "UPDATE space SET points = points - ?2, bytes = bytes - ?3 WHERE id = ?1";
    tx.prepare_cached(sql)?
        .execute(params![held.id, done.count as i64, bytes])?;
    Ok(done)
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

/// Ends all generations of a collection up to the key's. What it held is purged later.
pub(super) fn drop_collection(
    tx: &Transaction<'_>,
    key: &CollectionKey,
) -> Result<Done, StorageError> {
    let sql = "DELETE FROM space WHERE workspace = ?1 AND collection = ?2 AND incarnation <= ?3
               RETURNING id, points";
    let named = params![key.workspace(), key.collection(), key.generation()];
    let done = drop_where(tx, sql, named)?;
    note_end(tx, key)?;
    Ok(done)
}

/// Ends everything of a workspace.
pub(super) fn drop_workspace(tx: &Transaction<'_>, workspace: &str) -> Result<Done, StorageError> {
    let sql = "DELETE FROM space WHERE workspace = ?1 RETURNING id, points";
    let done = drop_where(tx, sql, params![workspace])?;
    tx.prepare_cached("DELETE FROM ended WHERE workspace = ?1")?
        .execute([workspace])?;
    Ok(done)
}
