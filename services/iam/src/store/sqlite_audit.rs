//! What happened, in the same file as the directory: a change and what is written down of it are one transaction.

use std::collections::BTreeSet;

use serde_json::Value;
use sha2::{Digest, Sha256};
use tg_clients::audit::{
    ALLOWED, CHANGE, LOGIN, LOST, READ, REFUSED, STRANGER, cut, key, size, whose,
};
use tg_schemas::msg::{AuditDropped, AuditEntry};
use tg_storage::StorageError;
use tg_storage::rusqlite::{Connection, OptionalExtension, Row, ToSql, Transaction, params};

use super::{AuditBatch, AuditBounds, AuditWanted};

/// What came with it. A shelf is what one workspace has of a kind; of refusals, what one user has.
pub(super) const TABLES: &str = "
    CREATE TABLE audit (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        time INTEGER NOT NULL,
        until INTEGER NOT NULL,
        count INTEGER NOT NULL,
        kind TEXT NOT NULL,
        owner TEXT NOT NULL,
        workspace TEXT NOT NULL,
        actor TEXT NOT NULL,
        credential TEXT NOT NULL,
        door TEXT NOT NULL,
        address TEXT NOT NULL,
        operation TEXT NOT NULL,
        target_kind TEXT NOT NULL,
        target TEXT NOT NULL,
        reason TEXT NOT NULL,
        changes TEXT NOT NULL,
        request_id TEXT NOT NULL,
        bytes INTEGER NOT NULL,
        same BLOB
    );
    CREATE UNIQUE INDEX audit_same ON audit (same) WHERE same IS NOT NULL;
    CREATE INDEX audit_time ON audit (time);
    CREATE INDEX audit_of_shelf ON audit (kind, owner);
    CREATE INDEX audit_workspace ON audit (workspace);
    CREATE INDEX audit_actor ON audit (actor);
    CREATE TABLE audit_shelf (
        kind TEXT NOT NULL,
        owner TEXT NOT NULL,
        bytes INTEGER NOT NULL,
        dropped INTEGER NOT NULL,
        dropped_until INTEGER NOT NULL,
        PRIMARY KEY (kind, owner)
    ) WITHOUT ROWID;
    CREATE TABLE audit_source (
        id TEXT PRIMARY KEY,
        sequence INTEGER NOT NULL,
        time INTEGER NOT NULL
    ) WITHOUT ROWID;
";

/// What came later: the events of one workspace by their time.
pub(super) const BY_TIME: &str = "
    CREATE INDEX audit_workspace_time ON audit (workspace, time);
";

/// What the client calls a request, beside our own id of it.
pub(super) const CLIENTS_ID: &str = "
    ALTER TABLE audit ADD COLUMN client_request_id TEXT NOT NULL DEFAULT '';
";

/// Whose an entry of a shelf is, so that whoever has most of it makes room.
pub(super) const BY_WHOM: &str = "
    ALTER TABLE audit ADD COLUMN whose TEXT NOT NULL DEFAULT '';
    UPDATE audit SET whose = CASE kind WHEN 'stranger' THEN address ELSE actor || char(31) || credential END;
    DROP INDEX audit_of_shelf;
    CREATE INDEX audit_of_part ON audit (kind, owner, whose);
    CREATE TABLE audit_part (
        kind TEXT NOT NULL,
        owner TEXT NOT NULL,
        whose TEXT NOT NULL,
        bytes INTEGER NOT NULL,
        PRIMARY KEY (kind, owner, whose)
    ) WITHOUT ROWID;
    CREATE INDEX audit_part_most ON audit_part (kind, owner, bytes);
    INSERT INTO audit_part SELECT kind, owner, whose, sum(bytes) FROM audit GROUP BY kind, owner, whose;
";

const DAY: i64 = 24 * 60 * 60 * 1000;
/// How long what is the same is one entry.
const SAME: i64 = 60 * 1000;
/// Rows that are taken away at a time.
const AT_A_TIME: i64 = 1000;
/// The highest count: two of them are still a number that can be read back.
const MOST: i64 = 1 << 52;
/// How long a process that said something is remembered.
const SOURCE: i64 = DAY;

/// Kinds that have a bound for each workspace.
const OF_WORKSPACES: [&str; 4] = [CHANGE, LOGIN, ALLOWED, READ];
/// Kinds that have a bound for all together.
const TOGETHER: [&str; 3] = [REFUSED, STRANGER, LOST];

#[cfg(test)]
impl Default for AuditBounds {
    fn default() -> Self {
        Self {
            days: 365,
            read_days: 30,
            workspace: 1 << 20,
            refused: 1 << 20,
            all: 8 << 20,
        }
    }
}

/// Whose room an entry takes: of a workspace that is not there the system's.
fn owner<'a>(entry: &'a AuditEntry, unknown: &BTreeSet<String>) -> &'a str {
    match entry.kind.as_str() {
        REFUSED => &entry.actor,
        STRANGER | LOST => "",
        _ if unknown.contains(&entry.workspace) => "",
        _ => &entry.workspace,
    }
}

/// By what an entry is known to be the same as another of its minute. A change is like no other.
fn same(entry: &AuditEntry) -> Option<Vec<u8>> {
    if matches!(entry.kind.as_str(), CHANGE | LOGIN) {
        return None;
    }
    let minute = entry.time.div_euclid(SAME);
    let text = format!("{minute}\u{1f}{}", key(entry));
    Some(Sha256::digest(text.as_bytes())[..16].to_vec())
}

/// Adds entries, and makes room for them.
pub(super) fn add(
    tx: &Transaction<'_>,
    entries: &[AuditEntry],
    unknown: &BTreeSet<String>,
    bounds: &AuditBounds,
) -> Result<(), StorageError> {
    let mut touched = false;
    for entry in entries {
        if entry.kind == READ && bounds.read_days == 0 {
            continue;
        }
        touched = true;
        let owner = owner(entry, unknown);
        put(tx, &cut(entry.clone()), owner)?;
        if OF_WORKSPACES.contains(&entry.kind.as_str()) {
            let shelf = (entry.kind.clone(), owner.to_owned());
            let excess = used(tx, &shelf)? - bounds.workspace;
            trim(tx, &shelf, excess)?;
        }
    }
    if !touched {
        return Ok(());
    }
    for kind in TOGETHER {
        let sum = "SELECT coalesce(sum(bytes), 0) FROM audit_shelf WHERE kind = ?1";
        let most = "SELECT kind, owner, bytes FROM audit_shelf WHERE kind = ?1 ORDER BY bytes DESC LIMIT 1";
        make_room(tx, (sum, most), &[&kind], bounds.refused)?;
    }
    let sum = "SELECT coalesce(sum(bytes), 0) FROM audit_shelf";
    // What was only read goes first, and what was changed last: nobody pushes out changes by asking much.
    let most = "SELECT kind, owner, bytes FROM audit_shelf WHERE bytes > 0
        ORDER BY CASE kind WHEN 'change' THEN 3 WHEN 'login' THEN 2 WHEN 'allowed' THEN 1 ELSE 0 END, bytes DESC LIMIT 1";
    make_room(tx, (sum, most), &[], bounds.all)
}

/// Takes from the fullest shelf, until all of them are within a bound.
fn make_room(
    tx: &Transaction<'_>,
    (sum, most): (&str, &str),
    values: &[&dyn ToSql],
    bound: i64,
) -> Result<(), StorageError> {
    loop {
        let all: i64 = tx
            .prepare_cached(sum)?
            .query_row(values, |row| row.get(0))?;
        if all <= bound {
            return Ok(());
        }
        let fullest = tx.prepare_cached(most)?.query_row(values, |row| {
            Ok(((row.get(0)?, row.get(1)?), row.get::<_, i64>(2)?))
        });
        let (shelf, bytes): (Shelf, i64) = fullest?;
        // Not all of it at once: then another may be the fullest.
        if !trim(tx, &shelf, (all - bound).min(bytes / 8).max(1))? {
            let none = "UPDATE audit_shelf SET bytes = 0 WHERE kind = ?1 AND owner = ?2";
            tx.prepare_cached(none)?.execute([&shelf.0, &shelf.1])?;
        }
    }
}

fn put(tx: &Transaction<'_>, entry: &AuditEntry, owner: &str) -> Result<(), StorageError> {
    let same = same(entry);
    if same.is_some() {
        let again = tx
            .prepare_cached(
                "UPDATE audit SET count = min(count + ?2, ?6), until = max(until, ?3), request_id = ?4, client_request_id = ?5
                 WHERE same = ?1",
            )?
            .execute(params![
                same,
                entry.count.min(MOST),
                entry.until,
                entry.request_id,
                entry.client_request_id,
                MOST,
            ])?;
        if again > 0 {
            return Ok(());
        }
    }
    let (bytes, whose) = (size(entry) as i64, whose(entry));
    let changes = match entry.changes.is_empty() {
        true => String::new(),
        false => Value::from(entry.changes.clone()).to_string(),
    };
    tx.prepare_cached(
        "INSERT INTO audit (time, until, count, kind, owner, workspace, actor, credential, door, address,
             operation, target_kind, target, reason, changes, request_id, bytes, same, client_request_id,
             whose)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)",
    )?
    .execute(params![
        entry.time,
        entry.until,
        entry.count.min(MOST),
        entry.kind,
        owner,
        entry.workspace,
        entry.actor,
        entry.credential,
        entry.door,
        entry.address,
        entry.operation,
        entry.target_kind,
        entry.target,
        entry.reason,
        changes,
        entry.request_id,
        bytes,
        same,
        entry.client_request_id,
        whose,
    ])?;
    tx.prepare_cached(
        "INSERT INTO audit_shelf VALUES (?1, ?2, ?3, 0, 0)
         ON CONFLICT (kind, owner) DO UPDATE SET bytes = bytes + excluded.bytes",
    )?
    .execute(params![entry.kind, owner, bytes])?;
    tx.prepare_cached(
        "INSERT INTO audit_part VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (kind, owner, whose) DO UPDATE SET bytes = bytes + excluded.bytes",
    )?
    .execute(params![entry.kind, owner, whose, bytes])?;
    Ok(())
}

/// So many bytes less of one's part.
fn less(
    tx: &Transaction<'_>,
    (kind, owner): (&str, &str),
    whose: &str,
    bytes: i64,
) -> Result<(), StorageError> {
    let part = params![kind, owner, whose, bytes];
    tx.prepare_cached(
        "UPDATE audit_part SET bytes = bytes - ?4 WHERE kind = ?1 AND owner = ?2 AND whose = ?3",
    )?
    .execute(part)?;
    tx.prepare_cached(
        "DELETE FROM audit_part WHERE kind = ?1 AND owner = ?2 AND whose = ?3 AND bytes <= 0",
    )?
    .execute(params![kind, owner, whose])?;
    Ok(())
}

type Shelf = (String, String);

fn used(tx: &Transaction<'_>, shelf: &Shelf) -> Result<i64, StorageError> {
    let sql = "SELECT bytes FROM audit_shelf WHERE kind = ?1 AND owner = ?2";
    let used = tx
        .prepare_cached(sql)?
        .query_row(params![shelf.0, shelf.1], |row| row.get(0))
        .optional()?;
    Ok(used.unwrap_or(0))
}

/// Takes away the oldest of whoever has most of a shelf, until so many bytes are free, and notes that; whether there was
/// enough.
fn trim(tx: &Transaction<'_>, shelf: &Shelf, mut excess: i64) -> Result<bool, StorageError> {
    while excess > 0 {
        let most = tx
            .prepare_cached(
                "SELECT whose FROM audit_part WHERE kind = ?1 AND owner = ?2 ORDER BY bytes DESC LIMIT 1",
            )?
            .query_row(params![shelf.0, shelf.1], |row| row.get::<_, String>(0))
            .optional()?;
        let Some(whose) = most else {
            return Ok(false);
        };
        let oldest = tx
            .prepare_cached(
                "SELECT id, bytes, count, until FROM audit
                 WHERE kind = ?1 AND owner = ?2 AND whose = ?3 ORDER BY id LIMIT 1",
            )?
            .query_row(params![shelf.0, shelf.1, whose], |row| {
                Ok((
                    row.get::<_, i64>(0)?,
                    row.get::<_, i64>(1)?,
                    row.get::<_, i64>(2)?,
                    row.get::<_, i64>(3)?,
                ))
            })
            .optional()?;
        let Some((id, bytes, count, until)) = oldest else {
            less(tx, (&shelf.0, &shelf.1), &whose, i64::MAX / 2)?;
            continue;
        };
        less(tx, (&shelf.0, &shelf.1), &whose, bytes)?;
        tx.prepare_cached("DELETE FROM audit WHERE id = ?1")?
            .execute([id])?;
        tx.prepare_cached(
            "UPDATE audit_shelf SET bytes = bytes - ?3, dropped = min(dropped + ?4, 1 << 52),
                 dropped_until = max(dropped_until, ?5) WHERE kind = ?1 AND owner = ?2",
        )?
        .execute(params![shelf.0, shelf.1, bytes, count, until])?;
        excess -= bytes;
    }
    Ok(true)
}

/// Keeps a batch, where it was not kept before.
pub(super) fn keep(
    tx: &Transaction<'_>,
    batch: &AuditBatch,
    bounds: &AuditBounds,
) -> Result<(), StorageError> {
    let sql = "SELECT sequence FROM audit_source WHERE id = ?1";
    let known: Option<i64> = tx
        .prepare_cached(sql)?
        .query_row([&batch.source], |row| row.get(0))
        .optional()?;
    if known.is_some_and(|known| known >= batch.sequence) {
        return Ok(());
    }
    let latest = batch.entries.iter().map(|entry| entry.until).max();
    tx.prepare_cached(
        "INSERT INTO audit_source VALUES (?1, ?2, ?3)
         ON CONFLICT (id) DO UPDATE SET sequence = excluded.sequence, time = excluded.time",
    )?
    .execute(params![batch.source, batch.sequence, latest.unwrap_or(0)])?;
    add(tx, &batch.entries, &batch.unknown, bounds)
}

/// The statement that reads a page, and its values.
fn reads(wanted: &AuditWanted) -> (String, Vec<Box<dyn ToSql>>) {
    let mut values: Vec<Box<dyn ToSql>> = vec![Box::new(wanted.after)];
    let mut sql = String::from(
        "SELECT id, time, until, count, kind, workspace, actor, credential, door, address, operation,
             target_kind, target, reason, changes, request_id, client_request_id FROM audit",
    );
    // The first page begins where its time does; the others where the one before ended.
    if wanted.since.is_some() && wanted.after == 0 {
        sql.push_str(match wanted.workspace {
            Some(_) => " INDEXED BY audit_workspace_time",
            None => " INDEXED BY audit_time",
        });
    }
    sql.push_str(" WHERE id > ?1");
    let mut and = |condition: &str, value: Option<Box<dyn ToSql>>| {
        if let Some(value) = value {
            values.push(value);
            sql.push_str(&format!(" AND {condition} ?{}", values.len()));
        }
    };
    let text = |value: &Option<String>| value.clone().map(|text| Box::new(text) as Box<dyn ToSql>);
    let number = |value: Option<i64>| value.map(|number| Box::new(number) as Box<dyn ToSql>);
    and("until >=", number(wanted.since));
    and("time >=", number(wanted.since.map(|since| since - SAME)));
    and("time <", number(wanted.until));
    and("workspace =", text(&wanted.workspace));
    and("actor =", text(&wanted.actor));
    and("kind =", text(&wanted.kind));
    sql.push_str(&format!(" ORDER BY id LIMIT {}", wanted.most));
    (sql, values)
}

/// What is asked for, by number.
pub(super) fn page(
    conn: &Connection,
    wanted: &AuditWanted,
) -> Result<Vec<AuditEntry>, StorageError> {
    let (sql, values) = reads(wanted);
    let values: Vec<&dyn ToSql> = values.iter().map(|value| &**value).collect();
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query(&*values)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(entry(row)?);
    }
    Ok(found)
}

fn entry(row: &Row<'_>) -> Result<AuditEntry, StorageError> {
    let changes: String = row.get(14)?;
    Ok(AuditEntry {
        id: row.get(0)?,
        time: row.get(1)?,
        until: row.get(2)?,
        count: row.get(3)?,
        kind: row.get(4)?,
        workspace: row.get(5)?,
        actor: row.get(6)?,
        credential: row.get(7)?,
        door: row.get(8)?,
        address: row.get(9)?,
        operation: row.get(10)?,
        target_kind: row.get(11)?,
        target: row.get(12)?,
        reason: row.get(13)?,
        changes: serde_json::from_slice(changes.as_bytes()).unwrap_or_default(),
        request_id: row.get(15)?,
        client_request_id: row.get(16)?,
    })
}

/// What made room. Of refusals everybody's are summed: whose they were is not told to those who see one workspace.
pub(super) fn dropped(
    conn: &Connection,
    workspace: Option<&str>,
) -> Result<Vec<AuditDropped>, StorageError> {
    let mut statement = conn.prepare_cached(
        "SELECT kind, CASE WHEN kind IN ('refused', 'stranger', 'lost') THEN '' ELSE owner END AS whose,
             sum(dropped), max(dropped_until) FROM audit_shelf
         WHERE dropped > 0 AND (?1 IS NULL OR owner = ?1 OR kind IN ('refused', 'stranger', 'lost'))
         GROUP BY kind, whose ORDER BY kind, whose LIMIT 1000",
    )?;
    let mut rows = statement.query(params![workspace])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(AuditDropped {
            kind: row.get(0)?,
            workspace: row.get(1)?,
            count: row.get(2)?,
            until: row.get(3)?,
        });
    }
    Ok(found)
}

/// Takes away some of what is too old; whether there is more.
pub(super) fn forget(
    tx: &Transaction<'_>,
    now: i64,
    bounds: &AuditBounds,
) -> Result<bool, StorageError> {
    let before = |days: i64| now - days * DAY;
    let mut more = false;
    for (sql, end) in [
        (
            "SELECT id, kind, owner, bytes, whose FROM audit WHERE time < ?1 ORDER BY time LIMIT ?2",
            before(bounds.days),
        ),
        (
            "SELECT id, kind, owner, bytes, whose FROM audit WHERE time < ?1 AND kind = 'read' ORDER BY time LIMIT ?2",
            before(bounds.read_days),
        ),
    ] {
        let mut statement = tx.prepare_cached(sql)?;
        let mut rows = statement.query([end, AT_A_TIME])?;
        let mut old: Vec<(i64, String, String, i64, String)> = Vec::new();
        while let Some(row) = rows.next()? {
            old.push((
                row.get(0)?,
                row.get(1)?,
                row.get(2)?,
                row.get(3)?,
                row.get(4)?,
            ));
        }
        more |= old.len() as i64 == AT_A_TIME;
        for (id, kind, owner, bytes, whose) in old {
            tx.prepare_cached("DELETE FROM audit WHERE id = ?1")?
                .execute([id])?;
            less(tx, (&kind, &owner), &whose, bytes)?;
            let shelf = "UPDATE audit_shelf SET bytes = bytes - ?3 WHERE kind = ?1 AND owner = ?2";
            tx.prepare_cached(shelf)?
                .execute(params![kind, owner, bytes])?;
        }
    }
    let empty = "DELETE FROM audit_shelf WHERE bytes <= 0 AND dropped_until < ?1";
    tx.prepare_cached(empty)?.execute([before(bounds.days)])?;
    tx.prepare_cached("DELETE FROM audit_source WHERE time < ?1")?
        .execute([now - SOURCE])?;
    Ok(more)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How the store finds a page.
    fn plan(wanted: &AuditWanted) -> String {
        let conn = Connection::open_in_memory().unwrap();
        for script in [TABLES, BY_TIME, CLIENTS_ID, BY_WHOM] {
            conn.execute_batch(script).unwrap();
        }
        let (sql, values) = reads(wanted);
        let values: Vec<&dyn ToSql> = values.iter().map(|value| &**value).collect();
        let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let steps = statement.query_map(&*values, |row| row.get::<_, String>(3));
        let steps: Result<Vec<_>, _> = steps.unwrap().collect();
        steps.unwrap().join("; ")
    }

    #[test]
    fn who_asks_for_one_workspace_reads_no_other() {
        let wanted = |since: Option<i64>, after: i64| AuditWanted {
            workspace: Some("w".to_owned()),
            since,
            after,
            most: 10,
            ..AuditWanted::default()
        };
        for (since, after, index) in [
            (Some(5), 0, "audit_workspace_time (workspace=? AND time>?)"),
            (None, 0, "audit_workspace (workspace=? AND rowid>?)"),
            (Some(5), 7, "(workspace=? AND "),
        ] {
            let plan = plan(&wanted(since, after));
            assert!(plan.contains(index), "{since:?} {after}: {plan}");
            assert!(!plan.contains("SCAN"), "{plan}");
        }
    }
}
