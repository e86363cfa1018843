//! Reading the file: whole spaces into memory, what is allowed by conditions, and what to say of the
//! points that a search found.

use tg_storage::StorageError;
use tg_storage::rusqlite::{Connection, OptionalExtension, params};

use super::schema::{Space, number, range, row_id, unpack};
use crate::engine::index::Index;
use crate::engine::point::{Condition, Facets, Point, Subject};
use crate::engine::scan::{Allowed, Bits};
use crate::store::Page;

/// Bytes of vectors and texts after which a page ends: as JSON they are several times that, and travel in one message.
const PAGE_BYTES: usize = 512 << 10;

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

/// Points of a space, from behind one on; `None` where that one is of another space.
pub(super) fn page(
    conn: &Connection,
    space: Option<Space>,
    after: Option<i64>,
    most: usize,
) -> Result<Option<Page>, StorageError> {
    let Some(space) = space else {
        return Ok(after.is_none().then(Page::default));
    };
    let (from, to) = range(space.id);
    let after = after.unwrap_or(from);
    if !(from..to).contains(&after) {
        return Ok(None);
    }
    let mut page = Page {
        model: space.model,
        ..Page::default()
    };
    let sql = "SELECT point.id, subject, name, made_by, facet, vector, text
               FROM point JOIN source ON source.id = point.source
               WHERE point.id > ?1 AND point.id < ?2 ORDER BY point.id LIMIT ?3";
    let mut statement = conn.prepare_cached(sql)?;
    let mut rows = statement.query(params![after, to, most as i64])?;
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        let (id, of): (i64, i64) = (row.get(0)?, row.get(1)?);
        let Some(subject) = subject(conn, space.id, number(of))? else {
            continue;
        };
        let blob = row
            .get_ref(5)?
            .as_blob()
            .map_err(|error| StorageError::Failed(error.to_string()))?;
        let mut vector = Vec::with_capacity(space.dimension);
        unpack(blob, &mut vector);
        let text: Option<String> = row.get(6)?;
        bytes += blob.len() + text.as_ref().map_or(0, String::len);
        page.points.push(Point {
            subject,
            chunk: row.get(2)?,
            made_by: row.get(3)?,
            facets: facets(conn, space.id, row.get(4)?)?,
            text,
            vector,
        });
        if page.points.len() >= most || bytes >= PAGE_BYTES {
            page.next = Some(id);
            break;
        }
    }
    Ok(Some(page))
}

fn parse<T: serde::de::DeserializeOwned>(body: &str) -> Result<T, StorageError> {
    serde_json::from_slice(body.as_bytes())
        .map_err(|error| StorageError::Corrupt(error.to_string()))
}
