//! Which children a document was cut into for a flow and collection, when they were seen last, and whether
//! a complete run has them in every store.

use tg_storage::rusqlite::{Connection, OptionalExtension, Transaction, params};
use tg_storage::{StorageError, query_rows};

use super::{content, document};
use crate::store::runs::Target;

fn find(conn: &Connection, target: &Target) -> Result<Option<i64>, StorageError> {
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

/// A child as a run saw it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub(crate) target: i64,
    pub(crate) child: &'a str,
    pub(crate) run: i64,
    /// What the flow does, as a number.
    pub(crate) shape: i64,
    /// Its text is what it was.
    pub(crate) same: bool,
}

/// Notes that a run has a child. `true` if every store has it from an earlier, complete run.
pub(crate) fn see(tx: &Transaction<'_>, seen: Seen<'_>) -> Result<bool, StorageError> {
    let mut query = tx.prepare_cached(
        "SELECT done = 1 AND shape = ?3 FROM made WHERE target = ?1 AND child = ?2",
    )?;
    let done: Option<bool> = query
        .query_row(params![seen.target, seen.child, seen.shape], |row| {
            row.get(0)
        })
        .optional()?;
    let done = seen.same && done.unwrap_or(false);
    // A record of an older run that comes late takes nothing from a newer one.
    tx.prepare_cached(
        "INSERT INTO made (target, child, run, done, shape) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (target, child) DO UPDATE SET run = max(run, ?3), done = ?4, shape = ?5",
    )?
    .execute(params![seen.target, seen.child, seen.run, done, seen.shape])?;
    Ok(done)
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
pub(crate) fn done(tx: &Transaction<'_>, target: &Target, run: i64) -> Result<(), StorageError> {
    if let Some(number) = find(tx, target)? {
        tx.prepare_cached("UPDATE made SET done = 1 WHERE target = ?1 AND run = ?2")?
            .execute([number, run])?;
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
