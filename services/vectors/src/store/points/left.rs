//! What a switch to another model would leave out: points that serve, of which the new model has none, because nobody knows
//! their text or the model refuses it. Counting may go through many of them, so it is done on a reader's connection, with the
//! state of the spaces that it is true of; whoever switches compares that.

use std::fmt::Write as _;

use tg_collections::CollectionKey;
use tg_schemas::Term;
use tg_storage::StorageError;
use tg_storage::rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::changing::outdated;
use super::read;
use super::schema::{Space, number, range, row_id, space};
use crate::engine::kind::Place;
use crate::engine::point::{Subject, hash};
use crate::store::reembed::Task;

/// What is left out is not counted beyond it.
const COUNTED: i64 = 1_000;
/// Points that the writer looks at itself, at most.
pub(super) const FEW: usize = 2_000;

/// What would be left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Left {
    pub(super) textless: i64,
    pub(super) refused: i64,
    /// The state of the spaces in which it was counted.
    pub(super) of: String,
}

impl Left {
    pub(super) fn is_some(&self) -> bool {
        self.textless > 0 || self.refused > 0
    }
}

/// Counts; `None` where more than `most` points would have to be looked at.
pub(super) fn count(
    conn: &Connection,
    of: &Task,
    most: usize,
) -> Result<Option<Left>, StorageError> {
    let mut left = Left {
        of: state(conn, &of.key)?,
        ..Left::default()
    };
    let mut patience = most;
    for (kind, held) in outdated(conn, &of.key, &of.model)? {
        let staged = space(conn, &of.key, Place::staged(kind))?;
        let (from, to) = range(held.id);
        let textless = "SELECT body FROM point JOIN subject ON subject.id = point.subject
                        JOIN source ON source.id = point.source
                        WHERE point.text IS NULL AND NOT superseded AND point.id >= ?1 AND point.id < ?2";
        let refused = "SELECT body FROM refused JOIN point ON point.id = refused.point
                       JOIN subject ON subject.id = point.subject
                       JOIN source ON source.id = point.source
                       WHERE NOT superseded AND refused.point >= ?1 AND refused.point < ?2";
        for (sql, sum) in [(textless, &mut left.textless), (refused, &mut left.refused)] {
            let mut statement = conn.prepare_cached(sql)?;
            let mut rows = statement.query([from, to])?;
            while let Some(row) = rows.next()? {
                if *sum == COUNTED {
                    break;
                }
                if patience == 0 {
                    return Ok(None);
                }
                patience -= 1;
                let body: String = row.get(0)?;
                *sum += i64::from(!covered(conn, staged.as_ref(), &body)?);
            }
        }
    }
    Ok(Some(left))
}

/// Whether the new model has a vector of a subject.
fn covered(conn: &Connection, staged: Option<&Space>, body: &str) -> Result<bool, StorageError> {
    let Some(staged) = staged else {
        return Ok(false);
    };
    let sql = "SELECT EXISTS (SELECT 1 FROM point WHERE subject =
               (SELECT id FROM subject WHERE hash = ?1))";
    let hash = hash(staged.id, body);
    let found = conn
        .prepare_cached(sql)?
        .query_row([&hash[..]], |row| row.get(0))?;
    Ok(found)
}

/// The state of a collection's spaces: another one after each point that comes or goes. What comes takes a number, and what goes
/// lowers the count, so nothing makes up for anything else.
pub(super) fn state(conn: &Connection, key: &CollectionKey) -> Result<String, StorageError> {
    let sql = "SELECT id, points, next_point, reembedded FROM space
               WHERE workspace = ?1 AND collection = ?2 AND incarnation = ?3 ORDER BY id";
    let named = params![key.workspace(), key.collection(), key.generation()];
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(named)?;
    let mut said = String::new();
    while let Some(row) = rows.next()? {
        for at in 0..4 {
            let _ = write!(said, "{} ", row.get::<_, i64>(at)?);
        }
    }
    Ok(said)
}

/// Whether it was counted in this very state, and something was left.
pub(super) fn still(conn: &Connection, of: &Task) -> Result<bool, StorageError> {
    let sql = "SELECT counted FROM reembedding
               WHERE id = ?1 AND NOT leave_out AND textless + refused > 0";
    let counted: Option<String> = conn
        .prepare_cached(sql)?
        .query_row([of.id], |row| row.get(0))
        .optional()?;
    Ok(match counted {
        Some(counted) => counted == state(conn, &of.key)?,
        None => false,
    })
}

/// Notes what is left.
pub(super) fn note(tx: &Transaction<'_>, of: &Task, left: &Left) -> Result<(), StorageError> {
    let sql = "UPDATE reembedding SET textless = ?2, refused = ?3, counted = ?4 WHERE id = ?1";
    let named = params![of.id, left.textless, left.refused, left.of];
    tx.prepare_cached(sql)?.execute(named)?;
    Ok(())
}

/// What is left has to be counted again, though no point came or went.
pub(super) fn count_again(tx: &Transaction<'_>, key: &CollectionKey) -> Result<(), StorageError> {
    let sql = "UPDATE reembedding SET counted = ''
               WHERE workspace = ?1 AND collection = ?2 AND incarnation = ?3";
    let named = params![key.workspace(), key.collection(), key.generation()];
    tx.prepare_cached(sql)?.execute(named)?;
    Ok(())
}

/// Keeps why the text of a point is refused; an earlier refusal of it is forgotten where there is none now.
pub(super) fn refuse(
    tx: &Transaction<'_>,
    of: &Task,
    space: i64,
    at: u32,
    why: Option<&str>,
) -> Result<(), StorageError> {
    let id = row_id(space, at);
    match why {
        Some(why) => {
            let sql = "INSERT OR REPLACE INTO refused VALUES (?1, ?2, ?3, 0)";
            tx.prepare_cached(sql)?.execute(params![id, of.id, why])?;
        }
        None => {
            tx.prepare_cached("DELETE FROM refused WHERE point = ?1")?
                .execute([id])?;
        }
    }
    Ok(())
}

/// What was refused is tried once more.
pub(super) fn try_again(tx: &Transaction<'_>, reembedding: i64) -> Result<(), StorageError> {
    tx.prepare_cached("UPDATE refused SET again = 1 WHERE reembedding = ?1")?
        .execute([reembedding])?;
    Ok(())
}

/// Forgets the refusals of changes that are over, and of those that are to be.
pub(super) fn forget(tx: &Transaction<'_>, reembedding: i64) -> Result<(), StorageError> {
    tx.prepare_cached("DELETE FROM refused WHERE reembedding = ?1")?
        .execute([reembedding])?;
    Ok(())
}

/// How many texts are refused so far, and of the first of them whose it is and why.
pub(super) fn refusals(conn: &Connection, reembedding: i64) -> Result<(u64, String), StorageError> {
    let sql = "SELECT count(*) FROM (SELECT 1 FROM refused JOIN point ON point.id = refused.point
               WHERE reembedding = ?1 LIMIT ?2)";
    let count: i64 = conn
        .prepare_cached(sql)?
        .query_row([reembedding, COUNTED], |row| row.get(0))?;
    let sql = "SELECT point.subject, why FROM refused JOIN point ON point.id = refused.point
               WHERE reembedding = ?1 LIMIT 1";
    let first: Option<(i64, String)> = conn
        .prepare_cached(sql)?
        .query_row([reembedding], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let told = match first {
        None => String::new(),
        Some((subject, why)) => {
            let whose = read::subject(conn, subject >> 32, number(subject))?;
            format!("{}: {why}", whose.as_ref().map_or_else(String::new, name))
        }
    };
    Ok((count.unsigned_abs(), told))
}

/// Longest name that is told.
const NAME: usize = 200;

fn name(of: &Subject) -> String {
    let (what, name) = match of {
        Subject::Chunk(id) => ("chunk", id.clone()),
        Subject::Entity(Term::Iri(name) | Term::Blank(name)) => ("entity", name.clone()),
        Subject::Entity(Term::Literal { value, .. }) => ("entity", value.clone()),
        Subject::Entity(_) => ("entity", "that is a statement".to_owned()),
        Subject::Row { schema, value, .. } => ("row", format!("{schema} {}", value.join(" "))),
    };
    let name: String = name.chars().take(NAME).collect();
    format!("{what} {name}")
}
