//! The recorded inputs of runs.

use tg_storage::rusqlite::{Connection, OptionalExtension, Transaction, params};
use tg_storage::{StorageError, query_rows};

use super::{calls, confirmations, findings, steps, usage};
use crate::store::{Added, Facts, Noted, Record};

/// Subagents that are looked for below each other: deeper than work may ever be given on.
const DEEPEST: usize = 64;

/// Adds entries. `false`: the record is not kept.
pub(super) fn add(tx: &Transaction<'_>, added: &Added, now_ms: i64) -> Result<bool, StorageError> {
    let Some((bytes, grown)) = standing(tx, &added.root)? else {
        let first = |entry: &Noted| entry.name.as_deref() == Some(Noted::FIRST);
        if !added.entries.iter().any(first) {
            // It was there, and had to go.
            return Ok(false);
        }
        tx.prepare_cached("INSERT INTO record (root, workspace, created_ms) VALUES (?1, ?2, ?3)")?
            .execute(params![added.root, added.workspace, now_ms])?;
        return enter(tx, added, 0);
    };
    match grown {
        true => Ok(false),
        false => enter(tx, added, bytes),
    }
}

/// Bytes of a record, and whether it became too large.
fn standing(conn: &Connection, root: &str) -> Result<Option<(u64, bool)>, StorageError> {
    let mut known = conn.prepare_cached("SELECT bytes, grown FROM record WHERE root = ?1")?;
    let known = known.query_row([root], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?)));
    Ok(known.optional()?.map(|(bytes, grown)| (size(bytes), grown)))
}

fn enter(tx: &Transaction<'_>, added: &Added, before: u64) -> Result<bool, StorageError> {
    let mut insert = tx.prepare_cached(
        "INSERT OR IGNORE INTO exchange (root, number, run, step, name, text)
         SELECT ?1, coalesce(max(number), 0) + 1, ?2, ?3, ?4, ?5 FROM exchange WHERE root = ?1",
    )?;
    let mut bytes = before;
    for entry in &added.entries {
        let new = insert.execute(params![
            added.root, entry.run, entry.step, entry.name, entry.text
        ])?;
        if new > 0 {
            bytes += entry.text.len() as u64;
        }
    }
    tx.prepare_cached("UPDATE record SET bytes = ?2 WHERE root = ?1")?
        .execute(params![added.root, number(bytes)])?;
    if bytes > added.most || !has_room(tx, added)? {
        give_up(tx, &added.root)?;
        return Ok(false);
    }
    Ok(true)
}

/// Whether the records of the workspace fit, once others have gone that are older.
fn has_room(tx: &Transaction<'_>, added: &Added) -> Result<bool, StorageError> {
    let mut total = tx.prepare_cached("SELECT bytes FROM record_total WHERE workspace = ?1")?;
    let mut oldest = tx.prepare_cached(
        "DELETE FROM record WHERE root =
           (SELECT root FROM record WHERE workspace = ?1 AND root <> ?2 AND bytes > 0
            ORDER BY created_ms, root LIMIT 1)",
    )?;
    loop {
        let bytes: Option<i64> = total
            .query_row([&added.workspace], |row| row.get(0))
            .optional()?;
        if bytes.map_or(0, size) <= added.keep {
            return Ok(true);
        }
        if oldest.execute([&added.workspace, &added.root])? == 0 {
            return Ok(false);
        }
    }
}

/// It became too large: that is all that stays of it.
fn give_up(tx: &Transaction<'_>, root: &str) -> Result<(), StorageError> {
    for sql in [
        "DELETE FROM exchange WHERE root = ?1",
        "UPDATE record SET grown = 1, bytes = 0 WHERE root = ?1",
    ] {
        tx.prepare_cached(sql)?.execute([root])?;
    }
    Ok(())
}

/// What is kept of a run and its subagents.
pub(super) fn read(conn: &Connection, root: &str) -> Result<Option<Record>, StorageError> {
    let Some((_, grown)) = standing(conn, root)? else {
        return Ok(None);
    };
    let sql = "SELECT run, step, name, text FROM exchange WHERE root = ?1 ORDER BY number";
    let entries = query_rows(conn, sql, [root], |row| {
        Ok(Noted {
            run: row.get(0)?,
            step: row.get(1)?,
            name: row.get(2)?,
            text: row.get(3)?,
        })
    })?;
    let mut record = Record {
        grown,
        entries,
        ..Record::default()
    };
    if !grown {
        below(conn, root, DEEPEST, &mut record)?;
    }
    Ok(Some(record))
}

/// Adds what is known of a run, and of those below it.
fn below(
    conn: &Connection,
    run: &str,
    deep: usize,
    record: &mut Record,
) -> Result<(), StorageError> {
    facts(conn, run, record)?;
    record
        .findings
        .insert(run.to_owned(), findings::of(conn, run)?);
    if deep == 0 {
        return Ok(());
    }
    // As `run::fan_in` names them; `0` follows upon `/`.
    let [from, to] = ["/", "0"].map(|end| format!("subagent/{run}{end}"));
    let sql = "SELECT question, run, started_at FROM run WHERE question > ?1 AND question < ?2";
    let subagents: Vec<(String, String, String)> = query_rows(conn, sql, [&from, &to], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    })?;
    for (question, subagent, started_at) in subagents {
        let number = question.rsplit('/').next().unwrap_or_default();
        let Ok(number) = number.parse() else {
            continue;
        };
        below(conn, &subagent, deep - 1, record)?;
        let key = (run.to_owned(), number);
        record.subagents.insert(key, (subagent, started_at));
    }
    Ok(())
}

fn facts(conn: &Connection, run: &str, record: &mut Record) -> Result<(), StorageError> {
    let sql =
        "SELECT step, json_extract(observation, '$.duration_ms'), ending, decision IS NOT NULL
         FROM step WHERE run = ?1";
    let rows = query_rows(conn, sql, [run], |row| {
        Ok((
            row.get::<_, u32>(0)?,
            row.get::<_, Option<i64>>(1)?,
            row.get::<_, Option<String>>(2)?,
            row.get::<_, bool>(3)?,
        ))
    })?;
    for (step, took_ms, ending, decided) in rows {
        let facts = Facts {
            decided,
            took_ms: took_ms.map(size),
            ending: steps::read_json(ending)?,
            ..Facts::default()
        };
        record.steps.insert((run.to_owned(), step), facts);
    }
    for ((step, nth), confirmation) in confirmations::all(conn, run)? {
        let facts = record.steps.entry((run.to_owned(), step)).or_default();
        facts.confirmations.insert(nth, confirmation);
    }
    for ((step, nth), took_ms) in calls::took(conn, run)? {
        let facts = record.steps.entry((run.to_owned(), step)).or_default();
        facts.calls_took.insert(nth, size(took_ms));
    }
    let sql = "SELECT step, kind, refused FROM usage_call
               WHERE run = ?1 AND step > 0 AND refused IS NOT NULL";
    let rows = query_rows(conn, sql, [run], |row| {
        Ok((
            row.get::<_, u32>(0)?,
            row.get::<_, u32>(1)?,
            row.get::<_, Option<String>>(2)?,
        ))
    })?;
    for (step, kind, refused) in rows {
        let (kind, nth) = usage::kind(kind);
        if let Some(why) = steps::read_json(refused)? {
            let facts = record.steps.entry((run.to_owned(), step)).or_default();
            facts.refused.push((kind, nth, why));
        }
    }
    Ok(())
}

fn size(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}

fn number(size: u64) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}
