//! What a run made anew of parts that were there before: what stood in its place is to be retracted.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use tg_schemas::msg::Superseded;
use tg_storage::StorageError;
use tg_storage::rusqlite::{Connection, Transaction, params};

use super::children;
use super::completion;
use super::fingerprints::Known;
use super::outbox;
use super::report;
use crate::engine::ids;
use crate::engine::retraction;
use crate::engine::state::Swept;
use crate::store::runs::{RETRACTED, Retraction, Run, Target};

/// A part of which something was made anew.
struct Anew {
    child: String,
    fingerprints: i64,
    salt: i64,
    /// Fingerprints before; those of none if not known.
    before: i64,
}

/// What goes of a part.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Goes {
    processor: String,
    /// Fingerprints of what stays.
    kept: BTreeSet<String>,
    /// Fingerprints of what goes; `None`: nobody knows, it is all that does not stay.
    gone: Option<BTreeSet<String>>,
}

/// Parts of which the same goes.
type Chunks = BTreeMap<Goes, Vec<String>>;

/// Has the stores forget what was superseded, as part of the run: all of it, or that of parts of which nothing failed.
pub(super) fn supersede(
    tx: &Transaction<'_>,
    run: &Run,
    how_far: Swept,
    now: i64,
) -> Result<(), StorageError> {
    let failed = match how_far {
        Swept::Superseded => Some(HashSet::new()),
        _ => report::failed_chunks(tx, run.number, run.counts.failed)?,
    };
    // Nobody knows what failed: all stays.
    let Some(failed) = failed else {
        return Ok(());
    };
    let chunks = chunks(tx, run, &failed)?;
    retract(
        tx,
        run,
        &format!("supersede {}", how_far.number()),
        chunks,
        now,
    )
}

/// Parts that a run did not see any more: what this flow made of those that other flows still have in the collection is
/// retracted, as part of the run. Returns the others, which go as a whole.
pub(super) fn leave_to_others(
    tx: &Transaction<'_>,
    run: &Run,
    gone: Vec<String>,
    now: i64,
) -> Result<Vec<String>, StorageError> {
    let mut known = Known::new(tx);
    let (mut whole, mut chunks) = (Vec::new(), Chunks::new());
    for child in gone {
        let mut kept = Vec::new();
        for (fingerprints, salt) in elsewhere(tx, &run.target, &child)? {
            kept.push(known.get(fingerprints)?.map(|known| known.of_readers(salt)));
        }
        if kept.is_empty() {
            whole.push(child);
            continue;
        }
        let made = children::fingerprints(tx, &run.target, &child)?;
        // Where nobody noted who made what, nobody knows what of it is theirs.
        let (Some(made), Some(kept)) = (
            known.get(made)?,
            kept.into_iter().collect::<Option<Vec<_>>>(),
        ) else {
            continue;
        };
        for processor in made.of_readers(0).into_keys() {
            let kept = kept.iter().filter_map(|one| one.get(&processor)).cloned();
            let of = Goes {
                kept: kept.collect(),
                gone: None,
                processor,
            };
            chunks.entry(of).or_default().push(child.clone());
        }
    }
    retract(tx, run, "leave", chunks, now)?;
    Ok(whole)
}

/// Has the stores forget what processors made of chunks, in as much as goes into one retraction each.
fn retract(
    tx: &Transaction<'_>,
    run: &Run,
    what: &str,
    chunks: Chunks,
    now: i64,
) -> Result<(), StorageError> {
    let topic = retraction::topic(&run.target.workspace, &run.target.flow);
    let mut at = 0;
    for (goes, all) in chunks {
        for some in all.chunks(RETRACTED) {
            let record = ids::of_question(what, &format!("{}/{at}", run.thread));
            at += 1;
            if let Ok(topic) = &topic {
                let topic = topic.to_string();
                completion::expect(tx, &run.thread, [(record.as_str(), topic.as_str())], now)?;
            }
            let superseded = Superseded {
                processor: goes.processor.clone(),
                kept: goes.kept.iter().cloned().collect(),
                gone: goes.gone.iter().flatten().cloned().collect(),
                chunks: some.to_vec(),
            };
            let retraction = Retraction {
                number: 0,
                target: run.target.clone(),
                thread: run.thread.clone(),
                record,
                chunks: Vec::new(),
                triples: Vec::new(),
                superseded: vec![superseded],
            };
            outbox::insert(tx, &retraction, None)?;
        }
    }
    Ok(())
}

/// What is superseded, of parts that did not fail.
fn chunks(
    tx: &Transaction<'_>,
    run: &Run,
    failed: &HashSet<String>,
) -> Result<Chunks, StorageError> {
    let mut known = Known::new(tx);
    let mut chunks = Chunks::new();
    let all = anew(tx, &run.target, run.number)?.into_iter();
    for one in all.filter(|one| !failed.contains(&one.child)) {
        for of in outdated(tx, &mut known, &run.target, &one)? {
            chunks.entry(of).or_default().push(one.child.clone());
        }
    }
    Ok(chunks)
}

/// Processors whose earlier outcome goes, as far as it is known which. What they made under the fingerprints of now stays, and
/// under those with which other flows have the part in the same collection.
fn outdated(
    conn: &Connection,
    known: &mut Known<'_>,
    target: &Target,
    one: &Anew,
) -> Result<Vec<Goes>, StorageError> {
    let Some(now) = known.get(one.fingerprints)? else {
        return Ok(Vec::new());
    };
    let kept = now.of_readers(one.salt);
    let before = known.get(one.before)?;
    let mut processors: BTreeSet<String> = match &before {
        Some(before) => now.changed_readers(before).into_keys().collect(),
        // Also what earlier releases kept under no processor's name.
        None => kept.keys().cloned().chain([String::new()]).collect(),
    };
    let mut all: Vec<BTreeMap<String, String>> = vec![kept];
    for (fingerprints, salt) in elsewhere(conn, target, &one.child)? {
        match known.get(fingerprints)? {
            Some(others) => all.push(others.of_readers(salt)),
            // Nobody knows what of it is theirs.
            None => return Ok(Vec::new()),
        }
        processors.remove("");
    }
    // A part that stands elsewhere has another salt, and nothing is known of it before.
    let before = before.map(|before| before.of_readers(one.salt));
    let of = |processor: String| {
        let kept = all.iter().filter_map(|one| one.get(&processor)).cloned();
        let kept: BTreeSet<String> = kept.collect();
        let gone = before.as_ref().map(|before| {
            let gone = before.get(&processor).filter(|one| !kept.contains(*one));
            gone.cloned().into_iter().collect()
        });
        Goes {
            processor,
            kept,
            gone,
        }
    };
    let all = processors.into_iter().map(of);
    let something = |goes: &Goes| goes.gone.as_ref().is_none_or(|gone| !gone.is_empty());
    Ok(all.filter(something).collect())
}

fn anew(conn: &Connection, target: &Target, run: i64) -> Result<Vec<Anew>, StorageError> {
    let Some(number) = children::find(conn, target)? else {
        return Ok(Vec::new());
    };
    let mut query = conn.prepare_cached(
        "SELECT child, fingerprints, salt, before FROM made
         WHERE target = ?1 AND run = ?2 AND done = 0 AND before IS NOT NULL",
    )?;
    let rows = query.query_map([number, run], |row| {
        Ok(Anew {
            child: row.get(0)?,
            fingerprints: row.get(1)?,
            salt: row.get(2)?,
            before: row.get(3)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Under which fingerprints other flows have a part in the same collection: those of their last run, and while that one has not
/// made it anew those before.
fn elsewhere(
    conn: &Connection,
    target: &Target,
    child: &str,
) -> Result<Vec<(i64, i64)>, StorageError> {
    let mut query = conn.prepare_cached(
        "WITH theirs AS (
             SELECT made.* FROM made JOIN target ON target.number = made.target
             WHERE made.child = ?1 AND target.workspace = ?2 AND target.collection = ?3
             AND target.incarnation = ?4 AND target.flow <> ?5
         )
         SELECT fingerprints, salt FROM theirs
         UNION SELECT before, salt FROM theirs WHERE done = 0 AND before IS NOT NULL",
    )?;
    let values = params![
        child,
        target.workspace,
        target.collection,
        target.generation,
        target.flow
    ];
    let rows = query.query_map(values, |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}
