//! Cores and their pieces.

use async_trait::async_trait;
use tg_collections::{Quota, Usage, Words};
use tg_storage::StorageError;
use tg_storage::rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::file::SqliteCores;
use super::{loads, policies};
use crate::engine::key::{CoreKey, Kind};
use crate::engine::piece::{Part, Piece};
use crate::store::{CoreStore, Passing, Stored};

/// Bytes of pieces read at once, unless the first has more.
const PAGE: usize = 1 << 20;
/// How the quota is told.
const WORDS: Words = Words {
    place: "the knowledge cores",
    items: "cores",
    bytes: "of knowledge",
};
/// Pieces of deleted cores that are purged in one step.
const PURGED: i64 = 64;

#[async_trait]
impl CoreStore for SqliteCores {
    async fn list(
        &self,
        workspace: &str,
        kind: Kind,
        after: &str,
        most: u32,
    ) -> Result<Vec<String>, StorageError> {
        let (workspace, after) = (workspace.to_owned(), after.to_owned());
        let sql = "SELECT name FROM core WHERE workspace = ?1 AND kind = ?2 AND name > ?3
                   ORDER BY name LIMIT ?4";
        self.db
            .read(move |conn| {
                let mut rows = conn.prepare_cached(sql)?;
                let of = params![workspace, kind.code(), after, most];
                let names = rows.query_map(of, |row| row.get(0))?;
                Ok(names.collect::<Result<_, _>>()?)
            })
            .await
    }

    async fn find(&self, key: &CoreKey) -> Result<Option<i64>, StorageError> {
        let key = key.clone();
        self.db.read(move |conn| find(conn, &key)).await
    }

    async fn keep(
        &self,
        key: CoreKey,
        pieces: Vec<Piece>,
        passing: Option<Passing>,
    ) -> Result<usize, StorageError> {
        let pieces: Vec<Digested> = pieces
            .into_iter()
            .map(|piece| (piece.digest(), piece))
            .collect();
        let quota = self.quota;
        self.db
            .write(move |tx| {
                if let Some(run) = passing.as_ref().and_then(|of| of.run.as_ref())
                    && loads::is_load(tx, run)?
                {
                    return Ok(0);
                }
                check(tx, quota, &key, &pieces)?;
                let core = find_or_make(tx, &key)?;
                if let Some(of) = &passing {
                    policies::note_source(tx, core, &of.collection)?;
                }
                let sql = "INSERT INTO piece (core, part, digest, model, items, body)
                           VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (core, digest) DO NOTHING";
                let mut insert = tx.prepare_cached(sql)?;
                let (mut count, mut bytes) = (0, 0);
                for (digest, piece) in &pieces {
                    let new = insert.execute(params![
                        core,
                        piece.part.code(),
                        &digest[..],
                        piece.model,
                        piece.items as i64,
                        piece.body
                    ])?;
                    count += new;
                    bytes += new * piece.body.len();
                }
                tx.prepare_cached("UPDATE core SET bytes = bytes + ?2 WHERE id = ?1")?
                    .execute(params![core, bytes as i64])?;
                Ok(count)
            })
            .await
    }

    async fn page(&self, core: i64, part: Part, after: i64) -> Result<Vec<Stored>, StorageError> {
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

    async fn piece(&self, core: i64, id: i64) -> Result<Option<Piece>, StorageError> {
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

    async fn delete(&self, keys: Vec<CoreKey>) -> Result<bool, StorageError> {
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

    async fn purge_some(&self) -> Result<bool, StorageError> {
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
                let gone = tx.prepare_cached(sql)?.execute([core, PURGED])?;
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

/// A piece under its digest.
type Digested = ([u8; 32], Piece);

/// Refuses pieces that the workspace has no room for. What is there already needs none; it is looked for only where room
/// is short.
fn check(
    tx: &Transaction<'_>,
    quota: Quota,
    key: &CoreKey,
    pieces: &[Digested],
) -> Result<(), StorageError> {
    let sql = "SELECT count(*), coalesce(sum(bytes), 0) FROM core WHERE workspace = ?1";
    let held = tx.prepare_cached(sql)?.query_row([&key.workspace], |row| {
        Ok(Usage {
            items: row.get::<_, i64>(0)?.unsigned_abs(),
            bytes: row.get::<_, i64>(1)?.unsigned_abs(),
        })
    })?;
    let core = find(tx, key)?;
    let bytes = |piece: &Piece| piece.body.len() as u64;
    let mut more = Usage {
        items: u64::from(core.is_none()),
        bytes: pieces.iter().map(|(_, piece)| bytes(piece)).sum(),
    };
    if quota.check(&WORDS, held, more).is_ok() {
        return Ok(());
    }
    if let Some(core) = core {
        let sql = "SELECT EXISTS (SELECT 1 FROM piece WHERE core = ?1 AND digest = ?2)";
        let mut there = tx.prepare_cached(sql)?;
        for (digest, piece) in pieces {
            if there.query_row(params![core, &digest[..]], |row| row.get(0))? {
                more.bytes -= bytes(piece);
            }
        }
    }
    quota
        .check(&WORDS, held, more)
        .map_err(StorageError::Refused)
}

fn drop_core(tx: &Transaction<'_>, core: i64) -> Result<(), StorageError> {
    tx.prepare_cached("DELETE FROM core WHERE id = ?1")?
        .execute([core])?;
    tx.prepare_cached("INSERT INTO dropped VALUES (?1)")?
        .execute([core])?;
    policies::drop_sources(tx, core)
}

pub(super) fn drop_workspace(tx: &Transaction<'_>, workspace: &str) -> Result<(), StorageError> {
    let gone: Vec<i64> = tx
        .prepare_cached("SELECT id FROM core WHERE workspace = ?1")?
        .query_map([workspace], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    gone.into_iter().try_for_each(|core| drop_core(tx, core))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_pieces_of_a_deleted_core_are_purged() {
        let cores = SqliteCores::in_memory(Quota::UNLIMITED).unwrap();
        let core = CoreKey::new("w", Kind::Graph, "urn:doc", "id").unwrap();
        for number in 0..100 {
            let piece = Piece {
                part: Part::Triples,
                model: String::new(),
                items: 1,
                body: vec![number],
            };
            cores.keep(core.clone(), vec![piece], None).await.unwrap();
        }
        assert_eq!(cores.delete(vec![core]).await, Ok(true));
        while cores.purge_some().await.unwrap() {}
        let sql = "SELECT count(*) FROM piece";
        let left = cores
            .db
            .read(move |conn| Ok(conn.query_row(sql, [], |row| row.get::<_, i64>(0))?));
        assert_eq!(left.await, Ok(0));
    }
}
