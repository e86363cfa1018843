//! How many rows a workspace may keep. Looked at in the transaction that would add some.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::{Transaction, params};
use tg_schemas::{Error, ErrorCode};
use tg_storage::StorageError;
use tokio::time::Instant;

/// Counting goes through all rows: a workspace at its limit has that done no more often.
const EVERY: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Debug)]
pub(super) struct Quota {
    most: u64,
    /// Workspaces that were counted and found full, and when.
    full: Mutex<HashMap<String, Instant>>,
}

impl Default for Quota {
    fn default() -> Self {
        Self::of(u64::MAX)
    }
}

impl Quota {
    pub(super) fn of(most: u64) -> Self {
        Self {
            most,
            full: Mutex::default(),
        }
    }

    /// Refuses `more` rows for a workspace that has no room for them, taking all of them for new ones.
    pub(super) fn check(
        &self,
        tx: &Transaction<'_>,
        workspace: &str,
        more: usize,
    ) -> Result<(), StorageError> {
        if self.most == u64::MAX {
            return Ok(());
        }
        let more = more as u64;
        // The greatest number is found at once, and there are no more rows than that.
        if rows(tx, workspace, "coalesce(max(n), 0)")? + more <= self.most {
            return Ok(());
        }
        let mut full = self.full.lock();
        full.retain(|_, when| when.elapsed() < EVERY);
        if !full.contains_key(workspace) {
            if rows(tx, workspace, "count(*)")? + more <= self.most {
                return Ok(());
            }
            full.insert(workspace.to_owned(), Instant::now());
        }
        let text = format!(
            "the tables of this workspace may hold at most {} rows",
            self.most
        );
        Err(StorageError::Refused(Error::new(ErrorCode::TooLarge, text)))
    }
}

fn rows(tx: &Transaction<'_>, workspace: &str, what: &str) -> Result<u64, StorageError> {
    let mut sets = tx.prepare_cached("SELECT id FROM sets WHERE workspace = ?1 AND dropped = 0")?;
    let ids = sets.query_map(params![workspace], |row| row.get::<_, i64>(0))?;
    let mut sum: u64 = 0;
    for id in ids {
        let count = format!("SELECT {what} FROM r{}", id?);
        let count: i64 = tx.query_row(&count, [], |row| row.get(0))?;
        sum = sum.saturating_add(count.unsigned_abs());
    }
    Ok(sum)
}
