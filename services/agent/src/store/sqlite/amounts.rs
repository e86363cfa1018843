//! Counts as they are kept, and read again.

use tg_storage::rusqlite::{self, Row};

use crate::engine::usage::Amount;

/// Most that is kept of a count, so that no sum of them is larger than an integer of SQLite, whatever a provider says.
pub(super) const MOST: i64 = 1 << 53;

/// A count as it is kept.
pub(super) fn kept(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(MOST).min(MOST)
}

/// A count of a column.
pub(super) fn counted(row: &Row<'_>, at: usize) -> Result<u64, rusqlite::Error> {
    let count: Option<i64> = row.get(at)?;
    Ok(count
        .and_then(|count| u64::try_from(count).ok())
        .unwrap_or(0))
}

/// Sums from a column on: calls of models and tools, tokens in and out, money, time.
pub(super) fn amount(row: &Row<'_>, at: usize) -> Result<Amount, rusqlite::Error> {
    Ok(Amount {
        model_calls: counted(row, at)?,
        tool_calls: counted(row, at + 1)?,
        in_token: counted(row, at + 2)?,
        out_token: counted(row, at + 3)?,
        nanodollars: counted(row, at + 4)?,
        duration_ms: counted(row, at + 5)?,
        ..Amount::default()
    })
}
