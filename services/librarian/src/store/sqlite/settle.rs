//! What becomes of a run in which nothing moves any more.

use tg_storage::StorageError;
use tg_storage::rusqlite::{Connection, Transaction};

use super::json::json;
use super::{children, collection, completion, outbox, report, run, superseded};
use crate::engine::ids;
use crate::engine::progress::progress;
use crate::engine::retraction;
use crate::engine::start;
use crate::engine::state::{Next, State, Swept, next};
use crate::store::runs::{RETRACTED, Retraction, Run, Shown};

/// Ends a run whose records were all handled. What earlier runs made of the document and this one did not is
/// retracted first, as part of the run: it is over when that is confirmed too.
/// `true` if there is something to do now.
pub(super) fn settle(tx: &Transaction<'_>, number: i64, now: i64) -> Result<bool, StorageError> {
    let mut changed = false;
    loop {
        let Some(run) = run::get(tx, number)? else {
            return Ok(changed);
        };
        if run.state == State::Cancelled && run.counts.is_still() {
            // Others wait for its end.
            return Ok(true);
        }
        let readings = report::readings(tx, number)?;
        let cut_failed = readings
            .iter()
            .any(|one| one.failed > 0 && one.reader.cuts());
        match next(run.state, run.counts, run.swept, cut_failed) {
            Next::Wait => return Ok(changed),
            Next::Sweep => {
                changed = true;
                run::set_swept(tx, number, Swept::Gone)?;
                sweep(tx, &run, now)?;
            }
            Next::Supersede(swept) => {
                changed = true;
                run::set_swept(tx, number, swept)?;
                superseded::supersede(tx, &run, swept, now)?;
            }
            Next::End(State::Complete) => {
                let Shown {
                    readings,
                    effects,
                    unchanged,
                    ..
                } = shown(tx, run.clone(), 0)?;
                let numbers = json(&progress(run.counts, &readings, &effects, unchanged))?;
                children::done(tx, &run)?;
                let target = &run.target;
                if completion::expects(tx, number, &start::vocabulary_record(&run.thread))? {
                    collection::set_labelled(tx, target)?;
                }
                run::finish(tx, number, &numbers)?;
                return Ok(true);
            }
            Next::End(state) => {
                let why = run.counts.some_failed();
                run::set_state(tx, number, state, &why)?;
                return Ok(true);
            }
        }
    }
}

/// Has the stores forget what is gone from the document.
fn sweep(tx: &Transaction<'_>, run: &Run, now: i64) -> Result<(), StorageError> {
    let gone = children::gone(tx, &run.target, run.number)?;
    if gone.is_empty() {
        return Ok(());
    }
    let topic = retraction::topic(&run.target.workspace, &run.target.flow);
    let whole = superseded::leave_to_others(tx, run, gone.clone(), now)?;
    for (at, chunks) in whole.chunks(RETRACTED).enumerate() {
        let record = ids::of_question("sweep", &format!("{}/{at}", run.thread));
        if let Ok(topic) = &topic {
            let topic = topic.to_string();
            completion::expect(tx, &run.thread, [(record.as_str(), topic.as_str())], now)?;
        }
        let retraction = Retraction {
            number: 0,
            target: run.target.clone(),
            thread: run.thread.clone(),
            record,
            chunks: chunks.to_vec(),
            triples: Vec::new(),
            superseded: Vec::new(),
        };
        outbox::insert(tx, &retraction, None)?;
    }
    children::forget(tx, &run.target, &gone)
}

/// A run with what its books say; nothing of one whose books are closed or not open yet.
pub(super) fn shown(conn: &Connection, run: Run, faults: u32) -> Result<Shown, StorageError> {
    let number = run.number;
    let (readings, effects, unchanged) = match run.state {
        State::Complete | State::Queued | State::Submitted => Default::default(),
        _ => (
            report::readings(conn, number)?,
            report::effects(conn, number)?,
            children::unchanged(conn, &run.target, number)?,
        ),
    };
    let (faults_kept, of_content) = report::faults_kept(conn, number)?;
    Ok(Shown {
        readings,
        effects,
        unchanged,
        faults: report::faults(conn, number, faults)?,
        faults_kept,
        of_content,
        run,
    })
}
