//! Dead letters in their table.

use std::collections::BTreeMap;

use async_trait::async_trait;
use tg_schemas::BAD_CONTENT;
use tg_storage::rusqlite::{OptionalExtension, Row, Transaction, params, params_from_iter};
use tg_storage::{StorageError, query_rows};

use super::SqliteFlows;
use super::room::{self, RecordUsage};
use crate::engine::receipt::Counts;
use crate::store::Phase;
use crate::store::records::{
    DeadLetterBacklog, DeadLetterCount, Due, NewRecord, Outcome, Reason, RecordStore, Select,
    StoredRecord,
};

const COLUMNS: &str = "id, workspace, flow, topic, subscription, reason, detail, due, attempt, since, \
                       headers, content_type, length(body), kind";

#[async_trait]
impl RecordStore for SqliteFlows {
    async fn keep(&self, record: NewRecord) -> Result<Outcome, StorageError> {
        let quotas = self.quotas;
        self.db
            .write(move |tx| {
                let (workspace, flow) = (&record.workspace, &record.flow);
                let evicted = if is_new(tx, &record)? {
                    let id = insert(tx, &record, false)?;
                    room::evict(tx, quotas, workspace, flow, id)?
                } else {
                    0
                };
                Ok(Outcome {
                    evicted,
                    full: room::is_full(tx, quotas, workspace, flow)?,
                })
            })
            .await
    }

    async fn park(
        &self,
        workspace: &str,
        flow: &str,
        records: Vec<NewRecord>,
        mut counts: Counts,
    ) -> Result<Counts, StorageError> {
        let quotas = self.quotas;
        let (workspace, flow) = (workspace.to_owned(), flow.to_owned());
        self.db
            .write(move |tx| {
                let settle = "UPDATE put_aside SET unsettled = 0
                              WHERE workspace = ?1 AND flow = ?2 AND reason = 'parked' AND unsettled = 1";
                tx.prepare_cached(settle)?.execute([&workspace, &flow])?;
                let mut fresh = Vec::new();
                for record in &records {
                    if !again(tx, record)? {
                        fresh.push(record);
                    }
                }
                let bytes: usize = fresh.iter().map(|record| record.body.len()).sum();
                let more = RecordUsage {
                    records: fresh.len() as u64,
                    bytes: bytes as u64,
                };
                room::check(tx, quotas, &workspace, &flow, more)?;
                for record in fresh {
                    insert(tx, record, true)?;
                    *counts.parked.entry(record.subscription.clone()).or_default() += 1;
                }
                let text = serde_json::to_string(&counts).unwrap_or_default();
                tx.prepare_cached(
                    "UPDATE stop SET phase = ?3, counts = ?4 WHERE workspace = ?1 AND flow = ?2",
                )?
                .execute(params![workspace, flow, Phase::Park.as_str(), text])?;
                Ok(counts)
            })
            .await
    }

    async fn doubt(&self, workspace: &str, flow: &str) -> Result<(), StorageError> {
        self.mark(
            workspace,
            flow,
            "UPDATE put_aside SET unsettled = 2
            WHERE workspace = ?1 AND flow = ?2 AND reason = 'parked' AND unsettled = 1",
        )
        .await
    }

    async fn settle(&self, workspace: &str, flow: &str) -> Result<(), StorageError> {
        self.mark(
            workspace,
            flow,
            "UPDATE put_aside SET unsettled = 0
            WHERE workspace = ?1 AND flow = ?2 AND reason = 'parked' AND unsettled > 0",
        )
        .await
    }

    async fn end_retries(
        &self,
        workspace: &str,
        flow: &str,
        since: i64,
        discard: bool,
        mut counts: Counts,
    ) -> Result<Counts, StorageError> {
        let (workspace, flow) = (workspace.to_owned(), flow.to_owned());
        self.db
            .write(move |tx| {
                let retries = by_subscription(tx, &workspace, &flow, "reason = 'retry'", 0)?;
                let recent = by_subscription(tx, &workspace, &flow, "unsettled = 0 AND reason <> 'parked'", since)?;
                let lost = by_subscription(tx, &workspace, &flow, "reason IN ('dead', 'stale')", since)?;
                add(&mut counts.aside, recent);
                add(&mut counts.parked, lost);
                let sql = if discard {
                    add(&mut counts.discarded, retries);
                    "DELETE FROM put_aside WHERE workspace = ?1 AND flow = ?2 AND reason = 'retry'"
                } else {
                    add(&mut counts.parked, retries);
                    "UPDATE put_aside SET reason = 'parked' WHERE workspace = ?1 AND flow = ?2 AND reason = 'retry'"
                };
                tx.prepare_cached(sql)?.execute([&workspace, &flow])?;
                let text = serde_json::to_string(&counts).unwrap_or_default();
                let sql = "UPDATE stop SET phase = ?3, counts = ?4 WHERE workspace = ?1 AND flow = ?2";
                tx.prepare_cached(sql)?
                    .execute(params![workspace, flow, Phase::Remove.as_str(), text])?;
                Ok(counts)
            })
            .await
    }

    async fn list(&self, select: Select) -> Result<Vec<StoredRecord>, StorageError> {
        self.db
            .read(move |conn| {
                let sql = format!(
                    "SELECT {COLUMNS}, x'' FROM put_aside WHERE workspace = ?1
                     AND (?2 IS NULL OR id = ?2) AND (?3 IS NULL OR flow = ?3)
                     AND (?4 IS NULL OR reason = ?4) AND id > ?5 ORDER BY id LIMIT ?6"
                );
                let reason = select.reason.map(Reason::as_str);
                query_rows(
                    conn,
                    &sql,
                    params![
                        select.workspace,
                        select.id,
                        select.flow,
                        reason,
                        select.after,
                        select.limit
                    ],
                    kept,
                )
            })
            .await
    }

    async fn whole(
        &self,
        workspace: &str,
        id: i64,
        most: Option<usize>,
    ) -> Result<Option<StoredRecord>, StorageError> {
        let workspace = workspace.to_owned();
        self.db
            .read(move |conn| {
                let sql = format!(
                    "SELECT {COLUMNS}, coalesce(substr(body, 1, ?3), x'') FROM put_aside WHERE workspace = ?1 AND id = ?2"
                );
                let most = most.and_then(|most| i64::try_from(most).ok());
                let found = conn
                    .prepare_cached(&sql)?
                    .query_row(params![workspace, id, most.unwrap_or(1 << 40)], kept)
                    .optional()?;
                Ok(found)
            })
            .await
    }

    async fn due(
        &self,
        now: i64,
        limit: u32,
        except: Vec<(String, String)>,
    ) -> Result<Due, StorageError> {
        self.db
            .read(move |conn| {
                // At most a few flows are stopping at a time.
                let pairs: Vec<String> = except.into_iter().map(|(ws, id)| format!("{ws}\n{id}")).collect();
                let marks = vec!["?"; pairs.len()].join(", ");
                let not = format!("workspace || char(10) || flow NOT IN ({marks})");
                let sql = format!(
                    "SELECT {COLUMNS}, x'' FROM put_aside
                     WHERE reason = 'retry' AND due <= {now} AND {not} ORDER BY due LIMIT {limit}"
                );
                let mut statement = conn.prepare(&sql)?;
                let found: Vec<StoredRecord> =
                    statement.query_map(params_from_iter(&pairs), kept)?.collect::<Result<_, _>>()?;
                let sql = format!(
                    "SELECT min(due) FROM put_aside WHERE reason = 'retry' AND due > {now} AND {not}"
                );
                let next = conn.prepare(&sql)?.query_row(params_from_iter(&pairs), |row| row.get(0))?;
                Ok(Due { records: found, next })
            })
            .await
    }

    async fn forget(&self, ids: Vec<i64>) -> Result<(), StorageError> {
        self.db
            .write(move |tx| {
                let mut statement = tx.prepare_cached("DELETE FROM put_aside WHERE id = ?1")?;
                for id in ids {
                    statement.execute([id])?;
                }
                Ok(())
            })
            .await
    }

    async fn full_rooms(&self, most: u32) -> Result<Vec<String>, StorageError> {
        let quotas = self.quotas;
        self.db
            .read(move |conn| room::full(conn, quotas, most))
            .await
    }

    async fn has_room(
        &self,
        workspace: &str,
        flow: &str,
        records: u64,
    ) -> Result<(), StorageError> {
        let quotas = self.quotas;
        let (workspace, flow) = (workspace.to_owned(), flow.to_owned());
        let more = RecordUsage {
            records,
            bytes: records.min(1),
        };
        self.db
            .read(move |conn| room::check(conn, quotas, &workspace, &flow, more))
            .await
    }

    async fn workspaces(&self, after: &str, most: u32) -> Result<Vec<String>, StorageError> {
        let after = after.to_owned();
        self.db
            .read(move |conn| {
                let sql = "SELECT workspace FROM put_aside WHERE workspace > ?1
                           UNION SELECT workspace FROM stop WHERE workspace > ?1
                           ORDER BY workspace LIMIT ?2";
                query_rows(conn, sql, params![after, most], |row| row.get(0))
            })
            .await
    }

    async fn purge(&self, workspace: &str, deleted: i64) -> Result<(), StorageError> {
        let workspace = workspace.to_owned();
        self.db
            .write(move |tx| {
                for sql in [
                    "DELETE FROM put_aside WHERE workspace = ?1 AND since <= ?2",
                    "DELETE FROM stop WHERE workspace = ?1 AND started <= ?2",
                ] {
                    tx.prepare_cached(sql)?
                        .execute(params![workspace, deleted])?;
                }
                Ok(())
            })
            .await
    }

    async fn reclassify(&self, id: i64, reason: Reason, detail: &str) -> Result<(), StorageError> {
        let detail = detail.to_owned();
        self.db
            .write(move |tx| {
                tx.prepare_cached("UPDATE put_aside SET reason = ?2, detail = ?3 WHERE id = ?1")?
                    .execute(params![id, reason.as_str(), detail])?;
                Ok(())
            })
            .await
    }

    async fn standing(&self, most: u32) -> Result<Vec<DeadLetterBacklog>, StorageError> {
        self.db
            .read(move |conn| {
                // Counted in the index; of the records themselves only the oldest of each line is looked at.
                let sql = "SELECT line.workspace, line.flow, line.reason, line.records, oldest.since
                           FROM (SELECT workspace, flow, reason, count(*) AS records, min(id) AS first
                                 FROM put_aside GROUP BY 1, 2, 3 ORDER BY 4 DESC, 1, 2, 3 LIMIT ?1) AS line
                           JOIN put_aside AS oldest ON oldest.id = line.first
                           ORDER BY 4 DESC, 1, 2, 3";
                query_rows(conn, sql, [most], |row| {
                    let reason: String = row.get(2)?;
                    Ok(DeadLetterBacklog {
                        workspace: row.get(0)?,
                        flow: row.get(1)?,
                        reason: Reason::parse(&reason).unwrap_or(Reason::Dead),
                        records: row.get::<_, i64>(3)?.unsigned_abs(),
                        since: row.get(4)?,
                    })
                })
            })
            .await
    }

    async fn counts(
        &self,
        workspace: &str,
        flow: Option<&str>,
        most: u32,
    ) -> Result<Vec<DeadLetterCount>, StorageError> {
        let (workspace, flow) = (workspace.to_owned(), flow.map(str::to_owned));
        self.db
            .read(move |conn| {
                let sql = "SELECT flow, reason, kind = ?4 AS content, count(*) FROM put_aside
                           WHERE workspace = ?1 AND (?2 IS NULL OR flow = ?2)
                           GROUP BY flow, reason, content ORDER BY flow, reason, content LIMIT ?3";
                query_rows(
                    conn,
                    sql,
                    params![workspace, flow, most, BAD_CONTENT],
                    |row| {
                        Ok(DeadLetterCount {
                            flow: row.get(0)?,
                            reason: row.get(1)?,
                            content: row.get(2)?,
                            records: row.get::<_, i64>(3)?.unsigned_abs(),
                        })
                    },
                )
            })
            .await
    }
}

impl SqliteFlows {
    async fn mark(
        &self,
        workspace: &str,
        flow: &str,
        sql: &'static str,
    ) -> Result<(), StorageError> {
        let (workspace, flow) = (workspace.to_owned(), flow.to_owned());
        self.db
            .write(move |tx| {
                tx.prepare_cached(sql)?.execute([&workspace, &flow])?;
                Ok(())
            })
            .await
    }
}

/// How long the id of a dead letter is known, in milliseconds: the broker delivers again what it has no receipt for
/// as soon as the consumer's connection is gone, or its consumer timeout (30 minutes by default) is over.
const KNOWN: i64 = 24 * 60 * 60 * 1000;

/// Whether a dead letter was not taken in before; from here on it was.
fn is_new(tx: &Transaction<'_>, record: &NewRecord) -> Result<bool, StorageError> {
    let Some(letter) = &record.letter else {
        return Ok(true);
    };
    tx.prepare_cached("DELETE FROM letter WHERE since < ?1")?
        .execute([record.since.saturating_sub(KNOWN)])?;
    let added = tx
        .prepare_cached("INSERT OR IGNORE INTO letter VALUES (?1, ?2)")?
        .execute(params![letter, record.since])?;
    Ok(added > 0)
}

fn insert(tx: &Transaction<'_>, record: &NewRecord, unsettled: bool) -> Result<i64, StorageError> {
    tx.prepare_cached(
        "INSERT INTO put_aside (workspace, flow, topic, subscription, reason, detail, due, attempt,
         since, headers, content_type, body, unsettled, kind)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    )?
    .execute(params![
        record.workspace,
        record.flow,
        record.topic,
        record.subscription,
        record.reason.as_str(),
        record.detail,
        record.due,
        record.attempt,
        record.since,
        record.headers,
        record.content_type,
        record.body,
        unsettled,
        record.kind,
    ])?;
    Ok(tx.last_insert_rowid())
}

/// Whether a process that crashed has kept this very record; then it is as one of this process, which may crash too.
fn again(tx: &Transaction<'_>, record: &NewRecord) -> Result<bool, StorageError> {
    let sql = "SELECT id FROM put_aside WHERE workspace = ?1 AND flow = ?2 AND reason = 'parked'
               AND unsettled = 2 AND subscription = ?3 AND headers = ?4 AND body = ?5 LIMIT 1";
    let known: Option<i64> = tx
        .prepare_cached(sql)?
        .query_row(
            params![
                record.workspace,
                record.flow,
                record.subscription,
                record.headers,
                record.body
            ],
            |row| row.get(0),
        )
        .optional()?;
    if let Some(id) = known {
        tx.prepare_cached("UPDATE put_aside SET unsettled = 1 WHERE id = ?1")?
            .execute([id])?;
    }
    Ok(known.is_some())
}

fn by_subscription(
    tx: &Transaction<'_>,
    workspace: &str,
    flow: &str,
    condition: &str,
    since: i64,
) -> Result<BTreeMap<String, u64>, StorageError> {
    let sql = format!(
        "SELECT subscription, count(*) FROM put_aside
         WHERE workspace = ?1 AND flow = ?2 AND since >= ?3 AND {condition} GROUP BY subscription"
    );
    let found = query_rows(tx, &sql, params![workspace, flow, since], |row| {
        Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs()))
    })?;
    Ok(found.into_iter().collect())
}

fn add(to: &mut BTreeMap<String, u64>, what: BTreeMap<String, u64>) {
    for (subscription, count) in what {
        *to.entry(subscription).or_default() += count;
    }
}

fn kept(row: &Row<'_>) -> Result<StoredRecord, tg_storage::rusqlite::Error> {
    let reason: String = row.get(5)?;
    Ok(StoredRecord {
        id: row.get(0)?,
        record: NewRecord {
            workspace: row.get(1)?,
            flow: row.get(2)?,
            topic: row.get(3)?,
            subscription: row.get(4)?,
            reason: Reason::parse(&reason).unwrap_or(Reason::Dead),
            detail: row.get(6)?,
            due: row.get(7)?,
            attempt: row.get(8)?,
            since: row.get(9)?,
            headers: row.get(10)?,
            content_type: row.get(11)?,
            kind: row.get(13)?,
            body: row.get(14)?,
            letter: None,
        },
        size: row.get(12)?,
    })
}
