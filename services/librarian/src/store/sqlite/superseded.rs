//! What a run made anew of parts that were there before: what stood in its place is to be retracted.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use tg_schemas::msg::Superseded;
use tg_storage::StorageError;
use tg_storage::rusqlite::{Connection, Transaction, params};

use super::children;
use super::fingerprints::Known;
use super::outbox;
use super::report;
use super::tally;
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

/// Processor, and its fingerprints that are kept.
type Kept = (String, BTreeSet<String>);

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
    let topic = retraction::topic(&run.target.workspace, &run.target.flow);
    for (at, superseded) in records(tx, run, &failed)?.into_iter().enumerate() {
        let what = format!("{}/{}/{at}", run.thread, how_far.number());
        let record = ids::of_question("supersede", &what);
        if let Ok(topic) = &topic {
            let topic = topic.to_string();
            tally::expect(tx, &run.thread, [(record.as_str(), topic.as_str())], now)?;
        }
        let retraction = Retraction {
            number: 0,
            target: run.target.clone(),
            thread: run.thread.clone(),
            record,
            chunks: Vec::new(),
            triples: Vec::new(),
            superseded,
        };
        outbox::insert(tx, &retraction, None)?;
    }
    Ok(())
}

/// What is superseded, in as much as goes into one retraction each.
fn records(
    tx: &Transaction<'_>,
    run: &Run,
    failed: &HashSet<String>,
) -> Result<Vec<Vec<Superseded>>, StorageError> {
    let mut known = Known::new(tx);
    let mut chunks: BTreeMap<Kept, Vec<String>> = BTreeMap::new();
    let all = anew(tx, &run.target, run.number)?.into_iter();
    for one in all.filter(|one| !failed.contains(&one.child)) {
        for (processor, kept) in outdated(tx, &mut known, &run.target, &one)? {
            let of = chunks.entry((processor, kept)).or_default();
            of.push(one.child.clone());
        }
    }
    let mut records = Vec::new();
    for ((processor, kept), all) in chunks {
        for some in all.chunks(RETRACTED) {
            records.push(vec![Superseded {
                processor: processor.clone(),
                kept: kept.iter().cloned().collect(),
                chunks: some.to_vec(),
            }]);
        }
    }
    Ok(records)
}

/// Processors whose earlier outcome goes, with the fingerprints under which it stays: those of now, and those under which
/// other flows have the part in the same collection.
fn outdated(
    conn: &Connection,
    known: &mut Known<'_>,
    target: &Target,
    one: &Anew,
) -> Result<Vec<Kept>, StorageError> {
    let Some(now) = known.get(one.fingerprints)? else {
        return Ok(Vec::new());
    };
    let kept = now.of_readers(one.salt);
    let mut processors: BTreeSet<String> = match known.get(one.before)? {
        Some(before) => now.changed_readers(&before).into_keys().collect(),
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
    let of = |processor: String| {
        let kept = all.iter().filter_map(|one| one.get(&processor)).cloned();
        (processor.clone(), kept.collect())
    };
    Ok(processors.into_iter().map(of).collect())
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

/// Under which fingerprints other flows have a part in the same collection.
fn elsewhere(
    conn: &Connection,
    target: &Target,
    child: &str,
) -> Result<Vec<(i64, i64)>, StorageError> {
    let mut query = conn.prepare_cached(
        "SELECT DISTINCT made.fingerprints, made.salt FROM made
         JOIN target ON target.number = made.target
         WHERE made.child = ?1 AND target.workspace = ?2 AND target.collection = ?3
         AND target.incarnation = ?4 AND target.flow <> ?5",
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
