//! Reading the file: whole spaces into memory, what is allowed by conditions, and what to say of the
//! points that a search found.

use tg_storage::StorageError;
use tg_storage::rusqlite::{Connection, OptionalExtension, params};

use super::schema::{number, range, row_id, unpack};
use crate::engine::index::Index;
use crate::engine::point::{Condition, Facets, Subject};
use crate::engine::scan::{Allowed, Bits};

/// A space's vectors, ready to be searched; none if the space has ended.
pub(super) fn load(conn: &Connection, space: i64, dimension: usize) -> Result<Index, StorageError> {
    let (from, to) = range(space);
    let count: Option<i64> = conn
        .prepare_cached("SELECT points FROM space WHERE id = ?1")?
        .query_row([space], |row| row.get(0))
        .optional()?;
    let Some(count) = count else {
        return Ok(Index::new(dimension, 0));
    };
    let mut index = Index::new(dimension, count.max(0) as usize);
    let sql = "SELECT id, subject, facet, vector FROM point WHERE id >= ?1 AND id < ?2 ORDER BY id";
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query([from, to])?;
    let mut vector = Vec::with_capacity(dimension);
    while let Some(row) = rows.next()? {
        let bytes = row
            .get_ref(3)?
            .as_blob()
            .map_err(|error| StorageError::Failed(error.to_string()))?;
        unpack(bytes, &mut vector);
        let (id, subject, facet) = (row.get(0)?, row.get(1)?, row.get(2)?);
        index.put(number(id), number(subject), facet, &mut vector);
    }
    Ok(index)
}

/// The facet sets that hold every condition.
pub(super) fn allowed(
    conn: &Connection,
    space: i64,
    conditions: &[Condition],
) -> Result<Allowed, StorageError> {
    let sql = "SELECT facet FROM facet_entry
               WHERE space = ?1 AND field = ?2 AND name = ?3 AND value = ?4";
    let mut both: Option<Bits> = None;
    for one in conditions {
        let mut bits = Bits::default();
        let mut statement = conn.prepare_cached(sql)?;
        let mut rows = statement.query(params![space, one.field, one.name, one.value])?;
        while let Some(row) = rows.next()? {
            bits.insert(row.get(0)?);
        }
        match &mut both {
            Some(both) => both.intersect(&bits),
            None => both = Some(bits),
        }
    }
    Ok(both.map_or(Allowed::All, Allowed::Some))
}

/// What a subject is; `None` if it is gone.
pub(super) fn subject(
    conn: &Connection,
    space: i64,
    subject: u32,
) -> Result<Option<Subject>, StorageError> {
    let body: Option<String> = conn
        .prepare_cached("SELECT body FROM subject WHERE id = ?1")?
        .query_row([row_id(space, subject)], |row| row.get(0))
        .optional()?;
    body.map(|body| parse(&body)).transpose()
}

/// A facet set; the empty one if it is gone.
pub(super) fn facets(conn: &Connection, space: i64, facet: u32) -> Result<Facets, StorageError> {
    if facet == 0 {
        return Ok(Facets::default());
    }
    let body: Option<String> = conn
        .prepare_cached("SELECT body FROM facet WHERE id = ?1")?
        .query_row([row_id(space, facet)], |row| row.get(0))
        .optional()?;
    body.map_or_else(|| Ok(Facets::default()), |body| parse(&body))
}

fn parse<T: serde::de::DeserializeOwned>(body: &str) -> Result<T, StorageError> {
    serde_json::from_str(body).map_err(|error| StorageError::Corrupt(error.to_string()))
}
