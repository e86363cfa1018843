//! Statements that do not fit, a row each.

use async_trait::async_trait;
use tg_storage::rusqlite::types::Value;
use tg_storage::rusqlite::{Connection, Row, Transaction, params, params_from_iter};
use tg_storage::{StorageError, query_rows};

use super::SqliteLedger;
use crate::engine::ontology::Rejected;
use crate::store::quarantine::{Origin, Quarantine, Quarantined, Which};

/// Longest statement; a longer one is only counted.
const LONGEST: usize = 64 << 10;
/// Bytes of a row beside its texts.
const ROW: usize = 256;

const COLUMNS: &str = "number, flow, collection, generation, document, chunk, model, prompt_version, asked_at, \
                       statement, reason";

fn read(row: &Row<'_>) -> tg_storage::rusqlite::Result<Quarantined> {
    Ok(Quarantined {
        number: row.get(0)?,
        origin: Origin {
            flow: row.get(1)?,
            collection: row.get(2)?,
            generation: row.get(3)?,
            document: row.get(4)?,
            chunk: row.get(5)?,
            model: row.get(6)?,
            prompt_version: row.get(7)?,
            asked_at: row.get(8)?,
        },
        rejected: Rejected {
            statement: row.get(9)?,
            reason: row.get(10)?,
        },
    })
}

/// What is meant of a workspace, with what stands for its placeholders.
fn meant(workspace: String, which: Which) -> (String, Vec<Value>) {
    let mut sql = "workspace = ?".to_owned();
    let mut bound = vec![Value::Text(workspace)];
    let mut add = |column: &str, value: Option<Value>| {
        if let Some(value) = value {
            sql.push_str(&format!(" AND {column} = ?"));
            bound.push(value);
        }
    };
    let text = |text: String| Some(text).filter(|text| !text.is_empty()).map(Value::Text);
    add("number", which.number.map(Value::Integer));
    add("flow", text(which.flow));
    add("collection", text(which.collection));
    (sql, bound)
}

fn is_kept(conn: &Connection, workspace: &str, origin: &Origin) -> Result<bool, StorageError> {
    let mut query = conn.prepare_cached(
        "SELECT 1 FROM violation WHERE workspace = ?1 AND chunk = ?2 AND flow = ?3 AND collection = ?4",
    )?;
    let about = params![workspace, origin.chunk, origin.flow, origin.collection];
    Ok(query.exists(about)?)
}

fn insert(
    tx: &Transaction<'_>,
    workspace: &str,
    origin: &Origin,
    one: &Rejected,
) -> Result<(), StorageError> {
    let texts = one.statement.len() + one.reason.len() + workspace.len();
    let bytes = texts + origin.bytes() + ROW;
    tx.prepare_cached(
        "INSERT INTO violation (workspace, flow, collection, generation, document, chunk, model, prompt_version,
         asked_at, statement, reason, bytes) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )?
    .execute(params![
        workspace,
        origin.flow,
        origin.collection,
        origin.generation,
        origin.document,
        origin.chunk,
        origin.model,
        origin.prompt_version,
        origin.asked_at,
        one.statement,
        one.reason,
        bytes as i64,
    ])?;
    Ok(())
}

/// Takes the oldest of a workspace away until it has no more than it may. Returns how many those were.
fn shorten(
    tx: &Transaction<'_>,
    workspace: &str,
    most: i64,
    most_bytes: i64,
) -> Result<i64, StorageError> {
    let (mut count, mut bytes): (i64, i64) = tx
        .prepare_cached(
            "SELECT count(*), coalesce(sum(bytes), 0) FROM violation WHERE workspace = ?1",
        )?
        .query_row([workspace], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (mut last, mut gone) = (0, 0);
    if count > most || bytes > most_bytes {
        let mut oldest = tx.prepare_cached(
            "SELECT number, bytes FROM violation WHERE workspace = ?1 ORDER BY number",
        )?;
        let mut rows = oldest.query([workspace])?;
        while (count > most || bytes > most_bytes)
            && let Some(row) = rows.next()?
        {
            last = row.get(0)?;
            bytes -= row.get::<_, i64>(1)?;
            count -= 1;
            gone += 1;
        }
    }
    if gone > 0 {
        tx.prepare_cached("DELETE FROM violation WHERE workspace = ?1 AND number <= ?2")?
            .execute(params![workspace, last])?;
    }
    Ok(gone)
}

#[async_trait]
impl Quarantine for SqliteLedger {
    async fn reject(
        &self,
        workspace: String,
        origin: Origin,
        rejected: Vec<Rejected>,
    ) -> Result<(), StorageError> {
        if rejected.is_empty() {
            // Most chunks: nothing is written for them.
            let (of, about) = (workspace.clone(), origin.clone());
            let kept = self.db.read(move |conn| is_kept(conn, &of, &about));
            if !kept.await? {
                return Ok(());
            }
        }
        let (most, most_bytes) = self.quarantine;
        self.db
            .write(move |tx| {
                tx.prepare_cached(
                    "DELETE FROM violation WHERE workspace = ?1 AND chunk = ?2 AND flow = ?3 AND collection = ?4",
                )?
                .execute([&workspace, &origin.chunk, &origin.flow, &origin.collection])?;
                let mut dropped = 0;
                for one in &rejected {
                    match one.statement.len() > LONGEST {
                        true => dropped += 1,
                        false => insert(tx, &workspace, &origin, one)?,
                    }
                }
                dropped += shorten(tx, &workspace, most, most_bytes)?;
                if dropped > 0 {
                    tx.prepare_cached(
                        "INSERT INTO violations_dropped VALUES (?1, ?2)
                         ON CONFLICT (workspace) DO UPDATE SET count = count + excluded.count",
                    )?
                    .execute(params![workspace, dropped])?;
                }
                Ok(())
            })
            .await
    }

    async fn rejected(
        &self,
        workspace: String,
        which: Which,
        after: i64,
        most: u32,
    ) -> Result<Vec<Quarantined>, StorageError> {
        self.db
            .read(move |conn| {
                let (meant, mut bound) = meant(workspace, which);
                bound.extend([Value::Integer(after), Value::Integer(i64::from(most))]);
                let sql = format!(
                    "SELECT {COLUMNS} FROM violation WHERE {meant} AND number > ? ORDER BY number LIMIT ?"
                );
                query_rows(conn, &sql, params_from_iter(bound), read)
            })
            .await
    }

    async fn dropped(&self, workspace: String) -> Result<i64, StorageError> {
        self.db
            .read(move |conn| {
                let sql =
                    "SELECT coalesce(sum(count), 0) FROM violations_dropped WHERE workspace = ?1";
                let mut query = conn.prepare_cached(sql)?;
                Ok(query.query_row([workspace], |row| row.get(0))?)
            })
            .await
    }

    async fn still(
        &self,
        workspace: String,
        number: i64,
        reason: String,
    ) -> Result<(), StorageError> {
        self.db
            .write(move |tx| {
                tx.prepare_cached(
                    "UPDATE violation SET reason = ?3 WHERE workspace = ?1 AND number = ?2",
                )?
                .execute(params![workspace, number, reason])?;
                Ok(())
            })
            .await
    }

    async fn forget(&self, workspace: String, number: i64) -> Result<bool, StorageError> {
        let which = Which {
            number: Some(number),
            ..Which::default()
        };
        Ok(self.forget_all(workspace, which).await? > 0)
    }

    async fn forget_all(&self, workspace: String, which: Which) -> Result<i64, StorageError> {
        self.db
            .write(move |tx| {
                let (meant, bound) = meant(workspace, which);
                let sql = format!("DELETE FROM violation WHERE {meant}");
                let gone = tx.prepare_cached(&sql)?.execute(params_from_iter(bound))?;
                Ok(gone as i64)
            })
            .await
    }
}
