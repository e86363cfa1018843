//! Rows of documents. Every statement names the workspace.

use tg_schemas::msg::DocumentMetadata;
use tg_storage::rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use tg_storage::{StorageError, query_rows};

use super::content;
use super::json::{from_json, json};
use crate::store::documents::{Listing, Prepared, Which};

const COLUMNS: &str =
    "id, time, kind, title, comments, metadata, tags, parent, type, content, number,
     (SELECT lower(hex(hash)) FROM content WHERE content.number = document.content)";

/// Bytes of what is said of documents after which a page ends.
const PAGE_BYTES: usize = 2 << 20;

/// A document with the number of its content.
pub(crate) struct Stored {
    pub(crate) document: DocumentMetadata,
    pub(crate) content: i64,
    pub(crate) number: i64,
}

fn read(row: &Row<'_>) -> tg_storage::rusqlite::Result<Stored> {
    Ok(Stored {
        document: DocumentMetadata {
            id: row.get(0)?,
            time: row.get(1)?,
            kind: row.get(2)?,
            title: row.get(3)?,
            comments: row.get(4)?,
            metadata: from_json(row, 5)?,
            tags: from_json(row, 6)?,
            parent_id: row.get(7)?,
            document_type: row.get(8)?,
            content_hash: row.get::<_, Option<String>>(11)?.unwrap_or_default(),
        },
        content: row.get(9)?,
        number: row.get(10)?,
    })
}

/// Adds a row; `content` was acquired for it.
pub(crate) fn insert(
    tx: &Transaction<'_>,
    workspace: &str,
    document: &DocumentMetadata,
    content: i64,
) -> Result<(), StorageError> {
    tx.prepare_cached(
        "INSERT INTO document
         (workspace, id, time, kind, title, comments, metadata, tags, parent, type, content)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?
    .execute(params![
        workspace,
        document.id,
        document.time,
        document.kind,
        document.title,
        document.comments,
        json(&document.metadata)?,
        json(&document.tags)?,
        document.parent_id,
        document.document_type,
        content,
    ])?;
    Ok(())
}

/// Overwrites what may change. `false` if there is no such document.
pub(crate) fn update(
    tx: &Transaction<'_>,
    workspace: &str,
    document: &DocumentMetadata,
) -> Result<bool, StorageError> {
    let changed = tx
        .prepare_cached(
            "UPDATE document SET time = ?3, title = ?4, comments = ?5, metadata = ?6, tags = ?7
             WHERE workspace = ?1 AND id = ?2",
        )?
        .execute(params![
            workspace,
            document.id,
            document.time,
            document.title,
            document.comments,
            json(&document.metadata)?,
            json(&document.tags)?,
        ])?;
    Ok(changed > 0)
}

/// Gives a document other content; the use of the old content ends.
pub(crate) fn set_content(
    tx: &Transaction<'_>,
    stored: &Stored,
    prepared: &Prepared,
) -> Result<(), StorageError> {
    let new = content::acquire(tx, prepared)?;
    tx.prepare_cached("UPDATE document SET content = ?2 WHERE number = ?1")?
        .execute([stored.number, new])?;
    // Last: what a workspace keeps is counted by the sizes of both.
    content::release(tx, stored.content)
}

/// Gives a document another parent.
pub(crate) fn set_parent(
    tx: &Transaction<'_>,
    number: i64,
    parent: &str,
) -> Result<(), StorageError> {
    tx.prepare_cached("UPDATE document SET parent = ?2 WHERE number = ?1")?
        .execute(params![number, parent])?;
    Ok(())
}

pub(crate) fn get(
    conn: &Connection,
    workspace: &str,
    id: &str,
) -> Result<Option<Stored>, StorageError> {
    let sql = format!("SELECT {COLUMNS} FROM document WHERE workspace = ?1 AND id = ?2");
    let mut query = conn.prepare_cached(&sql)?;
    Ok(query.query_row([workspace, id], read).optional()?)
}

pub(crate) fn exists(conn: &Connection, workspace: &str, id: &str) -> Result<bool, StorageError> {
    let mut query =
        conn.prepare_cached("SELECT 1 FROM document WHERE workspace = ?1 AND id = ?2")?;
    Ok(query.exists([workspace, id])?)
}

/// Documents with their numbers in the order they came: a page, that ends where it is large.
pub(crate) fn walk(
    conn: &Connection,
    workspace: &str,
    walk: &Listing,
) -> Result<Vec<(i64, DocumentMetadata)>, StorageError> {
    let (only, parent) = match &walk.which {
        Which::Everything => ("?3 = ''", ""),
        Which::OnTop => ("?3 = '' AND parent = '' AND type <> 'answer'", ""),
        Which::PartsOf(parent) => ("parent = ?3 AND parent <> ''", parent.as_str()),
    };
    let into = match walk.collection.as_str() {
        "" => "?4 = ''",
        _ => {
            "EXISTS (SELECT 1 FROM run WHERE run.workspace = ?1 AND run.document = document.id
             AND run.collection = ?4 AND run.listed = 1)"
        }
    };
    // One document is found by its id: whatever else a workspace has is not looked at.
    let one = match walk.id.as_str() {
        "" => "?6 = ''",
        _ => "id = ?6",
    };
    let sql = format!(
        "SELECT {COLUMNS} FROM document
         WHERE workspace = ?1 AND number > ?2 AND {only} AND {into} AND {one}
         ORDER BY number LIMIT ?5"
    );
    let mut query = conn.prepare_cached(&sql)?;
    let mut rows = query.query(params![
        workspace,
        walk.after,
        parent,
        walk.collection,
        walk.most,
        walk.id
    ])?;
    let (mut found, mut bytes) = (Vec::new(), 0);
    while bytes < PAGE_BYTES
        && let Some(row) = rows.next()?
    {
        for at in 2..7 {
            bytes += row.get_ref(at)?.as_str().map_or(0, str::len);
        }
        let stored = read(row)?;
        found.push((stored.number, stored.document));
    }
    Ok(found)
}

/// Removes a document with all its descendants. Returns the ids of what is gone, the document's first;
/// `None` if there is no such document.
pub(crate) fn remove(
    tx: &Transaction<'_>,
    workspace: &str,
    id: &str,
) -> Result<Option<Vec<String>>, StorageError> {
    let mut gone = tx.prepare_cached(
        "DELETE FROM document WHERE workspace = ?1 AND id IN (
             WITH RECURSIVE below (id) AS (
                 VALUES (?2)
                 UNION
                 SELECT document.id FROM document JOIN below
                 ON document.workspace = ?1 AND document.parent = below.id AND below.id <> ''
                 AND document.parent <> ''
             )
             SELECT id FROM below
         ) RETURNING id, content",
    )?;
    let rows = gone
        .query_map([workspace, id], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<Vec<(String, i64)>, _>>()?;
    if rows.is_empty() {
        return Ok(None);
    }
    let mut ids = vec![id.to_owned()];
    for (gone, number) in rows {
        content::release(tx, number)?;
        if gone != id {
            ids.push(gone);
        }
    }
    Ok(Some(ids))
}

/// Removes the oldest answers of each workspace above a number; at most `batch` at once. Returns how many
/// were removed.
pub(crate) fn trim_answers(
    tx: &Transaction<'_>,
    keep: u32,
    batch: u32,
) -> Result<usize, StorageError> {
    let mut crowded = tx.prepare_cached(
        "SELECT workspace, count(*) - ?1 FROM document WHERE type = 'answer'
         GROUP BY workspace HAVING count(*) > ?1",
    )?;
    let crowded = crowded
        .query_map([keep], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<Vec<(String, u32)>, _>>()?;
    let mut removed = 0;
    for (workspace, above) in crowded {
        let mut gone = tx.prepare_cached(
            "DELETE FROM document WHERE number IN (
                 SELECT number FROM document WHERE workspace = ?1 AND type = 'answer'
                 ORDER BY number LIMIT ?2
             ) RETURNING content",
        )?;
        let contents = gone
            .query_map(params![workspace, above.min(batch)], |row| row.get(0))?
            .collect::<Result<Vec<i64>, _>>()?;
        removed += contents.len();
        for number in contents {
            content::release(tx, number)?;
        }
    }
    Ok(removed)
}

/// Workspaces with anything of ours, sorted, after one.
pub(crate) fn workspaces(
    conn: &Connection,
    after: &str,
    most: u32,
) -> Result<Vec<String>, StorageError> {
    let sql = "SELECT workspace FROM (
             SELECT workspace FROM document UNION SELECT workspace FROM run
             UNION SELECT workspace FROM target UNION SELECT workspace FROM upload
             UNION SELECT workspace FROM outbox
             UNION SELECT workspace FROM collection WHERE deleted = 0
         ) WHERE workspace > ?1 ORDER BY workspace LIMIT ?2";
    query_rows(conn, sql, params![after, most], |row| row.get(0))
}

/// Removes all documents of a workspace.
pub(crate) fn purge(tx: &Transaction<'_>, workspace: &str) -> Result<(), StorageError> {
    let mut gone =
        tx.prepare_cached("DELETE FROM document WHERE workspace = ?1 RETURNING content")?;
    let contents = gone
        .query_map([workspace], |row| row.get(0))?
        .collect::<Result<Vec<i64>, _>>()?;
    for number in contents {
        content::release(tx, number)?;
    }
    Ok(())
}
