//! Room for put-aside records: so much for each workspace and each of its flows, so that nobody takes it from
//! another. The oldest dead letters go for newer records; retries and parked records never do.

use std::collections::BTreeMap;

use tg_schemas::{Error, ErrorCode, limits};
use tg_storage::StorageError;
use tg_storage::rusqlite::{Connection, Transaction, params};

use super::Store;
use crate::settings::{Quota, Quotas};

/// Dead letters that go in one write, at most.
const EVICTED: usize = 1000;

/// What a workspace or a flow holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) records: u64,
    pub(crate) bytes: u64,
}

impl Held {
    fn add(&mut self, records: i64, bytes: i64) {
        self.records += records.unsigned_abs();
        self.bytes += bytes.unsigned_abs();
    }

    fn fits(self, quota: Quota) -> bool {
        self.records <= quota.records && self.bytes <= quota.bytes
    }

    fn fills(self, quota: Quota) -> bool {
        self.records >= quota.records || self.bytes >= quota.bytes
    }
}

/// A quota in words.
fn told(quota: Quota) -> String {
    let bytes = usize::try_from(quota.bytes).unwrap_or(usize::MAX);
    format!("{} records or {}", quota.records, limits::human(bytes))
}

impl Store {
    /// Rooms that are full of records that must stay: each `workspace`, or `workspace:flow`.
    pub(crate) async fn full_rooms(&self) -> Result<Vec<String>, StorageError> {
        let quotas = self.quotas;
        self.db
            .read(move |conn| {
                let mut full = Vec::new();
                let mut all: BTreeMap<String, Held> = BTreeMap::new();
                let sql = "SELECT workspace, flow, records, bytes FROM room WHERE dead = 0";
                let mut statement = conn.prepare_cached(sql)?;
                let mut rows = statement.query([])?;
                while let Some(row) = rows.next()? {
                    let (workspace, flow): (String, String) = (row.get(0)?, row.get(1)?);
                    let mut own = Held::default();
                    own.add(row.get(2)?, row.get(3)?);
                    if own.fills(quotas.flow) {
                        full.push(format!("{workspace}:{flow}"));
                    }
                    let whole = all.entry(workspace).or_default();
                    whole.records += own.records;
                    whole.bytes += own.bytes;
                }
                let whole = all
                    .into_iter()
                    .filter(|(_, held)| held.fills(quotas.workspace));
                full.extend(whole.map(|(workspace, _)| workspace));
                Ok(full)
            })
            .await
    }

    /// Whether so many more records, of any size, could be kept for a flow; why not, if not.
    pub(crate) async fn has_room(
        &self,
        workspace: &str,
        flow: &str,
        records: u64,
    ) -> Result<Result<(), Error>, StorageError> {
        let quotas = self.quotas;
        let (workspace, flow) = (workspace.to_owned(), flow.to_owned());
        self.db
            .read(move |conn| {
                lacks(
                    conn,
                    quotas,
                    &workspace,
                    &flow,
                    Held {
                        records,
                        bytes: records.min(1),
                    },
                )
            })
            .await
    }
}

/// Whether more can be kept beside what must stay.
fn lacks(
    conn: &Connection,
    quotas: Quotas,
    workspace: &str,
    flow: &str,
    more: Held,
) -> Result<Result<(), Error>, StorageError> {
    for (what, quota, flow) in [
        ("flow", quotas.flow, Some(flow)),
        ("workspace", quotas.workspace, None),
    ] {
        let mut held = held(conn, workspace, flow, false)?;
        held.records += more.records;
        held.bytes += more.bytes;
        if !held.fits(quota) {
            let quota = told(quota);
            let text = format!(
                "put-aside: the quota of the {what} ({quota}) is reached; replay or discard some, or stop with \
                 drain 'discard'"
            );
            return Ok(Err(Error::new(ErrorCode::Conflict, text)));
        }
    }
    Ok(Ok(()))
}

/// Refuses what would exceed a quota of records that must stay.
pub(super) fn check(
    tx: &Transaction<'_>,
    quotas: Quotas,
    workspace: &str,
    flow: &str,
    more: Held,
) -> Result<(), StorageError> {
    lacks(tx, quotas, workspace, flow, more)?.map_err(StorageError::Refused)
}

/// Whether what must stay fills the room of a flow or of its workspace.
pub(super) fn is_full(
    tx: &Transaction<'_>,
    quotas: Quotas,
    workspace: &str,
    flow: &str,
) -> Result<bool, StorageError> {
    Ok(held(tx, workspace, Some(flow), false)?.fills(quotas.flow)
        || held(tx, workspace, None, false)?.fills(quotas.workspace))
}

/// Makes room: the oldest dead letters of the flow go while it exceeds its quota, then those of the workspace. The
/// record that was just kept stays. How many went.
pub(super) fn evict(
    tx: &Transaction<'_>,
    quotas: Quotas,
    workspace: &str,
    flow: &str,
    kept: i64,
) -> Result<usize, StorageError> {
    let mut evicted = 0;
    for (quota, flow) in [(quotas.flow, Some(flow)), (quotas.workspace, None)] {
        while evicted < EVICTED {
            let mut all = held(tx, workspace, flow, false)?;
            let dead = held(tx, workspace, flow, true)?;
            all.records += dead.records;
            all.bytes += dead.bytes;
            if all.fits(quota) {
                break;
            }
            let gone = tx
                .prepare_cached(
                    "DELETE FROM put_aside WHERE id = (SELECT min(id) FROM put_aside WHERE workspace = ?1
                     AND (?2 IS NULL OR flow = ?2) AND reason = 'dead' AND id <> ?3)",
                )?
                .execute(params![workspace, flow, kept])?;
            if gone == 0 {
                break;
            }
            evicted += gone;
        }
    }
    Ok(evicted)
}

fn held(
    conn: &Connection,
    workspace: &str,
    flow: Option<&str>,
    dead: bool,
) -> Result<Held, StorageError> {
    let sql = "SELECT coalesce(sum(records), 0), coalesce(sum(bytes), 0) FROM room
               WHERE workspace = ?1 AND (?2 IS NULL OR flow = ?2) AND dead = ?3";
    let mut held = Held::default();
    let (records, bytes) = conn
        .prepare_cached(sql)?
        .query_row(params![workspace, flow, dead], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    held.add(records, bytes);
    Ok(held)
}
