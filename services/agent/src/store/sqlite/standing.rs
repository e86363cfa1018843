//! Where runs stand, by the last row of each.

use tg_storage::rusqlite::{Connection, OptionalExtension, params};
use tg_storage::{StorageError, query_rows};

use super::steps::read_json;
use crate::engine::decision::{Decision, Ending, Observation};
use crate::engine::guards::Exhausted;
use crate::store::RunProgress;

/// A run and its subagents, at most so many.
const MOST: usize = 17;

/// Where a run stands that began then, and each of its subagents that is not over.
pub(super) fn of(
    conn: &Connection,
    run: &str,
    started_ms: i64,
) -> Result<Vec<RunProgress>, StorageError> {
    // As `run::fan_in` names them; `0` follows upon `/`.
    let sql = "WITH RECURSIVE one(run, began) AS (
           SELECT ?1, ?2 UNION SELECT run.run, run.created_ms FROM one JOIN run
             ON run.question > 'subagent/' || one.run || '/' AND run.question < 'subagent/' || one.run || '0')
         SELECT run, began FROM one
         WHERE run = ?1 OR NOT EXISTS (SELECT 1 FROM step WHERE step.run = one.run AND done = 2)
         ORDER BY run <> ?1, began, run LIMIT ?3";
    let most = i64::try_from(MOST).unwrap_or(i64::MAX);
    let all = query_rows(conn, sql, params![run, started_ms, most], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
    })?;
    all.into_iter()
        .map(|(run, began)| stands(conn, run, began))
        .collect()
}

fn stands(conn: &Connection, run: String, began_ms: i64) -> Result<RunProgress, StorageError> {
    let mut last = conn.prepare_cached(
        "SELECT step, decision, observation, ending, done, created_ms FROM step
         WHERE run = ?1 ORDER BY step DESC LIMIT 1",
    )?;
    let row = last.query_row([&run], |row| {
        let texts: [Option<String>; 3] = [row.get(1)?, row.get(2)?, row.get(3)?];
        Ok((
            row.get::<_, u32>(0)?,
            texts,
            row.get::<_, i64>(4)?,
            row.get::<_, i64>(5)?,
        ))
    });
    let Some((step, [decision, observation, ending], done, since_ms)) = row.optional()? else {
        return Ok(RunProgress {
            run,
            step: 1,
            since_ms: began_ms,
            ..RunProgress::default()
        });
    };
    let ending: Option<Ending> = read_json(ending)?;
    let seen: Option<Observation> = read_json(observation)?;
    let over = done == 2;
    let ended = match ending {
        Some(ending) => Some(ending.message),
        None if over => stopped(conn, (&run, step), decision.clone(), seen.as_ref())?,
        None => None,
    };
    let here = RunProgress {
        over,
        ended,
        step,
        since_ms,
        run,
        ..RunProgress::default()
    };
    match seen {
        _ if here.over => Ok(here),
        // What it returned is known, or all that follows from it was done: the next step is under way.
        Some(seen) => Ok(RunProgress {
            step: step + 1,
            since_ms: since_ms.saturating_add(i64::try_from(seen.duration_ms).unwrap_or(0)),
            ..here
        }),
        None if done == 1 => Ok(RunProgress {
            step: step + 1,
            ..here
        }),
        None => Ok(RunProgress {
            decision: read_json(decision)?,
            asked: asked(conn, &here.run, step)?,
            ..here
        }),
    }
}

/// Why a run was stopped in its last step with the best answer so far: by a guard, or because a call did not fit a budget.
fn stopped(
    conn: &Connection,
    (run, step): (&str, u32),
    decision: Option<String>,
    seen: Option<&Observation>,
) -> Result<Option<String>, StorageError> {
    let decision: Option<Decision> = read_json(decision)?;
    let guards = [
        seen.and_then(|seen| seen.guard.as_ref()),
        decision
            .as_ref()
            .and_then(|decision| decision.guard.as_ref()),
    ];
    if let Some(guard) = guards.into_iter().flatten().find(|guard| guard.stops()) {
        return Ok(Some(guard.sentence()));
    }
    let mut refused = conn.prepare_cached(
        "SELECT refused FROM usage_call WHERE run = ?1 AND step = ?2 AND refused IS NOT NULL LIMIT 1",
    )?;
    let refused = refused.query_row(params![run, step], |row| row.get(0));
    let refused: Option<Exhausted> = read_json(refused.optional()?)?;
    Ok(refused.map(|refused| refused.why))
}

/// What the user is asked in a step.
fn asked(conn: &Connection, run: &str, step: u32) -> Result<Option<(String, i64)>, StorageError> {
    let sql =
        "SELECT asked, until_ms FROM confirmation WHERE run = ?1 AND step = ?2 AND answer IS NULL";
    let mut open = conn.prepare_cached(sql)?;
    let open = open.query_row(params![run, step], |row| Ok((row.get(0)?, row.get(1)?)));
    Ok(open.optional()?)
}
