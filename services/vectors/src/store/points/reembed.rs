//! Changing a collection to another model: its vectors are made again beside those that serve, and take their place all
//! at once.
//!
//! A row of `reembedding` says which model a collection is being changed to. What is made again is staged in a space of its
//! own; each transaction that stages also notes up to which number of the serving space it came, so a killed process goes
//! on where it was. Numbers only grow, and what changes after it was made again gets a new one. What flows write with the
//! new model meanwhile is staged, too.

use tg_storage::StorageError;
use tg_storage::rusqlite::{Connection, OptionalExtension, ToSql, Transaction, params};

use super::changing::{outdated, task};
use super::done::{Done, drop_where};
use super::left::{self, FEW, Left};
use super::put::is_there;
use super::read;
use super::retract::remove_marked;
use super::schema::{Space, number, range, row_id, space};
use super::write::put_at;
use crate::engine::kind::{Kind, Place};
use crate::engine::point::{Point, Subject, check_vector};
use crate::error::VectorError;
use crate::options::Limits;
use crate::store::reembed::{Batch, Begin, Made, Progress, State, Task};
use tg_collections::CollectionKey;

/// Points of a batch, at most.
const POINTS: i64 = 256;
/// Bytes of the texts of a batch; one text may have more.
const BYTES: usize = 256 << 10;

/// Begins; what was begun for another model is given up. Nothing is done where all vectors are of the model.
pub(super) fn begin(tx: &Transaction<'_>, begin: Begin) -> Result<Done, StorageError> {
    let key = &begin.key;
    let named = params![key.workspace(), key.collection(), key.generation()];
    let mut done = Done::default();
    if let Some(known) = task(tx, key)? {
        if known.model == begin.model {
            let sql =
                "UPDATE reembedding SET topic = ?2, leave_out = ?3, textless = 0, refused = 0,
                       counted = '' WHERE id = ?1";
            let named = params![known.id, begin.topic, begin.leave_out];
            tx.prepare_cached(sql)?.execute(named)?;
            left::try_again(tx, known.id)?;
            return Ok(done);
        }
        done = abandon(tx, key)?;
    }
    if outdated(tx, key, &begin.model)?.is_empty() {
        return Ok(done);
    }
    let sql = "DELETE FROM reembedding
               WHERE workspace = ?1 AND collection = ?2 AND incarnation = ?3";
    tx.prepare_cached(sql)?.execute(named)?;
    let sql = "INSERT INTO reembedding
               (workspace, collection, incarnation, model, topic, leave_out)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let named = params![
        key.workspace(),
        key.collection(),
        key.generation(),
        begin.model,
        begin.topic,
        begin.leave_out
    ];
    tx.prepare_cached(sql)?.execute(named)?;
    Ok(done)
}

/// Gives it up: what was staged goes.
pub(super) fn abandon(tx: &Transaction<'_>, key: &CollectionKey) -> Result<Done, StorageError> {
    let named = params![key.workspace(), key.collection(), key.generation()];
    let Some(known) = task(tx, key)? else {
        return Ok(Done::default());
    };
    left::forget(tx, known.id)?;
    tx.prepare_cached("DELETE FROM reembedding WHERE id = ?1")?
        .execute([known.id])?;
    let sql = "UPDATE space SET reembedded = 0
               WHERE workspace = ?1 AND collection = ?2 AND incarnation = ?3";
    tx.prepare_cached(sql)?.execute(named)?;
    let mut done = Done::default();
    for kind in Kind::ALL {
        if let Some(staged) = space(tx, key, Place::staged(kind))? {
            done.gone.extend(end(tx, &staged)?.gone);
        }
        if let Some(held) = space(tx, key, Place::serving(kind))? {
            remove_marked(tx, &held, &mut done)?;
        }
    }
    done.count = 1;
    Ok(done)
}

fn end(tx: &Transaction<'_>, held: &Space) -> Result<Done, StorageError> {
    let sql = "DELETE FROM space WHERE id = ?1 RETURNING id, points";
    drop_where(tx, sql, params![held.id])
}

/// How far a collection is; `None` where nothing was begun.
pub(super) fn progress(
    conn: &Connection,
    key: &CollectionKey,
) -> Result<Option<Progress>, StorageError> {
    let sql = "SELECT model, done, textless, switched, refused, id FROM reembedding
               WHERE workspace = ?1 AND collection = ?2 AND incarnation = ?3";
    let named = params![key.workspace(), key.collection(), key.generation()];
    let found = conn.prepare_cached(sql)?.query_row(named, |row| {
        let (switched, textless): (bool, i64) = (row.get(3)?, row.get(2)?);
        let refused: i64 = row.get(4)?;
        let told = Progress {
            model: row.get(0)?,
            done: row.get::<_, i64>(1)?.unsigned_abs(),
            textless: textless.unsigned_abs(),
            refused: refused.unsigned_abs(),
            state: match (switched, textless + refused) {
                (true, _) => State::Switched,
                (false, 0) => State::Running,
                (false, _) => State::Waiting,
            },
            ..Progress::default()
        };
        Ok((told, row.get(5)?))
    });
    let Some((mut told, id)) = found.optional()? else {
        return Ok(None);
    };
    told.serving = serving(conn, key)?;
    told.total = told.done;
    if told.state != State::Switched {
        let (refused, first) = left::refusals(conn, id)?;
        if told.state == State::Running {
            told.refused = refused;
        }
        told.refusal = first;
        let left = outdated(conn, key, &told.model)?;
        let all = left.iter().map(|(_, held)| held.points.unsigned_abs());
        told.total = all.sum::<u64>().max(told.done);
    }
    Ok(Some(told))
}

/// The models of the vectors that serve.
pub(super) fn serving(conn: &Connection, key: &CollectionKey) -> Result<Vec<String>, StorageError> {
    let mut models = Vec::new();
    for kind in Kind::ALL {
        let held = space(conn, key, Place::serving(kind))?;
        models.extend(held.filter(|held| held.points > 0).map(|held| held.model));
    }
    models.sort();
    models.dedup();
    Ok(models)
}

/// The next points to be made again, from one space; `None` when there are none.
pub(super) fn batch(conn: &Connection, of: &Task) -> Result<Option<Batch>, StorageError> {
    let next = "SELECT id, subject, text FROM point WHERE id > ?1 AND id < ?2
                ORDER BY id LIMIT ?3";
    let again = "SELECT id, subject, text FROM refused JOIN point ON point.id = refused.point
                 WHERE reembedding = ?1 AND again AND point >= ?2 AND point < ?3
                 ORDER BY point LIMIT ?4";
    for (_, held) in outdated(conn, &of.key, &of.model)? {
        let (from, to) = range(held.id);
        let mut batch = Batch {
            space: held.id,
            after: held.reembedded,
            ..Batch::default()
        };
        let at = params![row_id(held.id, held.reembedded), to, POINTS];
        let last = fill(conn, &mut batch, next, at)?;
        if last != 0 {
            batch.last = last;
            return Ok(Some(batch));
        }
        fill(conn, &mut batch, again, params![of.id, from, to, POINTS])?;
        if !batch.points.is_empty() {
            batch.last = batch.after;
            return Ok(Some(batch));
        }
    }
    Ok(None)
}

/// Takes points with their texts; the last number that was looked at, or 0.
fn fill(
    conn: &Connection,
    batch: &mut Batch,
    sql: &str,
    named: &[&dyn ToSql],
) -> Result<u32, StorageError> {
    let (mut last, mut bytes) = (0, 0);
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(named)?;
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(0)?;
        let text: Option<String> = row.get(2)?;
        if let Some(text) = text {
            let text = match text.is_empty() {
                true => text_of(conn, row.get(1)?)?,
                false => text,
            };
            bytes += text.len();
            if bytes > BYTES && !batch.points.is_empty() {
                break;
            }
            batch.points.push((number(id), text));
        }
        last = number(id);
    }
    Ok(last)
}

/// The text of a row's value.
fn text_of(conn: &Connection, subject: i64) -> Result<String, StorageError> {
    let found = read::subject(conn, subject >> 32, number(subject))?;
    Ok(match found {
        Some(Subject::Row { text, .. }) => text,
        _ => String::new(),
    })
}

/// Stages what was made of a batch. Nothing happens where the work was given up, or others went on meanwhile.
pub(super) fn stage(
    tx: &Transaction<'_>,
    limits: Limits,
    made: Made,
) -> Result<Result<Done, VectorError>, StorageError> {
    let mut done = Done {
        late: true,
        ..Done::default()
    };
    let Made {
        task: of,
        batch,
        vectors,
        refused,
    } = made;
    let current = task(tx, &of.key)?.is_some_and(|now| now.id == of.id);
    let all = outdated(tx, &of.key, &of.model)?.into_iter();
    let mut held = all.filter(|(_, held)| held.id == batch.space && held.reembedded == batch.after);
    let Some((kind, _)) = held.next().filter(|_| current) else {
        return Ok(Ok(done));
    };
    done.late = false;
    let place = Place::staged(kind);
    let staged = space(tx, &of.key, place)?;
    let mut count: i64 = 0;
    let mut points = Vec::with_capacity(batch.points.len());
    // What is told of the batch is told with it, or not at all.
    let mut told = Vec::with_capacity(batch.points.len());
    for ((number, _), vector) in batch.points.into_iter().zip(vectors) {
        let why = refused.iter().find(|(of, _)| *of == number);
        let Some(point) = point(tx, batch.space, number, vector)? else {
            // Taken back meanwhile.
            told.push((number, None));
            continue;
        };
        let why = why.map(|(_, why)| why.as_str());
        told.push((number, why));
        if why.is_some() {
            continue;
        }
        count += 1;
        if let Err(unusable) = check_vector("vectors", &point.vector) {
            return Ok(Err(unusable));
        }
        let newer = match &staged {
            Some(staged) => is_there(tx, staged.id, &point)?,
            None => false,
        };
        if !newer {
            points.push(point);
        }
    }
    if !points.is_empty()
        && let Err(refused) = put_at(
            tx,
            limits.memory,
            &of.key,
            place,
            &of.model,
            points,
            &mut done,
        )?
    {
        return Ok(Err(refused));
    }
    for (number, why) in told {
        left::refuse(tx, &of, batch.space, number, why)?;
    }
    tx.prepare_cached("UPDATE space SET reembedded = ?2 WHERE id = ?1")?
        .execute(params![batch.space, batch.last])?;
    let sql = "UPDATE reembedding SET done = done + ?2, textless = 0, refused = 0, counted = ''
               WHERE id = ?1";
    tx.prepare_cached(sql)?.execute(params![of.id, count])?;
    done.count = count as usize;
    Ok(Ok(done))
}

/// A point with another vector; `None` if it is gone.
fn point(
    tx: &Transaction<'_>,
    space: i64,
    at: u32,
    vector: Vec<f32>,
) -> Result<Option<Point>, StorageError> {
    let sql = "SELECT subject, facet, point.text, name, made_by
               FROM point JOIN source ON source.id = point.source
               WHERE point.id = ?1 AND NOT superseded";
    let found = tx
        .prepare_cached(sql)?
        .query_row([row_id(space, at)], |row| {
            Ok((
                row.get::<_, i64>(0)?,
                row.get::<_, u32>(1)?,
                row.get::<_, Option<String>>(2)?,
                row.get::<_, String>(3)?,
                row.get::<_, String>(4)?,
            ))
        });
    let Some((subject, facet, text, chunk, made_by)) = found.optional()? else {
        return Ok(None);
    };
    let Some(subject) = read::subject(tx, space, number(subject))? else {
        return Ok(None);
    };
    Ok(Some(Point {
        subject,
        chunk,
        made_by,
        facets: read::facets(tx, space, facet)?,
        text,
        vector,
    }))
}

/// Switches over, if every vector was made again: those that served go and the staged ones serve, of all kinds at once.
/// `late` where something is left to do. `counted` is what is left out, as a reader counted it.
pub(super) fn switch(
    tx: &Transaction<'_>,
    of: &Task,
    counted: Option<Left>,
) -> Result<Done, StorageError> {
    let mut done = Done {
        late: true,
        ..Done::default()
    };
    let current = task(tx, &of.key)?.filter(|now| now.id == of.id);
    let Some(of) = current else {
        return Ok(done);
    };
    if batch(tx, &of)?.is_some() {
        return Ok(done);
    }
    let counted = match left::count(tx, &of, FEW)? {
        Some(left) => left,
        None => {
            let now = left::state(tx, &of.key)?;
            match counted.filter(|counted| counted.of == now) {
                Some(left) => left,
                // Something came or went since: it is counted once more.
                None => return Ok(done),
            }
        }
    };
    left::note(tx, &of, &counted)?;
    if counted.is_some() && !of.leave_out {
        return Ok(done);
    }
    left::forget(tx, of.id)?;
    for kind in Kind::ALL {
        let (serving, staged) = (Place::serving(kind), Place::staged(kind));
        let held = space(tx, &of.key, serving)?.filter(|held| held.is_of_another(&of.model));
        if let Some(held) = held {
            let ended = end(tx, &held)?;
            done.gone.extend(ended.gone);
            done.count += ended.count;
        }
        if let Some(staged) = space(tx, &of.key, staged)? {
            let sql = "UPDATE space SET kind = ?2, fresh = 0, fresh_bytes = 0 WHERE id = ?1";
            tx.prepare_cached(sql)?
                .execute(params![staged.id, serving.code()])?;
        }
    }
    tx.prepare_cached("UPDATE reembedding SET switched = 1 WHERE id = ?1")?
        .execute([of.id])?;
    done.late = false;
    Ok(done)
}
