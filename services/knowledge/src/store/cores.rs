//! Cores and their pieces.

use tg_storage::StorageError;
use tg_storage::rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::{Cores, loads};
use crate::key::{CoreKey, Kind};
use crate::piece::{Part, Piece};

/// Bytes of pieces read at once, unless the first has more.
const PAGE: usize = 1 << 20;
/// Pieces of deleted cores that are reclaimed in one step.
const RECLAIMED: i64 = 64;

/// A piece that is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored {
    /// Grows in the order in which pieces came.
    pub(crate) id: i64,
    pub(crate) piece: Piece,
}

impl Cores {
    /// Names of the cores of a workspace, in order.
    pub(crate) async fn list(
        &self,
        workspace: &str,
        kind: Kind,
    ) -> Result<Vec<String>, StorageError> {
        let workspace = workspace.to_owned();
        let sql = "SELECT name FROM core WHERE workspace = ?1 AND kind = ?2 ORDER BY name";
        self.db
            .read(move |conn| {
                let mut rows = conn.prepare_cached(sql)?;
                let names = rows.query_map(params![workspace, kind.code()], |row| row.get(0))?;
                Ok(names.collect::<Result<_, _>>()?)
            })
            .await
    }

    /// The number of a core, if there is one.
    pub(crate) async fn find(&self, key: &CoreKey) -> Result<Option<i64>, StorageError> {
        let key = key.clone();
        self.db.read(move |conn| find(conn, &key)).await
    }

    /// Keeps pieces; those that are there already are left alone. Durable when `Ok`; the number of new ones.
    /// What comes of a load from here is there already, and of a core that was deleted meanwhile it stays
    /// away: pieces of such a `run` are not kept.
    pub(crate) async fn keep(
        &self,
        key: CoreKey,
        pieces: Vec<Piece>,
        run: Option<String>,
    ) -> Result<usize, StorageError> {
        let pieces: Vec<([u8; 32], Piece)> = pieces
            .into_iter()
            .map(|piece| (piece.digest(), piece))
            .collect();
        self.db
            .write(move |tx| {
                if let Some(run) = &run
                    && loads::is_load(tx, run)?
                {
                    return Ok(0);
                }
                let core = find_or_make(tx, &key)?;
                let sql = "INSERT INTO piece (core, part, digest, model, items, body)
                           VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (core, digest) DO NOTHING";
                let mut insert = tx.prepare_cached(sql)?;
                let mut count = 0;
                for (digest, piece) in &pieces {
                    count += insert.execute(params![
                        core,
                        piece.part.code(),
                        &digest[..],
                        piece.model,
                        piece.items as i64,
                        piece.body
                    ])?;
                }
                Ok(count)
            })
            .await
    }

    /// Pieces of a core that came after another, as many as fit a page; empty at the end.
    pub(crate) async fn page(
        &self,
        core: i64,
        part: Part,
        after: i64,
    ) -> Result<Vec<Stored>, StorageError> {
        let sql = "SELECT id, part, model, items, body FROM piece
                   WHERE core = ?1 AND part = ?2 AND id > ?3 ORDER BY id";
        self.db
            .read(move |conn| {
                let mut statement = conn.prepare_cached(sql)?;
                let mut rows = statement.query(params![core, part.code(), after])?;
                let (mut page, mut bytes) = (Vec::new(), 0);
                while let Some(row) = rows.next()? {
                    let stored = read(row)?;
                    bytes += stored.piece.body.len();
                    if bytes > PAGE && !page.is_empty() {
                        break;
                    }
                    page.push(stored);
                }
                Ok(page)
            })
            .await
    }

    /// One piece, unless its core was deleted meanwhile.
    pub(crate) async fn piece(&self, core: i64, id: i64) -> Result<Option<Piece>, StorageError> {
        let sql = "SELECT id, part, model, items, body FROM piece WHERE core = ?1 AND id = ?2";
        self.db
            .read(move |conn| {
                let found = conn
                    .prepare_cached(sql)?
                    .query_row(params![core, id], read)
                    .optional()?;
                Ok(found.map(|stored| stored.piece))
            })
            .await
    }

    /// Deletes cores. Whether there was one. Their pieces are out of reach at once and reclaimed later.
    pub(crate) async fn delete(&self, keys: Vec<CoreKey>) -> Result<bool, StorageError> {
        self.db
            .write(move |tx| {
                let mut any = false;
                for key in &keys {
                    let Some(core) = find(tx, key)? else {
                        continue;
                    };
                    any = true;
                    drop_core(tx, core)?;
                }
                Ok(any)
            })
            .await
    }

    /// Reclaims some of what deleted cores held. Whether there is more to do.
    pub(crate) async fn reclaim(&self) -> Result<bool, StorageError> {
        self.db
            .write(|tx| {
                let next = "SELECT core FROM dropped LIMIT 1";
                let next: Option<i64> = tx
                    .prepare_cached(next)?
                    .query_row([], |row| row.get(0))
                    .optional()?;
                let Some(core) = next else {
                    return Ok(false);
                };
                let sql = "DELETE FROM piece WHERE id IN
                           (SELECT id FROM piece WHERE core = ?1 LIMIT ?2)";
                let gone = tx.prepare_cached(sql)?.execute([core, RECLAIMED])?;
                if gone == 0 {
                    tx.prepare_cached("DELETE FROM dropped WHERE core = ?1")?
                        .execute([core])?;
                }
                Ok(true)
            })
            .await
    }
}

fn read(row: &tg_storage::rusqlite::Row<'_>) -> tg_storage::rusqlite::Result<Stored> {
    let code: i64 = row.get(1)?;
    let part = Part::read(code).ok_or(tg_storage::rusqlite::Error::IntegralValueOutOfRange(
        1, code,
    ))?;
    Ok(Stored {
        id: row.get(0)?,
        piece: Piece {
            part,
            model: row.get(2)?,
            items: usize::try_from(row.get::<_, i64>(3)?).unwrap_or(0),
            body: row.get(4)?,
        },
    })
}

fn find(conn: &Connection, key: &CoreKey) -> Result<Option<i64>, StorageError> {
    let sql = "SELECT id FROM core WHERE workspace = ?1 AND name = ?2 AND kind = ?3";
    let named = params![key.workspace, key.id, key.kind.code()];
    let found = conn
        .prepare_cached(sql)?
        .query_row(named, |row| row.get(0))
        .optional()?;
    Ok(found)
}

fn find_or_make(tx: &Transaction<'_>, key: &CoreKey) -> Result<i64, StorageError> {
    if let Some(core) = find(tx, key)? {
        return Ok(core);
    }
    let sql = "INSERT INTO core (workspace, name, kind) VALUES (?1, ?2, ?3)";
    tx.prepare_cached(sql)?
        .execute(params![key.workspace, key.id, key.kind.code()])?;
    Ok(tx.last_insert_rowid())
}

fn drop_core(tx: &Transaction<'_>, core: i64) -> Result<(), StorageError> {
    tx.prepare_cached("DELETE FROM core WHERE id = ?1")?
        .execute([core])?;
    tx.prepare_cached("INSERT INTO dropped VALUES (?1)")?
        .execute([core])?;
    Ok(())
}

pub(super) fn drop_workspace(tx: &Transaction<'_>, workspace: &str) -> Result<(), StorageError> {
    let gone: Vec<i64> = tx
        .prepare_cached("SELECT id FROM core WHERE workspace = ?1")?
        .query_map([workspace], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    gone.into_iter().try_for_each(|core| drop_core(tx, core))
}
