//! What each step decided, saw, or how it ended.

use std::collections::BTreeSet;

use tg_storage::rusqlite::{Connection, OptionalExtension, Transaction, params};
use tg_storage::{StorageError, query_rows};

use super::calls;
pub(super) use super::json::{read_json, write_json};
use crate::engine::decision::{Decision, Observation, Taken};
use crate::store::{Happened, StepRow, ToolCall};

/// The row of a step, and whether there are later ones.
pub(super) fn load(conn: &Connection, run: &str, step: u32) -> Result<StepRow, StorageError> {
    let later = conn
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM step WHERE run = ?1 AND step > ?2)")?
        .query_row(params![run, step], |row| row.get::<_, bool>(0))?;
    let row = conn
        .prepare_cached(
            "SELECT decision, observation, ending, done FROM step WHERE run = ?1 AND step = ?2",
        )?
        .query_row(params![run, step], |row| {
            Ok((
                row.get::<_, Option<String>>(0)?,
                row.get::<_, Option<String>>(1)?,
                row.get::<_, Option<String>>(2)?,
                row.get::<_, u8>(3)? > 0,
            ))
        })
        .optional()?;
    let Some((decision, observation, ending, done)) = row else {
        return Ok(StepRow {
            later,
            ..StepRow::default()
        });
    };
    Ok(StepRow {
        decision: read_json(decision)?,
        observation: read_json(observation)?,
        ending: read_json(ending)?,
        done,
        later,
    })
}

/// What has happened in a run, and in those of its subagents, in the order in which they were sent.
pub(super) fn happened(conn: &Connection, run: &str) -> Result<Happened, StorageError> {
    let mut happened = Happened::default();
    with_subagents(conn, run, &mut happened, true)?;
    Ok(happened)
}

/// Adds what has happened in one run and below it. What subagents have used that are not back yet is counted with their own
/// steps. As deep as work may be given on.
fn with_subagents(
    conn: &Connection,
    run: &str,
    happened: &mut Happened,
    used: bool,
) -> Result<(), StorageError> {
    let back = happened_in(conn, run, happened, used)?;
    let sql = "SELECT run FROM run WHERE question > ?1 AND question < ?2 ORDER BY created_ms, run";
    // As `run::fan_in` names them; `0` follows upon `/`.
    let [from, to] = ["/", "0"].map(|end| format!("subagent/{run}{end}"));
    let subagents: Vec<String> = query_rows(conn, sql, [&from, &to], |row| row.get(0))?;
    for subagent in subagents {
        let used = used && !back.contains(&subagent);
        with_subagents(conn, &subagent, happened, used)?;
    }
    Ok(())
}

/// Adds what has happened in one run. Returns which of its subagents are back, so that what they used is counted with it.
fn happened_in(
    conn: &Connection,
    run: &str,
    happened: &mut Happened,
    used: bool,
) -> Result<BTreeSet<String>, StorageError> {
    let mut query = conn.prepare_cached(
        "SELECT decision, observation, step FROM step
         WHERE run = ?1 AND decision IS NOT NULL ORDER BY step",
    )?;
    let mut rows = query.query([run])?;
    let mut back = BTreeSet::new();
    while let Some(row) = rows.next()? {
        let Some(decision) = read_json::<Decision>(row.get(0)?)? else {
            continue;
        };
        let seen: Option<Observation> = read_json(row.get(1)?)?;
        let step: u32 = row.get(2)?;
        happened.steps += 1;
        let found = seen.iter().flat_map(|seen| &seen.findings);
        back.extend(found.map(|found| found.run.clone()));
        let took = [Some(&decision.usage), seen.as_ref().map(|seen| &seen.usage)];
        for took in took.into_iter().flatten().filter(|_| used) {
            happened.in_token = happened.in_token.saturating_add(took.in_token);
            happened.out_token = happened.out_token.saturating_add(took.out_token);
        }
        if matches!(decision.taken, Taken::Actions { .. }) {
            let came = match &seen {
                Some(seen) => (0..).zip(seen.calls.iter().cloned()).collect(),
                None => calls::of(conn, run, step)?,
            };
            happened.calls.extend(several(&decision, &came));
        }
        // What was refused before the tool was called is no call.
        if let Taken::Action { name, .. } = &decision.taken
            && seen.as_ref().is_none_or(|seen| seen.called)
            && !name.is_empty()
        {
            happened.calls.push(ToolCall {
                tool: name.clone(),
                returned: seen.is_some(),
                failed: seen.is_some_and(|seen| seen.error.is_some()),
            });
        }
    }
    Ok(back)
}

/// Each of several calls, unless it was refused before it was made.
fn several(decision: &Decision, came: &[(u32, Observation)]) -> Vec<ToolCall> {
    let apart = decision.apart();
    let calls = (0..).zip(&apart).filter_map(|(nth, one)| {
        let seen = came.iter().find(|(of, _)| *of == nth).map(|(_, seen)| seen);
        seen.is_none_or(|seen| seen.called).then(|| ToolCall {
            tool: one.action_name().into_owned(),
            returned: seen.is_some(),
            failed: seen.is_some_and(|seen| seen.error.is_some()),
        })
    });
    calls.collect()
}

/// Notes what a step decided; the first decision stands.
pub(super) fn decide(
    tx: &Transaction<'_>,
    run: &str,
    step: u32,
    text: &str,
    now_ms: i64,
) -> Result<(), StorageError> {
    tx.prepare_cached(
        "INSERT INTO step (run, step, decision, created_ms) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (run, step) DO UPDATE SET decision = excluded.decision
         WHERE step.decision IS NULL",
    )?
    .execute(params![run, step, text, now_ms])?;
    Ok(())
}

/// Notes what a step saw; the first observation stands.
pub(super) fn observe(
    tx: &Transaction<'_>,
    run: &str,
    step: u32,
    text: &str,
) -> Result<(), StorageError> {
    tx.prepare_cached(
        "UPDATE step SET observation = ?3
         WHERE run = ?1 AND step = ?2 AND observation IS NULL",
    )?
    .execute(params![run, step, text])?;
    Ok(())
}

/// Notes how a step ended; the first ending stands.
pub(super) fn end(
    tx: &Transaction<'_>,
    run: &str,
    step: u32,
    text: &str,
    now_ms: i64,
) -> Result<(), StorageError> {
    tx.prepare_cached(
        "INSERT INTO step (run, step, ending, created_ms) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (run, step) DO UPDATE SET ending = excluded.ending
         WHERE step.ending IS NULL",
    )?
    .execute(params![run, step, text, now_ms])?;
    Ok(())
}

/// Nothing more is to be done for a step.
pub(super) fn finish(tx: &Transaction<'_>, run: &str, step: u32) -> Result<(), StorageError> {
    done(tx, run, step, 1)
}

/// Nothing more is to be done for the run of a step, which may have ended before anything was decided in it; nor for its earlier
/// steps, if they are done. Of a run that is not known any more nothing is noted.
pub(super) fn finish_run(
    tx: &Transaction<'_>,
    run: &str,
    (step, earlier_done): (u32, bool),
    now_ms: i64,
) -> Result<(), StorageError> {
    if earlier_done {
        tx.prepare_cached("UPDATE step SET done = 1 WHERE run = ?1 AND step < ?2 AND done = 0")?
            .execute(params![run, step])?;
    }
    tx.prepare_cached(
        "INSERT INTO step (run, step, done, created_ms)
         SELECT ?1, ?2, 2, ?3
         WHERE EXISTS (SELECT 1 FROM run WHERE run.run = ?1)
           OR EXISTS (SELECT 1 FROM step WHERE step.run = ?1 AND step.step = ?2)
         ON CONFLICT (run, step) DO UPDATE SET done = 2",
    )?
    .execute(params![run, step, now_ms])?;
    Ok(())
}

fn done(tx: &Transaction<'_>, run: &str, step: u32, what: u8) -> Result<(), StorageError> {
    tx.prepare_cached("UPDATE step SET done = ?3 WHERE run = ?1 AND step = ?2")?
        .execute(params![run, step, what])?;
    Ok(())
}
