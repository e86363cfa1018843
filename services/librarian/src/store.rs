//! The library's tables. All SQL of this crate is here.

use tg_schemas::msg::DocumentMetadata;
use tg_storage::StorageError;
use tg_storage::rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

pub(crate) const MIGRATIONS: &[&str] = &["
CREATE TABLE document (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace TEXT NOT NULL,
    id TEXT NOT NULL,
    time INTEGER NOT NULL,
    kind TEXT NOT NULL,
    title TEXT NOT NULL,
    comments TEXT NOT NULL,
    metadata TEXT NOT NULL,
    tags TEXT NOT NULL,
    parent TEXT NOT NULL,
    type TEXT NOT NULL,
    content TEXT NOT NULL,
    UNIQUE (workspace, id)
);
CREATE INDEX document_by_parent ON document (workspace, parent);
CREATE INDEX document_by_content ON document (content);
CREATE TABLE request (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE
);
"];

/// Questions that changed something are remembered, so that a repeat changes nothing.
const REMEMBERED: i64 = 10_000;

const COLUMNS: &str = "id, time, kind, title, comments, metadata, tags, parent, type, content";

/// A document with the hash of its content.
pub(crate) struct Stored {
    pub(crate) document: DocumentMetadata,
    pub(crate) content: String,
}

fn read(row: &Row<'_>) -> tg_storage::rusqlite::Result<Stored> {
    let json = |text: String| serde_json::from_str(&text).unwrap_or_default();
    let tags: String = row.get(6)?;
    Ok(Stored {
        document: DocumentMetadata {
            id: row.get(0)?,
            time: row.get(1)?,
            kind: row.get(2)?,
            title: row.get(3)?,
            comments: row.get(4)?,
            metadata: json(row.get(5)?),
            tags: serde_json::from_str(&tags).unwrap_or_default(),
            parent_id: row.get(7)?,
            document_type: row.get(8)?,
        },
        content: row.get(9)?,
    })
}

fn json<T: serde::Serialize>(value: &T) -> Result<String, StorageError> {
    serde_json::to_string(value).map_err(|error| StorageError::Sql(error.to_string()))
}

/// Notes a question. `false` if it was noted before: its change is made already.
pub(crate) fn note(tx: &Transaction<'_>, question: &str) -> Result<bool, StorageError> {
    if question.is_empty() {
        return Ok(true);
    }
    let new = tx
        .prepare_cached("INSERT INTO request (id) VALUES (?1) ON CONFLICT DO NOTHING")?
        .execute([question])?;
    if new > 0 {
        tx.prepare_cached("DELETE FROM request WHERE number <= ?1")?
            .execute([tx.last_insert_rowid() - REMEMBERED])?;
    }
    Ok(new > 0)
}

pub(crate) fn insert(
    tx: &Transaction<'_>,
    workspace: &str,
    document: &DocumentMetadata,
    content: &str,
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

pub(crate) fn get(
    conn: &Connection,
    workspace: &str,
    id: &str,
) -> Result<Option<Stored>, StorageError> {
    let sql = format!("SELECT {COLUMNS} FROM document WHERE workspace = ?1 AND id = ?2");
    let mut query = conn.prepare_cached(&sql)?;
    Ok(query.query_row([workspace, id], read).optional()?)
}

/// Documents in the order they came; without children and answers unless asked for.
pub(crate) fn list(
    conn: &Connection,
    workspace: &str,
    everything: bool,
) -> Result<Vec<DocumentMetadata>, StorageError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM document
         WHERE workspace = ?1 AND (?2 OR (parent = '' AND type <> 'answer')) ORDER BY number"
    );
    let mut query = conn.prepare_cached(&sql)?;
    let rows = query.query_map(params![workspace, everything], read)?;
    Ok(rows
        .map(|row| row.map(|stored| stored.document))
        .collect::<Result<_, _>>()?)
}

/// Direct children, in the order they came.
pub(crate) fn children(
    conn: &Connection,
    workspace: &str,
    parent: &str,
) -> Result<Vec<DocumentMetadata>, StorageError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM document WHERE workspace = ?1 AND parent = ?2 ORDER BY number"
    );
    let mut query = conn.prepare_cached(&sql)?;
    let rows = query.query_map([workspace, parent], read)?;
    Ok(rows
        .map(|row| row.map(|stored| stored.document))
        .collect::<Result<_, _>>()?)
}

/// Removes a document with all its descendants. Returns the hashes that nothing refers to any more;
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
             )
             SELECT id FROM below
         ) RETURNING content",
    )?;
    let contents = gone
        .query_map([workspace, id], |row| row.get(0))?
        .collect::<Result<Vec<String>, _>>()?;
    if contents.is_empty() {
        return Ok(None);
    }
    let mut used = tx.prepare_cached("SELECT 1 FROM document WHERE content = ?1")?;
    let mut orphans = Vec::new();
    for content in contents {
        if !used.exists([&content])? {
            orphans.push(content);
        }
    }
    Ok(Some(orphans))
}
