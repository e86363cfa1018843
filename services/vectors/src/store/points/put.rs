//! Putting points into a space: what they stand for, where they come from and what they hold are counted
//! and stored once each.

use std::collections::HashMap;

use serde::Serialize;
use tg_storage::StorageError;
use tg_storage::rusqlite::{OptionalExtension, Transaction, params};

use super::done::{Done, drop_where};
use super::schema::{Space, number, pack, row_id, space};
use crate::engine::index::Change;
use crate::engine::kind::Kind;
use crate::engine::point::{Facets, Point, Subject, hash};
use crate::error::VectorError;
use tg_collections::CollectionKey;

/// A space while points are put.
pub(super) struct Open {
    pub(super) id: i64,
    points: i64,
    bytes: i64,
    next_point: u32,
    next_subject: u32,
    next_source: u32,
    next_facet: u32,
    facets: HashMap<String, u32>,
    sources: HashMap<String, i64>,
}

impl Open {
    /// The space for vectors of a model, made if need be; the inner error: they may not join.
    pub(super) fn find(
        tx: &Transaction<'_>,
        key: &CollectionKey,
        kind: Kind,
        model: &str,
        dimension: usize,
        done: &mut Done,
    ) -> Result<Result<Self, VectorError>, StorageError> {
        let mut held = space(tx, key, kind)?;
        if let Some(known) = &held {
            if let Err(refused) = check(known, kind, model, dimension) {
                return Ok(Err(refused));
            }
            let other = known.dimension != dimension
                || (!model.is_empty() && !known.model.is_empty() && known.model != model);
            if other {
                // Empty by now: what comes is the first again.
                let sql = "DELETE FROM space WHERE id = ?1 RETURNING id, points";
                let ended = drop_where(tx, sql, params![known.id])?;
                done.gone.extend(ended.gone);
                held = None;
            }
        }
        let id = match held {
            Some(known) => {
                if known.model.is_empty() && !model.is_empty() {
                    tx.prepare_cached("UPDATE space SET model = ?2 WHERE id = ?1")?
                        .execute(params![known.id, model])?;
                }
                known.id
            }
            None => {
                let sql = "INSERT INTO space
                           (workspace, collection, incarnation, kind, model, dimension, bytes)
                           VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0)";
                tx.prepare_cached(sql)?.insert(params![
                    key.workspace(),
                    key.collection(),
                    key.generation(),
                    kind.code(),
                    model,
                    dimension as i64
                ])?
            }
        };
        let sql =
            "SELECT points, coalesce(bytes, 0), next_point, next_subject, next_source, next_facet
                   FROM space WHERE id = ?1";
        let open = tx.prepare_cached(sql)?.query_row([id], |row| {
            Ok(Self {
                id,
                points: row.get(0)?,
                bytes: row.get(1)?,
                next_point: row.get(2)?,
                next_subject: row.get(3)?,
                next_source: row.get(4)?,
                next_facet: row.get(5)?,
                facets: HashMap::new(),
                sources: HashMap::new(),
            })
        })?;
        Ok(Ok(open))
    }

    /// Writes the counts back.
    pub(super) fn save(&self, tx: &Transaction<'_>) -> Result<(), StorageError> {
        let sql = "UPDATE space SET points = ?2, next_point = ?3, next_subject = ?4,
                   next_source = ?5, next_facet = ?6, bytes = ?7 WHERE id = ?1";
        tx.prepare_cached(sql)?.execute(params![
            self.id,
            self.points,
            self.next_point,
            self.next_subject,
            self.next_source,
            self.next_facet,
            self.bytes
        ])?;
        Ok(())
    }

    /// `None` when it is there already, just so.
    pub(super) fn put(
        &mut self,
        tx: &Transaction<'_>,
        point: Point,
    ) -> Result<Option<Change>, StorageError> {
        let subject = self.subject(tx, &point.subject)?;
        let source = self.source(tx, &point)?;
        let facet = self.facet(tx, &point.facets)?;
        let tag = point.tag();
        let bytes = pack(&point.vector);
        let sql = "SELECT id, facet, vector FROM point
                   WHERE subject = ?1 AND source = ?2 AND tag = ?3";
        let known: Option<(i64, bool)> = tx
            .prepare_cached(sql)?
            .query_row(params![subject, source, tag], |row| {
                let same = row.get::<_, i64>(1)? == i64::from(facet)
                    && row.get_ref(2)?.as_blob().is_ok_and(|held| held == bytes);
                Ok((row.get(0)?, same))
            })
            .optional()?;
        let point_number = match known {
            Some((_, true)) => return Ok(None),
            Some((id, false)) => {
                tx.prepare_cached("UPDATE point SET facet = ?2, vector = ?3 WHERE id = ?1")?
                    .execute(params![id, facet, bytes])?;
                number(id)
            }
            None => {
                let next = take(&mut self.next_point)?;
                let id = row_id(self.id, next);
                tx.prepare_cached("INSERT INTO point VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
                    .execute(params![id, subject, source, tag, facet, bytes])?;
                self.points += 1;
                self.bytes += bytes.len() as i64;
                next
            }
        };
        Ok(Some(Change::Put {
            number: point_number,
            subject: number(subject),
            facet,
            vector: point.vector,
        }))
    }

    fn subject(&mut self, tx: &Transaction<'_>, subject: &Subject) -> Result<i64, StorageError> {
        let body = text(subject)?;
        let hash = hash(self.id, &body);
        let known: Option<i64> = tx
            .prepare_cached("SELECT id FROM subject WHERE hash = ?1")?
            .query_row([&hash[..]], |row| row.get(0))
            .optional()?;
        if let Some(id) = known {
            return Ok(id);
        }
        let id = row_id(self.id, take(&mut self.next_subject)?);
        self.bytes += body.len() as i64;
        tx.prepare_cached("INSERT INTO subject VALUES (?1, ?2, ?3)")?
            .execute(params![id, &hash[..], body])?;
        Ok(id)
    }

    fn source(&mut self, tx: &Transaction<'_>, point: &Point) -> Result<i64, StorageError> {
        let name = point.source();
        if let Some(id) = self.sources.get(&name) {
            return Ok(*id);
        }
        let hashed = hash(self.id, &name);
        let known: Option<i64> = tx
            .prepare_cached("SELECT id FROM source WHERE hash = ?1")?
            .query_row([&hashed[..]], |row| row.get(0))
            .optional()?;
        let id = match known {
            Some(id) => id,
            None => {
                let id = row_id(self.id, take(&mut self.next_source)?);
                let chunk = hash(self.id, &point.chunk);
                let chunk = (!point.made_by.is_empty()).then_some(&chunk[..]);
                tx.prepare_cached(
                    "INSERT INTO source (id, hash, chunk, made_by) VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute(params![id, &hashed[..], chunk, point.made_by])?;
                id
            }
        };
        self.sources.insert(name, id);
        Ok(id)
    }

    fn facet(&mut self, tx: &Transaction<'_>, facets: &Facets) -> Result<u32, StorageError> {
        if facets.is_empty() {
            return Ok(0);
        }
        let body = text(facets)?;
        if let Some(known) = self.facets.get(&body) {
            return Ok(*known);
        }
        let hash = hash(self.id, &body);
        let known: Option<i64> = tx
            .prepare_cached("SELECT id FROM facet WHERE hash = ?1")?
            .query_row([&hash[..]], |row| row.get(0))
            .optional()?;
        let facet = match known {
            Some(id) => number(id),
            None => {
                let next = take(&mut self.next_facet)?;
                self.bytes += body.len() as i64;
                tx.prepare_cached("INSERT INTO facet VALUES (?1, ?2, ?3)")?
                    .execute(params![row_id(self.id, next), &hash[..], body])?;
                let mut insert =
                    tx.prepare_cached("INSERT INTO facet_entry VALUES (?1, ?2, ?3, ?4, ?5)")?;
                for one in facets.conditions() {
                    insert.execute(params![self.id, one.field, one.name, one.value, next])?;
                }
                next
            }
        };
        self.facets.insert(body, facet);
        Ok(facet)
    }
}

/// Whether a space has a point already, with this vector or another.
pub(super) fn is_there(
    tx: &Transaction<'_>,
    space: i64,
    point: &Point,
) -> Result<bool, StorageError> {
    let sql = "SELECT EXISTS (SELECT 1 FROM point
               WHERE subject = (SELECT id FROM subject WHERE hash = ?1)
                 AND source = (SELECT id FROM source WHERE hash = ?2) AND tag = ?3)";
    let (subject, source) = (
        hash(space, &text(&point.subject)?),
        hash(space, &point.source()),
    );
    let named = params![&subject[..], &source[..], point.tag()];
    Ok(tx.prepare_cached(sql)?.query_row(named, |row| row.get(0))?)
}

/// Bytes that a point takes at most; of what others have too it takes fewer.
pub(super) fn weight(point: &Point) -> Result<u64, StorageError> {
    let facets = match point.facets.is_empty() {
        true => 0,
        false => text(&point.facets)?.len(),
    };
    let vector = size_of_val(point.vector.as_slice());
    Ok((vector + text(&point.subject)?.len() + facets) as u64)
}

/// Whether vectors may join those of a space. An empty model is not compared.
pub(super) fn check(
    held: &Space,
    kind: Kind,
    model: &str,
    dimension: usize,
) -> Result<(), VectorError> {
    if held.points == 0 {
        return Ok(());
    }
    if !held.model.is_empty() && !model.is_empty() && held.model != model {
        return Err(VectorError::OtherModel {
            kind,
            held: held.model.clone(),
            given: model.to_owned(),
        });
    }
    if held.dimension != dimension {
        return Err(VectorError::OtherDimension {
            kind,
            held: held.dimension,
            given: dimension,
        });
    }
    Ok(())
}

/// The next number of a space; four thousand million are the most it can ever have given out.
fn take(next: &mut u32) -> Result<u32, StorageError> {
    let taken = *next;
    *next = taken.checked_add(1).ok_or(StorageError::Full)?;
    Ok(taken)
}

fn text(value: &impl Serialize) -> Result<String, StorageError> {
    serde_json::to_string(value).map_err(|error| StorageError::Failed(error.to_string()))
}
