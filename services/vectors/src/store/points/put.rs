//! Putting points into a space: what they stand for, where they come from and what they hold are counted
//! and stored once each.

use std::collections::HashMap;

use serde::Serialize;
use tg_storage::StorageError;
use tg_storage::rusqlite::{OptionalExtension, Transaction, params};

use super::changing::is_changing;
use super::done::{Done, Less, drop_where};
use super::schema::{Space, number, pack, row_id, space};
use crate::engine::index::Change;
use crate::engine::kind::{Kind, Place};
use crate::engine::point::{Facets, Point, Subject, hash};
use crate::error::VectorError;
use tg_collections::CollectionKey;

/// A space while points are put.
pub(super) struct Open {
    pub(super) id: i64,
    /// Its vectors are being made again by another model: what changes of them has to be once more.
    changing: bool,
    /// Where what was made again is.
    staged: Option<i64>,
    /// What waits here for a switch is to take the place of what is there.
    serving: Option<i64>,
    waits: bool,
    fresh: i64,
    fresh_bytes: i64,
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
        place: Place,
        model: &str,
        dimension: usize,
        done: &mut Done,
    ) -> Result<Result<Self, VectorError>, StorageError> {
        let mut held = space(tx, key, place)?;
        if let Some(known) = &held {
            if let Err(refused) = check(known, place.kind, model, dimension) {
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
                    place.code(),
                    model,
                    dimension as i64
                ])?
            }
        };
        let changing = !place.staged && is_changing(tx, key)?;
        let staged = match changing {
            true => space(tx, key, Place::staged(place.kind))?.map(|staged| staged.id),
            false => None,
        };
        let serving = match place.staged {
            true => space(tx, key, Place::serving(place.kind))?.map(|serving| serving.id),
            false => None,
        };
        let sql =
            "SELECT points, coalesce(bytes, 0), next_point, next_subject, next_source, next_facet,
                   fresh, fresh_bytes FROM space WHERE id = ?1";
        let open = tx.prepare_cached(sql)?.query_row([id], |row| {
            Ok(Self {
                id,
                changing,
                staged,
                serving,
                waits: place.staged,
                fresh: row.get(6)?,
                fresh_bytes: row.get(7)?,
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
                   next_source = ?5, next_facet = ?6, bytes = ?7, fresh = ?8, fresh_bytes = ?9
                   WHERE id = ?1";
        tx.prepare_cached(sql)?.execute(params![
            self.id,
            self.points,
            self.next_point,
            self.next_subject,
            self.next_source,
            self.next_facet,
            self.bytes,
            self.fresh,
            self.fresh_bytes
        ])?;
        Ok(())
    }

    /// Puts a point and notes what that changes; nothing when it is there already, just so.
    pub(super) fn put(
        &mut self,
        tx: &Transaction<'_>,
        point: Point,
        done: &mut Done,
    ) -> Result<(), StorageError> {
        let subject = self.subject(tx, &point.subject)?;
        let source = self.source(tx, &point)?;
        let facet = self.facet(tx, &point.facets)?;
        let bytes = pack(&point.vector);
        let known = Known::find(tx, (subject, source, point.tag()), facet, &bytes)?;
        if let Some(known) = &known
            && known.same
            && !(self.changing && known.textless && point.text.is_some())
        {
            return self.learn(tx, known, point.text.as_deref());
        }
        self.outdate(tx, &point)?;
        let (tag, text) = (point.tag(), point.text.as_deref());
        let added = (bytes.len() + text.map_or(0, str::len)) as i64;
        let fresh = match &known {
            Some(known) => known.fresh,
            None => self.is_fresh(tx, &point)?,
        };
        if fresh && self.waits {
            let before = known.as_ref().map(|known| known.bytes);
            self.fresh += i64::from(before.is_none());
            self.fresh_bytes += added - before.unwrap_or(0);
        }
        let known = match known {
            Some(known) => self.room_for(tx, known, done)?,
            None => None,
        };
        let point_number = match known {
            Some(id) => {
                let sql = "UPDATE point SET facet = ?2, vector = ?3, text = ?4 WHERE id = ?1";
                tx.prepare_cached(sql)?
                    .execute(params![id, facet, bytes, text])?;
                number(id)
            }
            None => {
                let next = take(&mut self.next_point)?;
                let id = row_id(self.id, next);
                let sql = "INSERT INTO point (id, subject, source, tag, facet, vector, text, fresh)
                           VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
                let named = params![id, subject, source, tag, facet, bytes, text, fresh];
                tx.prepare_cached(sql)?.execute(named)?;
                self.points += 1;
                next
            }
        };
        self.bytes += added;
        let change = Change::Put {
            number: point_number,
            subject: number(subject),
            facet,
            vector: point.vector,
        };
        done.changes.push((self.id, change));
        done.count += 1;
        Ok(())
    }

    /// Whether a point that waits for a switch is not among those that serve.
    fn is_fresh(&self, tx: &Transaction<'_>, point: &Point) -> Result<bool, StorageError> {
        Ok(match self.serving {
            // An entity is told by its vector, which another model makes anew: there it is the same text of the same subject.
            Some(serving) => {
                let (subject, source) = (
                    hash(serving, &text(&point.subject)?),
                    hash(serving, &point.source()),
                );
                let sql = "SELECT NOT EXISTS (SELECT 1 FROM point
                             WHERE subject = (SELECT id FROM subject WHERE hash = ?1)
                               AND source = (SELECT id FROM source WHERE hash = ?2)
                               AND (tag = 0 OR text = ?3))";
                tx.prepare_cached(sql)?
                    .query_row(params![&subject[..], &source[..], point.text], |row| {
                        row.get(0)
                    })?
            }
            None => self.waits,
        })
    }

    /// Where a point that changes is kept: where it was, or, while another model makes vectors of the space again, under a new
    /// number. So what is being made of it at the moment is of a point that is gone, and the new one is looked at later.
    fn room_for(
        &mut self,
        tx: &Transaction<'_>,
        known: Known,
        done: &mut Done,
    ) -> Result<Option<i64>, StorageError> {
        self.bytes -= known.bytes;
        if !self.changing {
            return Ok(Some(known.id));
        }
        let old = number(known.id);
        tx.prepare_cached("DELETE FROM point WHERE id = ?1")?
            .execute([known.id])?;
        self.points -= 1;
        done.changes.push((self.id, Change::Remove(old)));
        Ok(None)
    }

    /// Notes the text of a point that was kept without it, and that nobody makes again at the moment.
    fn learn(
        &mut self,
        tx: &Transaction<'_>,
        known: &Known,
        text: Option<&str>,
    ) -> Result<(), StorageError> {
        let Some(text) = text.filter(|_| known.textless) else {
            return Ok(());
        };
        tx.prepare_cached("UPDATE point SET text = ?2 WHERE id = ?1")?
            .execute(params![known.id, text])?;
        self.bytes += text.len() as i64;
        Ok(())
    }

    /// What was staged of the same before goes, whoever made it: what comes last counts. Another vector of an entity is another
    /// point, unless it is of the same text.
    fn outdate(&self, tx: &Transaction<'_>, point: &Point) -> Result<(), StorageError> {
        let Some(staged) = self.staged else {
            return Ok(());
        };
        let (subject, source) = (
            hash(staged, &text(&point.subject)?),
            hash(staged, &point.source()),
        );
        let sql = "DELETE FROM point WHERE subject = (SELECT id FROM subject WHERE hash = ?1)
                   AND source = (SELECT id FROM source WHERE hash = ?2)
                   AND (tag = 0 OR text = ?3)
                   RETURNING octet_length(vector) + coalesce(octet_length(text), 0), fresh";
        let named = params![&subject[..], &source[..], point.text];
        let gone: Vec<(i64, i64)> = tx
            .prepare_cached(sql)?
            .query_map(named, |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_, _>>()?;
        let mut less = Less::default();
        gone.into_iter()
            .for_each(|(bytes, fresh)| less.point(bytes, 0, fresh != 0));
        less.take(tx, staged)
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
            Some(id) => {
                // Earlier releases kept no name, and what was made anew may come once more.
                tx.prepare_cached("UPDATE source SET name = ?2 WHERE id = ?1 AND name <> ?2")?
                    .execute(params![id, point.chunk])?;
                self.revive(tx, id)?;
                id
            }
            None => {
                let id = row_id(self.id, take(&mut self.next_source)?);
                let chunk = hash(self.id, &point.chunk);
                let chunk = (!point.made_by.is_empty()).then_some(&chunk[..]);
                let sql = "INSERT INTO source (id, hash, chunk, made_by, name)
                           VALUES (?1, ?2, ?3, ?4, ?5)";
                tx.prepare_cached(sql)?.execute(params![
                    id,
                    &hashed[..],
                    chunk,
                    point.made_by,
                    point.chunk
                ])?;
                id
            }
        };
        self.sources.insert(name, id);
        Ok(id)
    }

    /// What was to go at the switch stays, if it was: its points, which were passed over, are looked at again.
    fn revive(&self, tx: &Transaction<'_>, source: i64) -> Result<(), StorageError> {
        let sql = "UPDATE source SET superseded = 0 WHERE id = ?1 AND superseded";
        if tx.prepare_cached(sql)?.execute([source])? == 0 {
            return Ok(());
        }
        let sql = "SELECT min(id) FROM point WHERE source = ?1";
        let first: Option<i64> = tx
            .prepare_cached(sql)?
            .query_row([source], |row| row.get(0))?;
        let Some(first) = first else {
            return Ok(());
        };
        let sql = "UPDATE space SET reembedded = min(reembedded, ?2) WHERE id = ?1";
        let before = number(first).saturating_sub(1);
        tx.prepare_cached(sql)?.execute(params![self.id, before])?;
        Ok(())
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

/// A point that is there.
struct Known {
    id: i64,
    /// With the same facets and vector.
    same: bool,
    textless: bool,
    fresh: bool,
    bytes: i64,
}

impl Known {
    /// The point of a subject, a source and a tag.
    fn find(
        tx: &Transaction<'_>,
        (subject, source, tag): (i64, i64, i64),
        facet: u32,
        vector: &[u8],
    ) -> Result<Option<Self>, StorageError> {
        let sql = "SELECT id, facet, vector, octet_length(text), fresh FROM point
                   WHERE subject = ?1 AND source = ?2 AND tag = ?3";
        let found = tx
            .prepare_cached(sql)?
            .query_row(params![subject, source, tag], |row| {
                let held = row.get_ref(2)?.as_blob().unwrap_or_default();
                let text: Option<i64> = row.get(3)?;
                Ok(Self {
                    id: row.get(0)?,
                    same: row.get::<_, i64>(1)? == i64::from(facet) && held == vector,
                    textless: text.is_none(),
                    fresh: row.get(4)?,
                    bytes: held.len() as i64 + text.unwrap_or(0),
                })
            })
            .optional()?;
        Ok(found)
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

/// Bytes that a point takes at most, with its text; of what others have too it takes fewer.
pub(super) fn weight(point: &Point) -> Result<u64, StorageError> {
    let facets = match point.facets.is_empty() {
        true => 0,
        false => text(&point.facets)?.len(),
    };
    let vector = size_of_val(point.vector.as_slice());
    let of = point.text.as_ref().map_or(0, String::len);
    Ok((vector + of + text(&point.subject)?.len() + facets) as u64)
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
