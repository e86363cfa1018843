//! Room for dead letters: so much for each workspace and each of its flows, so that nobody takes it from
//! another. The oldest dead letters go for newer records; retries and parked records never do.

use tg_schemas::{Error, ErrorCode, limits};
use tg_storage::StorageError;
use tg_storage::rusqlite::{Connection, Transaction, params};

use crate::options::{Quota, Quotas};

/// Dead letters that go in one write, at most.
const EVICTED: usize = 1000;

/// What a workspace or a flow holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RecordUsage {
    pub(crate) records: u64,
    pub(crate) bytes: u64,
}

impl RecordUsage {
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

/// Rooms that are full of records that must stay.
pub(super) fn full(
    conn: &Connection,
    quotas: Quotas,
    most: u32,
) -> Result<Vec<String>, StorageError> {
    let (flow, workspace) = (quotas.flow, quotas.workspace);
    let mut statement = conn.prepare_cached(
        "SELECT name FROM (
             SELECT 0 AS place, workspace || ':' || flow AS name FROM room
             WHERE dead = 0 AND (records >= ?1 OR bytes >= ?2)
             UNION ALL
             SELECT 1, workspace FROM room WHERE dead = 0
             GROUP BY workspace HAVING sum(records) >= ?3 OR sum(bytes) >= ?4
         ) ORDER BY place, name LIMIT ?5",
    )?;
    let bounds = params![
        signed(flow.records),
        signed(flow.bytes),
        signed(workspace.records),
        signed(workspace.bytes),
        most
    ];
    let found = statement.query_map(bounds, |row| row.get(0))?;
    Ok(found.collect::<Result<_, _>>()?)
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Refuses more than can be kept beside what must stay.
pub(super) fn check(
    conn: &Connection,
    quotas: Quotas,
    workspace: &str,
    flow: &str,
    more: RecordUsage,
) -> Result<(), StorageError> {
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
            return Err(StorageError::Refused(Error::new(ErrorCode::Conflict, text)));
        }
    }
    Ok(())
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
) -> Result<RecordUsage, StorageError> {
    let sql = "SELECT coalesce(sum(records), 0), coalesce(sum(bytes), 0) FROM room
               WHERE workspace = ?1 AND (?2 IS NULL OR flow = ?2) AND dead = ?3";
    let mut held = RecordUsage::default();
    let (records, bytes) = conn
        .prepare_cached(sql)?
        .query_row(params![workspace, flow, dead], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    held.add(records, bytes);
    Ok(held)
}
