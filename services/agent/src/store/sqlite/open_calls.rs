//! What is reserved for calls that are under way.

use tg_storage::StorageError;
use tg_storage::rusqlite::{Row, Transaction, params};

use crate::engine::usage::{Amount, Scope};
use crate::store::{Account, Bound};

/// Calls of a workspace that are under way. There may be as many as runs, so they are read once for all bounds.
const OPEN: &str = "SELECT root, session, key, agent, tool_calls, in_token, out_token, nanodollars
    FROM usage_call WHERE workspace = ?1 AND settled = 0 AND expires_ms > ?2";

/// What is reserved in each bound, in their order.
pub(super) fn of_bounds(
    tx: &Transaction<'_>,
    account: &Account,
    bounds: &[Bound],
    now_ms: i64,
) -> Result<Vec<Amount>, StorageError> {
    let mut sums = vec![Amount::default(); bounds.len()];
    let mut open = tx.prepare_cached(OPEN)?;
    let mut rows = open.query(params![account.workspace, now_ms])?;
    while let Some(row) = rows.next()? {
        let reserved = Amount {
            tool_calls: count(row, 4)?,
            in_token: count(row, 5)?,
            out_token: count(row, 6)?,
            nanodollars: count(row, 7)?,
            ..Amount::default()
        };
        for (sum, bound) in sums.iter_mut().zip(bounds) {
            if counts(row, account, bound.scope)? {
                *sum = sum.and(&reserved);
            }
        }
    }
    Ok(sums)
}

fn count(row: &Row<'_>, at: usize) -> Result<u64, StorageError> {
    let kept: i64 = row.get(at)?;
    Ok(u64::try_from(kept).unwrap_or(0))
}

/// Whether a call counts for an account in a scope.
fn counts(row: &Row<'_>, account: &Account, scope: Scope) -> Result<bool, StorageError> {
    let (at, name): (usize, &String) = match scope {
        Scope::Run => (0, &account.run),
        Scope::Session => (1, &account.session),
        Scope::Key => (2, &account.key),
        Scope::Agent => (3, &account.agent),
        Scope::Workspace | Scope::Model | Scope::Tool => return Ok(true),
    };
    Ok(row.get_ref(at)?.as_str().is_ok_and(|of| of == name))
}

#[cfg(test)]
mod tests {
    use tg_storage::query_rows;
    use tg_storage::rusqlite::Connection;

    use super::super::schema::MIGRATIONS;
    use super::*;

    #[test]
    fn open_calls_of_a_workspace_are_found_by_an_index() {
        let conn = Connection::open_in_memory().unwrap();
        for script in MIGRATIONS {
            conn.execute_batch(script).unwrap();
        }
        let explained = format!("EXPLAIN QUERY PLAN {OPEN}");
        let plan = query_rows(&conn, &explained, params!["ws", 1], |row| {
            row.get::<_, String>(3)
        });
        let plan = plan.unwrap().join("; ");
        assert!(plan.contains("usage_call_open (workspace=?)"), "{plan}");
    }
}
