//! Changes of the file: points come and go, collections end. Every function runs inside the writer's
//! transaction and reports what changed, so that what is in memory can follow.

use tg_storage::StorageError;
use tg_storage::rusqlite::{ToSql, Transaction, params};

use super::cache::too_large;
use super::changing;
use super::done::{Done, drop_where};
use super::left;
use super::put::{Open, is_there, weight};
use super::schema::{has_ended, note_end, space, usage};
use crate::engine::index::Index;
use crate::engine::kind::Place;
use crate::engine::point::Point;
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
        done.late = true;
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
    let place = changing::place(tx, &key, kind, &model)?;
    if let Err(refused) = room(tx, limits.quota, &key, place, &points)? {
        return Ok(Err(refused));
    }
    let put = put_at(tx, limits.memory, &key, place, &model, points, &mut done)?;
    Ok(put.map(|()| done))
}

/// Puts points of one dimension where they belong.
pub(super) fn put_at(
    tx: &Transaction<'_>,
    most: usize,
    key: &CollectionKey,
    place: Place,
    model: &str,
    points: Vec<Point>,
    done: &mut Done,
) -> Result<Result<(), VectorError>, StorageError> {
    let dimension = points.first().map_or(0, |point| point.vector.len());
    if let Err(refused) = memory(tx, most, key, place, &points)? {
        return Ok(Err(refused));
    }
    let mut open = match Open::find(tx, key, place, model, dimension, done)? {
        Ok(open) => open,
        Err(refused) => return Ok(Err(refused)),
    };
    for point in points {
        open.put(tx, point, done)?;
    }
    open.save(tx)?;
    Ok(Ok(()))
}

/// Refuses points that the workspace has no room for. What is there already needs none; it is looked for only where
/// room is short.
fn room(
    tx: &Transaction<'_>,
    quota: Quota,
    key: &CollectionKey,
    place: Place,
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
    // What another model makes again needs no room beside what serves: the larger of both counts.
    let places = [place, Place::serving(place.kind)];
    let places = &places[..if place.staged { 2 } else { 1 }];
    for (point, weight) in points.iter().zip(weights) {
        for place in places {
            if let Some(space) = space(tx, key, *place)?
                && is_there(tx, space.id, point)?
            {
                more.items -= 1;
                more.bytes -= weight;
                break;
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
    place: Place,
    points: &[Point],
) -> Result<Result<(), VectorError>, StorageError> {
    let dimension = points.first().map_or(0, |point| point.vector.len());
    let space = space(tx, key, place)?;
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

/// Ends all generations of a collection up to the key's. What it held is purged later.
pub(super) fn drop_collection(
    tx: &Transaction<'_>,
    key: &CollectionKey,
) -> Result<Done, StorageError> {
    let sql = "DELETE FROM space WHERE workspace = ?1 AND collection = ?2 AND incarnation <= ?3
               RETURNING id, points";
    let named = params![key.workspace(), key.collection(), key.generation()];
    let done = drop_where(tx, sql, named)?;
    let sql = "DELETE FROM reembedding WHERE workspace = ?1 AND collection = ?2
               AND incarnation <= ?3 RETURNING id";
    forget(tx, sql, named)?;
    note_end(tx, key)?;
    Ok(done)
}

/// Ends changes to another model.
fn forget(tx: &Transaction<'_>, sql: &str, named: &[&dyn ToSql]) -> Result<(), StorageError> {
    let ended: Vec<i64> = tx
        .prepare_cached(sql)?
        .query_map(named, |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    ended.into_iter().try_for_each(|id| left::forget(tx, id))
}

/// Ends everything of a workspace.
pub(super) fn drop_workspace(tx: &Transaction<'_>, workspace: &str) -> Result<Done, StorageError> {
    let sql = "DELETE FROM space WHERE workspace = ?1 RETURNING id, points";
    let done = drop_where(tx, sql, params![workspace])?;
    let sql = "DELETE FROM reembedding WHERE workspace = ?1 RETURNING id";
    forget(tx, sql, params![workspace])?;
    tx.prepare_cached("DELETE FROM ended WHERE workspace = ?1")?
        .execute([workspace])?;
    Ok(done)
}
