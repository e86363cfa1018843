//! Which children a document was cut into for a flow and collection, when they were seen last, and whether
//! a complete run has them in every store.

use std::collections::BTreeMap;

use tg_storage::rusqlite::{Connection, OptionalExtension, Transaction, params};
use tg_storage::{StorageError, query_rows};

use super::fingerprints::Known;
use super::{content, document};
use crate::store::runs::{Run, Target};

pub(super) fn find(conn: &Connection, target: &Target) -> Result<Option<i64>, StorageError> {
    let mut query = conn.prepare_cached(
        "SELECT number FROM target WHERE workspace = ?1 AND document = ?2 AND flow = ?3
         AND collection = ?4 AND incarnation = ?5",
    )?;
    let number = query.query_row(
        params![
            target.workspace,
            target.document,
            target.flow,
            target.collection,
            target.generation
        ],
        |row| row.get(0),
    );
    Ok(number.optional()?)
}

/// Number of a target, which is made if need be.
pub(crate) fn number(tx: &Transaction<'_>, target: &Target) -> Result<i64, StorageError> {
    if let Some(number) = find(tx, target)? {
        return Ok(number);
    }
    tx.prepare_cached(
        "INSERT INTO target (workspace, document, flow, collection, incarnation)
         VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute(params![
        target.workspace,
        target.document,
        target.flow,
        target.collection,
        target.generation
    ])?;
    Ok(tx.last_insert_rowid())
}

/// Stands for fingerprints that nobody noted: of parts that an earlier release made, or that a run did not finish.
const UNKNOWN: i64 = 0;

/// A child as a run saw it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub(crate) target: i64,
    pub(crate) child: &'a str,
    pub(crate) run: i64,
    /// What the flow does, as a number.
    pub(crate) fingerprints: i64,
    /// What it says and where it stands, as a number.
    pub(crate) says: i64,
    /// Its text is what it was, as far as the library knows.
    pub(crate) same: bool,
    /// What is made anew of it is told from what was there before.
    pub(crate) told_apart: bool,
}

/// What is to be done about a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Due {
    /// Nothing: every store has it from an earlier, complete run.
    Nothing,
    /// These processors are to read it.
    By(BTreeMap<String, String>),
}

/// A child as it is noted.
struct Made {
    run: i64,
    done: bool,
    fingerprints: i64,
    says: Option<i64>,
    salt: i64,
    before: Option<i64>,
}

/// Notes that a run has a child, and says who is to read it.
pub(crate) fn see(
    tx: &Transaction<'_>,
    known: &mut Known<'_>,
    seen: Seen<'_>,
) -> Result<Due, StorageError> {
    let mut made = made(tx, seen)?.unwrap_or(Made {
        run: seen.run,
        done: false,
        fingerprints: seen.fingerprints,
        says: Some(seen.says),
        salt: 0,
        before: None,
    });
    // A record of an older run that comes late takes nothing from a newer one.
    if made.run > seen.run {
        return Ok(Due::Nothing);
    }
    let now = known.get(seen.fingerprints)?;
    if made.run < seen.run {
        let same = made.says.map_or(seen.same, |says| says == seen.says);
        let mut before = if made.done {
            made.fingerprints
        } else {
            UNKNOWN
        };
        if !same {
            before = UNKNOWN;
            made.salt = seen.run;
        }
        let changed = match (&now, known.get(before)?) {
            (Some(now), Some(before)) => !now.changed_readers(&before).is_empty(),
            _ => true,
        };
        made = Made {
            run: seen.run,
            done: !changed,
            fingerprints: seen.fingerprints,
            says: Some(seen.says),
            before: (changed && seen.told_apart).then_some(before),
            ..made
        };
    }
    note(tx, seen, &made)?;
    if made.done {
        return Ok(Due::Nothing);
    }
    let mut readers = now
        .as_ref()
        .map_or_else(BTreeMap::new, |now| now.of_readers(made.salt));
    if let (Some(now), Some(before)) = (now, known.get(made.before.unwrap_or(UNKNOWN))?) {
        let changed = now.changed_readers(&before);
        readers.retain(|id, _| changed.contains_key(id));
        if readers.is_empty() {
            // Only what others made of it goes.
            return Ok(Due::Nothing);
        }
    }
    Ok(Due::By(readers))
}

fn made(conn: &Connection, seen: Seen<'_>) -> Result<Option<Made>, StorageError> {
    let mut query = conn.prepare_cached(
        "SELECT run, done, fingerprints, says, salt, before FROM made WHERE target = ?1 AND child = ?2",
    )?;
    let made = query.query_row(params![seen.target, seen.child], |row| {
        Ok(Made {
            run: row.get(0)?,
            done: row.get(1)?,
            fingerprints: row.get(2)?,
            says: row.get(3)?,
            salt: row.get(4)?,
            before: row.get(5)?,
        })
    });
    Ok(made.optional()?)
}

fn note(tx: &Transaction<'_>, seen: Seen<'_>, made: &Made) -> Result<(), StorageError> {
    tx.prepare_cached(
        "INSERT INTO made (target, child, run, done, shape, fingerprints, says, salt, before)
         VALUES (?1, ?2, ?3, ?4, 0, ?5, ?6, ?7, ?8)
         ON CONFLICT (target, child) DO UPDATE SET run = ?3, done = ?4, fingerprints = ?5, says = ?6,
             salt = ?7, before = ?8",
    )?
    .execute(params![
        seen.target,
        seen.child,
        made.run,
        made.done,
        made.fingerprints,
        made.says,
        made.salt,
        made.before
    ])?;
    Ok(())
}

/// How many chunks of a run need nothing done.
pub(crate) fn unchanged(conn: &Connection, target: &Target, run: i64) -> Result<i64, StorageError> {
    let Some(number) = find(conn, target)? else {
        return Ok(0);
    };
    let mut query = conn.prepare_cached(
        "SELECT count(*) FROM made
         JOIN document ON document.workspace = ?3 AND document.id = made.child
         WHERE target = ?1 AND run = ?2 AND done = 1 AND document.type = 'chunk'",
    )?;
    let values = params![number, run, target.workspace];
    Ok(query.query_row(values, |row| row.get(0))?)
}

/// Under which fingerprints a target has a child; 0 if nobody noted them.
pub(crate) fn fingerprints(
    conn: &Connection,
    target: &Target,
    child: &str,
) -> Result<i64, StorageError> {
    let Some(number) = find(conn, target)? else {
        return Ok(UNKNOWN);
    };
    let mut query =
        conn.prepare_cached("SELECT fingerprints FROM made WHERE target = ?1 AND child = ?2")?;
    let known = query.query_row(params![number, child], |row| row.get(0));
    Ok(known.optional()?.unwrap_or(UNKNOWN))
}

/// Chunks of a target: under which fingerprints, whether every store has them, and how many.
pub(crate) fn chunks(
    conn: &Connection,
    workspace: &str,
    target: i64,
) -> Result<Vec<(i64, bool, i64)>, StorageError> {
    let mut query = conn.prepare_cached(
        "SELECT fingerprints, made.done, count(*) FROM made
         JOIN document ON document.workspace = ?2 AND document.id = made.child
         WHERE target = ?1 AND document.type = 'chunk' GROUP BY fingerprints, made.done",
    )?;
    let rows = query.query_map(params![target, workspace], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Children that earlier runs made and this one did not. Those of later runs are theirs: a run that was
/// stopped may end after the next one began.
pub(crate) fn gone(
    conn: &Connection,
    target: &Target,
    run: i64,
) -> Result<Vec<String>, StorageError> {
    let Some(number) = find(conn, target)? else {
        return Ok(Vec::new());
    };
    query_rows(
        conn,
        "SELECT child FROM made WHERE target = ?1 AND run < ?2",
        [number, run],
        |row| row.get(0),
    )
}

/// Every store has what a run made.
pub(crate) fn done(tx: &Transaction<'_>, run: &Run) -> Result<(), StorageError> {
    if let Some(number) = find(tx, &run.target)? {
        tx.prepare_cached(
            "UPDATE made SET done = 1, before = NULL WHERE target = ?1 AND run = ?2",
        )?
        .execute([number, run.number])?;
        tx.prepare_cached("UPDATE target SET fingerprints = ?2, content = ?3 WHERE number = ?1")?
            .execute([number, run.fingerprints, run.content])?;
    }
    Ok(())
}

/// The next run is to do everything again.
pub(crate) fn undone(tx: &Transaction<'_>, target: &Target) -> Result<(), StorageError> {
    if let Some(number) = find(tx, target)? {
        tx.prepare_cached("UPDATE made SET done = 0 WHERE target = ?1")?
            .execute([number])?;
    }
    Ok(())
}

/// Forgets children of a target, and their documents where no other target has them.
pub(crate) fn forget(
    tx: &Transaction<'_>,
    target: &Target,
    children: &[String],
) -> Result<(), StorageError> {
    let Some(number) = find(tx, target)? else {
        return Ok(());
    };
    let mut drop_row = tx.prepare_cached("DELETE FROM made WHERE target = ?1 AND child = ?2")?;
    let mut kept = tx.prepare_cached(
        "SELECT 1 FROM made JOIN target ON target.number = made.target
         WHERE made.child = ?1 AND target.workspace = ?2",
    )?;
    for child in children {
        if drop_row.execute(params![number, child])? == 0
            || kept.exists([child.as_str(), target.workspace.as_str()])?
        {
            continue;
        }
        let Some(stored) = document::get(tx, &target.workspace, child)? else {
            continue;
        };
        // Documents of the library itself are never swept away.
        if stored.document.parent_id.is_empty() {
            continue;
        }
        content::release(tx, stored.content)?;
        tx.prepare_cached("DELETE FROM document WHERE number = ?1")?
            .execute([stored.number])?;
    }
    Ok(())
}

/// Targets that have any of the children, or that a document itself was processed into.
pub(crate) fn targets_of(
    conn: &Connection,
    workspace: &str,
    ids: &[String],
) -> Result<Vec<Target>, StorageError> {
    let mut by_child = conn.prepare_cached(
        "SELECT target.document, flow, collection, incarnation FROM made
         JOIN target ON target.number = made.target
         WHERE made.child = ?2 AND target.workspace = ?1",
    )?;
    let mut by_run = conn.prepare_cached(
        "SELECT DISTINCT document, flow, collection, incarnation FROM run
         WHERE workspace = ?1 AND document = ?2",
    )?;
    let mut found = std::collections::BTreeSet::new();
    for id in ids {
        for query in [&mut by_child, &mut by_run] {
            let rows = query.query_map([workspace, id], |row| {
                Ok(Target {
                    workspace: workspace.to_owned(),
                    document: row.get(0)?,
                    flow: row.get(1)?,
                    collection: row.get(2)?,
                    generation: row.get(3)?,
                })
            })?;
            for row in rows {
                found.insert(row?);
            }
        }
    }
    Ok(found.into_iter().collect())
}

/// Forgets what documents were processed into.
pub(crate) fn forget_documents(
    tx: &Transaction<'_>,
    workspace: &str,
    ids: &[String],
) -> Result<(), StorageError> {
    let mut children = tx.prepare_cached(
        "DELETE FROM made WHERE child = ?2
         AND target IN (SELECT number FROM target WHERE workspace = ?1)",
    )?;
    let mut of_targets = tx.prepare_cached(
        "DELETE FROM made
         WHERE target IN (SELECT number FROM target WHERE workspace = ?1 AND document = ?2)",
    )?;
    let mut targets =
        tx.prepare_cached("DELETE FROM target WHERE workspace = ?1 AND document = ?2")?;
    for id in ids {
        for statement in [&mut children, &mut of_targets, &mut targets] {
            statement.execute([workspace, id])?;
        }
    }
    Ok(())
}

/// Forgets what was processed into a collection up to a generation.
pub(crate) fn forget_collection(
    tx: &Transaction<'_>,
    workspace: &str,
    collection: &str,
    generation: i64,
) -> Result<(), StorageError> {
    let of = "workspace = ?1 AND collection = ?2 AND incarnation <= ?3";
    let values = params![workspace, collection, generation];
    tx.execute(
        &format!("DELETE FROM made WHERE target IN (SELECT number FROM target WHERE {of})"),
        values,
    )?;
    tx.execute(&format!("DELETE FROM target WHERE {of}"), values)?;
    Ok(())
}

/// Forgets everything of a workspace.
pub(crate) fn purge(tx: &Transaction<'_>, workspace: &str) -> Result<(), StorageError> {
    tx.execute(
        "DELETE FROM made WHERE target IN (SELECT number FROM target WHERE workspace = ?1)",
        [workspace],
    )?;
    tx.execute("DELETE FROM target WHERE workspace = ?1", [workspace])?;
    Ok(())
}
