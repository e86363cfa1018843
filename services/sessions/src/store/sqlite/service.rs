//! Rows of the services that a workspace names.

use async_trait::async_trait;
use tg_collections::Quota;
use tg_schemas::{Error, ErrorCode};
use tg_storage::StorageError;
use tg_storage::rusqlite::{self, Connection, OptionalExtension, Row, Transaction, params};

use super::{SqliteSessions, room};
use crate::engine::cursor::Key;
use crate::engine::service_kind::ServiceKind;
use crate::store::{LlmService, LlmServiceRow, LlmServiceStore, Page, Removed};

/// Services of one workspace at most, of all kinds together.
const MOST: i64 = 1_000;
const COLUMNS: &str = "id, body, created, updated";

fn read(row: &Row<'_>) -> rusqlite::Result<LlmService> {
    Ok(LlmService {
        id: row.get(0)?,
        body: row.get(1)?,
        created: row.get(2)?,
        updated: row.get(3)?,
    })
}

/// Whether the workspace may have one more of this size.
fn has_room(tx: &Transaction<'_>, quota: &Quota, body: &str) -> Result<(), StorageError> {
    let known: i64 = tx
        .prepare_cached("SELECT count(*) FROM llm_service")?
        .query_row([], |row| row.get(0))?;
    if known >= MOST {
        let text = "a workspace may have at most 1,000 LLM services and reranking services";
        return Err(StorageError::Refused(Error::new(ErrorCode::TooLarge, text)));
    }
    room::check(tx, quota, 0, room::row(&[body]))
}

fn add(
    tx: &Transaction<'_>,
    kind: ServiceKind,
    new: &LlmServiceRow,
    quota: &Quota,
) -> Result<Option<LlmService>, StorageError> {
    let by: Option<(String, String)> = tx
        .prepare_cached("SELECT request, kind FROM llm_service WHERE id = ?1")?
        .query_row([&new.id], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    match by {
        Some((request, of)) if request != new.request || of != kind.as_str() => return Ok(None),
        Some(_) => {}
        None => {
            has_room(tx, quota, &new.body)?;
            // Later ones are later: two of one millisecond would have no order.
            tx.prepare_cached(
                "INSERT INTO llm_service (id, request, body, created, updated, kind)
                 SELECT ?1, ?2, ?3, at, at, ?5 FROM
                 (SELECT max(?4, coalesce((SELECT max(created) + 1 FROM llm_service), 0)) AS at)",
            )?
            .execute(params![
                new.id,
                new.request,
                new.body,
                new.at,
                kind.as_str()
            ])?;
        }
    }
    get(tx, kind, &new.id)
}

fn get(conn: &Connection, kind: ServiceKind, id: &str) -> Result<Option<LlmService>, StorageError> {
    let sql = format!("SELECT {COLUMNS} FROM llm_service WHERE id = ?1 AND kind = ?2");
    Ok(conn
        .prepare_cached(&sql)?
        .query_row([id, kind.as_str()], read)
        .optional()?)
}

fn list(
    conn: &Connection,
    kind: ServiceKind,
    after: Option<&Key>,
    most: usize,
    bytes: usize,
) -> Result<Page<LlmService>, StorageError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM llm_service WHERE created > ?1 AND kind = ?3 ORDER BY created LIMIT ?2"
    );
    let after = after.map_or(i64::MIN, |key| key.created);
    // One more tells whether there are more.
    let limit = i64::try_from(most.saturating_add(1)).unwrap_or(i64::MAX);
    let mut query = conn.prepare_cached(&sql)?;
    let mut rows = query.query(params![after, limit, kind.as_str()])?;
    let (mut page, mut room) = (Page::default(), bytes);
    while let Some(row) = rows.next()? {
        if page.items.len() == most || room == 0 {
            page.more = true;
            break;
        }
        let service = read(row)?;
        room = room.saturating_sub(service.body.len());
        page.items.push(service);
    }
    Ok(page)
}

fn change(
    tx: &Transaction<'_>,
    kind: ServiceKind,
    id: &str,
    body: &str,
    at: i64,
    quota: &Quota,
) -> Result<Option<LlmService>, StorageError> {
    let Some(known) = get(tx, kind, id)? else {
        return Ok(None);
    };
    let more = body.len().saturating_sub(known.body.len());
    room::check(tx, quota, 0, i64::try_from(more).unwrap_or(i64::MAX))?;
    tx.prepare_cached(
        "UPDATE llm_service SET body = ?2, updated = max(updated + 1, ?3) WHERE id = ?1",
    )?
    .execute(params![id, body, at])?;
    get(tx, kind, id)
}

fn remove(
    tx: &Transaction<'_>,
    kind: ServiceKind,
    id: &str,
    request: &str,
) -> Result<Removed, StorageError> {
    if room::is_done(tx, request, id)? {
        return Ok(Removed::Gone);
    }
    let by: Option<String> = tx
        .prepare_cached(
            "SELECT body FROM agent WHERE json_extract(body, '$.' || ?2) = ?1 ORDER BY created LIMIT 1",
        )?
        .query_row([id, kind.field()], |row| row.get(0))
        .optional()?;
    if let Some(agent) = by {
        return Ok(Removed::Named(agent));
    }
    let gone = tx
        .prepare_cached("DELETE FROM llm_service WHERE id = ?1 AND kind = ?2")?
        .execute([id, kind.as_str()])?;
    if gone == 0 {
        return Ok(Removed::Missing);
    }
    room::note_done(tx, request, id)?;
    Ok(Removed::Gone)
}

#[async_trait]
impl LlmServiceStore for SqliteSessions {
    async fn add_service(
        &self,
        kind: ServiceKind,
        workspace: &str,
        new: LlmServiceRow,
    ) -> Result<Option<LlmService>, StorageError> {
        let file = self.files.create(workspace).await?;
        let quota = self.quota;
        file.write(move |tx| add(tx, kind, &new, &quota)).await
    }

    async fn service(
        &self,
        kind: ServiceKind,
        workspace: &str,
        id: &str,
    ) -> Result<Option<LlmService>, StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(None);
        };
        let id = id.to_owned();
        file.read_short(move |conn| get(conn, kind, &id)).await
    }

    async fn services(
        &self,
        kind: ServiceKind,
        workspace: &str,
        after: Option<Key>,
        most: usize,
        bytes: usize,
    ) -> Result<Page<LlmService>, StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(Page::default());
        };
        file.read(move |conn| list(conn, kind, after.as_ref(), most, bytes))
            .await
    }

    async fn change_service(
        &self,
        kind: ServiceKind,
        workspace: &str,
        id: &str,
        body: String,
        at: i64,
    ) -> Result<Option<LlmService>, StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(None);
        };
        let (id, quota) = (id.to_owned(), self.quota);
        file.write(move |tx| change(tx, kind, &id, &body, at, &quota))
            .await
    }

    async fn remove_service(
        &self,
        kind: ServiceKind,
        workspace: &str,
        id: &str,
        request: &str,
    ) -> Result<Removed, StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(Removed::Missing);
        };
        let (id, request) = (id.to_owned(), request.to_owned());
        file.write(move |tx| remove(tx, kind, &id, &request)).await
    }
}
