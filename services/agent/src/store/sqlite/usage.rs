//! What calls used, and what is reserved for those that are under way.

use chrono::{Days as Since, NaiveDate};
use tg_mesh::clock;
use tg_storage::rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use tg_storage::{StorageError, query_rows};

use super::totals::{Totals, kept};
use super::{open_calls, steps};
use crate::engine::guards::Exhausted;
use crate::engine::guards::budget::Spent;
use crate::engine::usage::{Amount, Scope};
use crate::store::{
    Account, Bound, Call, CallKind, Counted, Days, KEEP_CALLS_MS, KEEP_ENDS_MS, KEEP_MS,
    KEEP_USAGE_MS, PURGE, Reservation, Used,
};

/// What is summed up by these names is as short-lived as runs are.
const SHORT_LIVED: [Scope; 2] = [Scope::Run, Scope::Session];

/// Days before today whose calls say how large the next one may be.
const LOOK_BACK_DAYS: u64 = 1;

/// Numbers between a call and the next one of its kind in column `kind`, which holds both.
const KINDS: u32 = 4;

fn number(call: &Call) -> u32 {
    let kind = match call.kind {
        CallKind::Model => 0,
        CallKind::Tool => 1,
        CallKind::Summary => 2,
    };
    call.nth.saturating_mul(KINDS).saturating_add(kind)
}

/// What is called, and which of its kind it is.
pub(super) fn kind(number: u32) -> (CallKind, u32) {
    let kind = match number % KINDS {
        0 => CallKind::Model,
        1 => CallKind::Tool,
        _ => CallKind::Summary,
    };
    (kind, number / KINDS)
}

fn counted(row: &Row<'_>, at: usize) -> Result<u64, tg_storage::rusqlite::Error> {
    let count: Option<i64> = row.get(at)?;
    Ok(count
        .and_then(|count| u64::try_from(count).ok())
        .unwrap_or(0))
}

/// Sums from a column on: calls of models and tools, tokens in and out, money, time.
fn amount(row: &Row<'_>, at: usize) -> Result<Amount, tg_storage::rusqlite::Error> {
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

/// Reserves what a call is likely to take, or says what it does not fit.
pub(super) fn reserve(
    tx: &Transaction<'_>,
    call: &Call,
    next: &Reservation,
    now_ms: i64,
) -> Result<Option<Exhausted>, StorageError> {
    let known = tx
        .prepare_cached(
            "SELECT refused, ahead AND NOT settled, expires_ms > ?4 FROM usage_call
             WHERE run = ?1 AND step = ?2 AND kind = ?3",
        )?
        .query_row(params![call.run, call.step, number(call), now_ms], |row| {
            let refused: Option<String> = row.get(0)?;
            Ok((refused, row.get::<_, bool>(1)?, row.get::<_, bool>(2)?))
        })
        .optional()?;
    match known {
        Some((_, true, true)) if !next.ahead => {
            renew(tx, call, next.expires_ms)?;
            return Ok(None);
        }
        // Its time is over, and others may have what it held.
        Some((_, true, false)) => free(tx, call)?,
        Some((refused, ..)) => return steps::read_json(refused),
        None => {}
    }
    let mut reserved = next.amount;
    let all_open = open_calls::of_bounds(tx, &next.account, &next.bounds, now_ms)?;
    for (bound, open) in next.bounds.iter().zip(all_open) {
        let Some(name) = next.account.name(bound.scope) else {
            continue;
        };
        let used = used(tx, &next.account, bound, name)?;
        let (mut alone, mut amount) = (next.amount, next.amount);
        if bound.scope != Scope::Run {
            let largest = largest(tx, next, bound)?;
            // With nothing else under way a call is taken for one as the bound usually has them: else a large call of one key would
            // take the budgets of all others, and a bound that begins anew would let none in.
            alone = at_least(alone, usual(&used, &largest));
            let several = at_least(amount, largest);
            reserved = at_least(reserved, several);
            amount = match open == Amount::default() {
                true => alone,
                false => several,
            };
        }
        let mut spent = Spent::from(used.and(&open));
        spent.seconds = bound.seconds.unwrap_or(spent.seconds);
        let over = bound.budget.exhausted(&bound.whose, &spent, &amount.into());
        if let Some(mut over) = over {
            let settled = Spent::from(used);
            over.reserved = bound.seconds.is_none()
                && bound
                    .budget
                    .exhausted(&bound.whose, &settled, &alone.into())
                    .is_none();
            if !(next.waits && over.reserved) {
                enter(tx, call, next, &Amount::default(), Some(&over), now_ms)?;
            }
            return Ok(Some(over));
        }
    }
    enter(tx, call, next, &reserved, None, now_ms)?;
    Ok(None)
}

/// Notes what is reserved for a call, or why it is not made.
fn enter(
    tx: &Transaction<'_>,
    call: &Call,
    next: &Reservation,
    reserved: &Amount,
    refused: Option<&Exhausted>,
    now_ms: i64,
) -> Result<(), StorageError> {
    let Account {
        workspace,
        run,
        session,
        key,
        agent,
    } = &next.account;
    tx.prepare_cached(
        "INSERT INTO usage_call (run, step, kind, workspace, root, session, key, tool_calls,
           in_token, out_token, nanodollars, expires_ms, created_ms, settled, refused, agent, ahead)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
    )?
    .execute(params![
        call.run,
        call.step,
        number(call),
        workspace,
        run,
        session,
        key,
        kept(reserved.tool_calls),
        kept(reserved.in_token),
        kept(reserved.out_token),
        kept(reserved.nanodollars),
        next.expires_ms,
        now_ms,
        refused.is_some(),
        refused.map(steps::write_json).transpose()?,
        agent,
        next.ahead
    ])?;
    Ok(())
}

/// A call that was reserved ahead has begun: its reservation lasts until `expires_ms` at least.
pub(super) fn renew(
    tx: &Transaction<'_>,
    call: &Call,
    expires_ms: i64,
) -> Result<(), StorageError> {
    tx.prepare_cached(
        "UPDATE usage_call SET ahead = 0, expires_ms = max(expires_ms, ?4)
         WHERE run = ?1 AND step = ?2 AND kind = ?3 AND settled = 0 AND ahead = 1",
    )?
    .execute(params![call.run, call.step, number(call), expires_ms])?;
    Ok(())
}

/// A call that was reserved ahead is not made. Nothing of it stays: whoever takes its step up again reserves and counts it as new.
pub(super) fn free(tx: &Transaction<'_>, call: &Call) -> Result<(), StorageError> {
    tx.prepare_cached(
        "DELETE FROM usage_call
         WHERE run = ?1 AND step = ?2 AND kind = ?3 AND settled = 0 AND ahead = 1",
    )?
    .execute(params![call.run, call.step, number(call)])?;
    Ok(())
}

fn at_least(amount: Amount, other: Amount) -> Amount {
    let more = other.tokens().saturating_sub(amount.tokens());
    Amount {
        in_token: amount.in_token.saturating_add(more),
        nanodollars: amount.nanodollars.max(other.nanodollars),
        ..amount
    }
}

/// What a call takes of a bound on average, at most as much as the largest of its kind.
fn usual(used: &Amount, largest: &Amount) -> Amount {
    let calls = used.model_calls.max(1);
    Amount {
        in_token: (used.tokens() / calls).min(largest.tokens()),
        nanodollars: (used.nanodollars / calls).min(largest.nanodollars),
        ..Amount::default()
    }
}

/// The first day of those whose calls say how large the next one may be: so many before today, also where the bound began anew.
fn seen_since(today: &str, bound: &Bound) -> String {
    let first = today.parse::<NaiveDate>().ok();
    let first = first.and_then(|day| day.checked_sub_days(Since::new(LOOK_BACK_DAYS)));
    let first = first.map_or_else(|| today.to_owned(), |day| day.to_string());
    match bound.since.as_str() {
        "" => first,
        since => first.min(since.to_owned()),
    }
}

/// The largest call of the kind so far: several at the same time may each take as much.
fn largest(
    tx: &Transaction<'_>,
    next: &Reservation,
    bound: &Bound,
) -> Result<Amount, StorageError> {
    let since = seen_since(&next.day, bound);
    let (scope, name) = &next.like;
    let largest = tx
        .prepare_cached(
            "SELECT MAX(most_tokens), MAX(most_nanodollars) FROM usage_total
             WHERE workspace = ?1 AND scope = ?2 AND (?3 = '' OR name = ?3) AND day >= ?4",
        )?
        .query_row(
            params![next.account.workspace, scope.as_str(), name, since],
            |row| {
                Ok(Amount {
                    in_token: counted(row, 0)?,
                    nanodollars: counted(row, 1)?,
                    ..Amount::default()
                })
            },
        )?;
    Ok(largest)
}

fn used(
    tx: &Transaction<'_>,
    account: &Account,
    bound: &Bound,
    name: &str,
) -> Result<Amount, StorageError> {
    let used = tx
        .prepare_cached(
            "SELECT SUM(model_calls), SUM(tool_calls), SUM(in_token), SUM(out_token),
               SUM(nanodollars), SUM(duration_ms)
             FROM usage_total WHERE workspace = ?1 AND scope = ?2 AND name = ?3 AND day >= ?4",
        )?
        .query_row(
            params![account.workspace, bound.scope.as_str(), name, bound.since],
            |row| amount(row, 0),
        )?;
    Ok(used)
}

/// Counts what a call took, unless it is counted.
pub(super) fn settle(
    tx: &Transaction<'_>,
    call: &Call,
    used: &Used,
    now_ms: i64,
) -> Result<(), StorageError> {
    let mut totals = Totals::default();
    count(tx, call, used, now_ms, &mut totals)?;
    totals.write(tx)
}

/// Counts what several calls took.
pub(super) fn settle_all(
    tx: &Transaction<'_>,
    counted: &[Counted],
    now_ms: i64,
) -> Result<(), StorageError> {
    let mut totals = Totals::default();
    for one in counted {
        count(tx, &one.call, &one.used, now_ms, &mut totals)?;
    }
    totals.write(tx)
}

/// Adds what a call took to sums, unless it is counted.
fn count<'a>(
    tx: &Transaction<'_>,
    call: &Call,
    used: &'a Used,
    now_ms: i64,
    totals: &mut Totals<'a>,
) -> Result<(), StorageError> {
    let Account {
        workspace,
        run,
        session,
        key,
        agent,
    } = &used.account;
    let amount = counts(tx, call, used)?;
    let settled = tx
        .prepare_cached(
            "INSERT INTO usage_call
               (run, step, kind, workspace, root, session, key, settled, expires_ms, created_ms, agent)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 1, ?8, ?8, ?9)
             ON CONFLICT (run, step, kind) DO UPDATE SET settled = 1 WHERE settled = 0",
        )?
        .execute(params![
            call.run,
            call.step,
            number(call),
            workspace,
            run,
            session,
            key,
            now_ms,
            agent
        ])?;
    if settled > 0 {
        totals.add(used, &amount);
    }
    Ok(())
}

/// What counts of a call: what was reported, or what is reserved for the call where nobody reported its tokens and that is more.
fn counts(tx: &Transaction<'_>, call: &Call, used: &Used) -> Result<Amount, StorageError> {
    let Some(price) = used.unreported else {
        return Ok(used.amount);
    };
    let reserved = tx
        .prepare_cached(
            "SELECT in_token, out_token FROM usage_call
             WHERE run = ?1 AND step = ?2 AND kind = ?3 AND settled = 0",
        )?
        .query_row(params![call.run, call.step, number(call)], |row| {
            Ok((counted(row, 0)?, counted(row, 1)?))
        })
        .optional()?;
    let Some((in_token, out_token)) = reserved else {
        return Ok(used.amount);
    };
    let in_token = used.amount.in_token.max(in_token);
    let out_token = used.amount.out_token.max(out_token);
    let nanodollars = price.nanodollars(in_token, out_token, 0);
    Ok(Amount {
        in_token,
        out_token,
        nanodollars: used.amount.nanodollars.max(nanodollars),
        ..used.amount
    })
}

/// Nothing is reserved any more for calls of a run. A call that was begun and of which nobody will report what it took, as it was left
/// or failed, took what was reserved for it: else whoever leaves early would pay nothing. No call of a step after the last was begun.
pub(super) fn release(
    tx: &Transaction<'_>,
    run: &str,
    last: u32,
    now_ms: i64,
) -> Result<(), StorageError> {
    tx.prepare_cached("DELETE FROM usage_call WHERE run = ?1 AND step > ?2 AND settled = 0")?
        .execute(params![run, last])?;
    let mut open = tx.prepare_cached(
        "SELECT step, kind, workspace, root, session, key, 0, tool_calls, in_token, out_token,
           nanodollars, 0, agent
         FROM usage_call WHERE run = ?1 AND settled = 0",
    )?;
    let left = open.query_map([run], |row| {
        let account = Account {
            workspace: row.get(2)?,
            run: row.get(3)?,
            session: row.get(4)?,
            key: row.get(5)?,
            agent: row.get(12)?,
        };
        let (step, (kind, nth)) = (row.get::<_, u32>(0)?, kind(row.get(1)?));
        let amount = Amount {
            model_calls: u64::from(kind != CallKind::Tool),
            ..amount(row, 6)?
        };
        Ok(((step, kind, nth), account, amount))
    })?;
    let left: Vec<_> = left.collect::<Result<_, _>>()?;
    for ((step, kind, nth), account, amount) in left {
        let call = Call {
            run: run.to_owned(),
            step,
            kind,
            nth,
        };
        let used = Used {
            account,
            by: (Scope::Model, String::new()),
            amount,
            day: clock::rfc3339_of(now_ms).chars().take(10).collect(),
            unreported: None,
        };
        settle(tx, &call, &used, now_ms)?;
    }
    Ok(())
}

/// Sums by name, or by day.
pub(super) fn list(
    conn: &Connection,
    workspace: &str,
    days: &Days,
    after: &str,
    most: usize,
) -> Result<Vec<(String, Amount)>, StorageError> {
    let by = match days.daily {
        true => "day",
        false => "name",
    };
    // The one entry of a workspace has no name, and no other is empty.
    let sql = &format!(
        "SELECT {by}, {SUMS} FROM usage_total
         WHERE workspace = ?1 AND scope = ?2 AND day BETWEEN ?3 AND ?4
           AND ({by} > ?5 OR (?5 = '' AND {by} = ''))
         GROUP BY {by} ORDER BY {by} LIMIT ?6"
    );
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let asked = params![
        workspace,
        days.scope.as_str(),
        days.since,
        days.until,
        after,
        most
    ];
    query_rows(conn, sql, asked, |row| Ok((row.get(0)?, summed(row)?)))
}

/// All sums of a row, behind its name.
const SUMS: &str = "SUM(model_calls), SUM(tool_calls), SUM(in_token), SUM(out_token),
    SUM(nanodollars), SUM(duration_ms), SUM(cache_read), SUM(cache_write)";

fn summed(row: &Row<'_>) -> Result<Amount, tg_storage::rusqlite::Error> {
    Ok(Amount {
        cache_read: counted(row, 7)?,
        cache_write: counted(row, 8)?,
        ..amount(row, 1)?
    })
}

/// Counts a session or an agent anew; what was counted of it.
pub(super) fn clear(
    tx: &Transaction<'_>,
    workspace: &str,
    (scope, name): (Scope, &str),
) -> Result<Option<Amount>, StorageError> {
    let of = params![workspace, scope.as_str(), name];
    let sums = format!(
        "SELECT COUNT(*), {SUMS} FROM usage_total WHERE workspace = ?1 AND scope = ?2 AND name = ?3"
    );
    let (days, amount): (i64, Amount) = tx
        .prepare_cached(&sums)?
        .query_row(of, |row| Ok((row.get(0)?, summed(row)?)))?;
    tx.prepare_cached("DELETE FROM usage_total WHERE workspace = ?1 AND scope = ?2 AND name = ?3")?
        .execute(of)?;
    Ok((days > 0).then_some(amount))
}

/// Calls of no run that nobody reported within their time.
const LATE: &str = "SELECT DISTINCT run FROM usage_call
    WHERE run >= 'call/' AND run < 'call0' AND settled = 0 AND expires_ms <= ?1 LIMIT ?2";
/// Removes calls of no run that were counted long ago.
const FORGET_LATE: &str = "DELETE FROM usage_call WHERE (run, step, kind) IN
    (SELECT run, step, kind FROM usage_call
     WHERE run >= 'call/' AND run < 'call0' AND settled = 1 AND expires_ms < ?1 LIMIT ?2)";

/// Counts calls of no run that nobody reported within their time, as the process that made them is gone.
fn lapse(tx: &Transaction<'_>, now_ms: i64) -> Result<bool, StorageError> {
    let mut late = tx.prepare_cached(LATE)?;
    let late = late.query_map(params![now_ms, PURGE], |row| row.get(0))?;
    let late: Vec<String> = late.collect::<Result<_, _>>()?;
    for run in &late {
        release(tx, run, u32::MAX, now_ms)?;
    }
    Ok(late.len() as i64 >= PURGE)
}

/// Removes some of what is too old; whether there is more.
pub(super) fn forget(tx: &Transaction<'_>, now_ms: i64) -> Result<bool, StorageError> {
    let late = lapse(tx, now_ms)?;
    let calls = tx
        .prepare_cached(
            "DELETE FROM usage_call WHERE (run, step, kind) IN
               (SELECT run, step, kind FROM usage_call WHERE created_ms < ?1
                ORDER BY created_ms LIMIT ?2)",
        )?
        .execute(params![now_ms - KEEP_MS, PURGE])?;
    let of_no_run = tx
        .prepare_cached(FORGET_LATE)?
        .execute(params![now_ms - KEEP_CALLS_MS, PURGE])?;
    let mut more = late || calls.max(of_no_run) as i64 >= PURGE;
    for (before_ms, short_lived) in [
        (now_ms - KEEP_ENDS_MS, true),
        (now_ms - KEEP_USAGE_MS, false),
    ] {
        let day: String = clock::rfc3339_of(before_ms).chars().take(10).collect();
        let scopes = SHORT_LIVED.map(Scope::as_str);
        let gone = tx
            .prepare_cached(
                "DELETE FROM usage_total WHERE (workspace, scope, name, day) IN
                   (SELECT workspace, scope, name, day FROM usage_total
                    WHERE day < ?1 AND (NOT ?2 OR scope IN (?3, ?4)) ORDER BY day LIMIT ?5)",
            )?
            .execute(params![day, short_lived, scopes[0], scopes[1], PURGE])?;
        more |= gone as i64 >= PURGE;
    }
    Ok(more)
}

/// Removes calls of a workspace that are open, and those of no run. Two statements: each has an index.
const PURGE_CALLS: [&str; 2] = [
    "DELETE FROM usage_call WHERE (run, step, kind) IN
       (SELECT run, step, kind FROM usage_call WHERE workspace = ?1 AND settled = 0 LIMIT ?2)",
    "DELETE FROM usage_call WHERE (run, step, kind) IN
       (SELECT run, step, kind FROM usage_call
        WHERE workspace = ?1 AND run >= 'call/' AND run < 'call0' LIMIT ?2)",
];

/// Removes some of what belongs to a workspace. `false` when there was none.
pub(super) fn purge_some(tx: &Transaction<'_>, workspace: &str) -> Result<bool, StorageError> {
    let mut gone = tx
        .prepare_cached(
            "DELETE FROM usage_total WHERE workspace = ?1 AND (scope, name, day) IN
               (SELECT scope, name, day FROM usage_total WHERE workspace = ?1 LIMIT ?2)",
        )?
        .execute(params![workspace, PURGE])?;
    for sql in PURGE_CALLS {
        gone += tx.prepare_cached(sql)?.execute(params![workspace, PURGE])?;
    }
    Ok(gone > 0)
}

#[cfg(test)]
mod tests {
    use super::super::schema::MIGRATIONS;
    use super::*;

    /// How rows are found for a statement.
    fn plan(sql: &str) -> String {
        let conn = Connection::open_in_memory().unwrap();
        for script in MIGRATIONS {
            conn.execute_batch(script).unwrap();
        }
        let explained = format!("EXPLAIN QUERY PLAN {sql}");
        let plan = query_rows(&conn, &explained, params![1, 2], |row| {
            row.get::<_, String>(3)
        });
        plan.unwrap().join("; ")
    }

    #[test]
    fn calls_of_no_run_are_found_by_when_their_time_is_over() {
        for plan in [LATE, FORGET_LATE].map(plan) {
            let index = "usage_call_expires (settled=? AND expires_ms<?)";
            assert!(plan.contains(index) && !plan.contains("SCAN"), "{plan}");
        }
    }

    #[test]
    fn calls_of_a_deleted_workspace_are_found_by_an_index() {
        for plan in PURGE_CALLS.map(plan) {
            assert!(!plan.contains("SCAN"), "{plan}");
        }
    }
}
