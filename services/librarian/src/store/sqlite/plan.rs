//! Decides, in one step of the store, how a run starts.

use tg_storage::StorageError;
use tg_storage::rusqlite::Transaction;

use super::run::Beginning;
use super::{collection, completion, content, document, fingerprints, run};
use crate::engine::ids;
use crate::engine::start::{self, Subject};
use crate::engine::state::State;
use crate::store::runs::{Plan, Start};

/// Plans a run that is queued or was starting.
pub(super) fn plan(tx: &Transaction<'_>, number: i64, on: &Start) -> Result<Plan, StorageError> {
    let Some(run) = run::get(tx, number)? else {
        return Ok(Plan::Nothing);
    };
    let begins = match run.state {
        State::Queued => true,
        State::Starting => false,
        _ => return Ok(Plan::Nothing),
    };
    if begins && run::has_to_wait(tx, &run)? {
        let why = "waits for another run of this document into this collection";
        run::set_state(tx, number, State::Queued, why)?;
        return Ok(Plan::Nothing);
    }
    if !begins && run.epoch != on.flow.epoch {
        run::set_state(tx, number, State::Stopped, "the flow was started anew")?;
        return Ok(Plan::Nothing);
    }
    let target = &run.target;
    let Some(stored) = document::get(tx, &target.workspace, &target.document)? else {
        run::set_state(tx, number, State::Dropped, "the document was removed")?;
        return Ok(Plan::Nothing);
    };
    let labels = match begins || !on.tracked {
        true => collection::get(tx, &target.workspace, &target.collection)?
            .is_none_or(|known| known.labelled != target.generation),
        // The same records again, whatever became of others meanwhile.
        false => completion::expects(tx, number, &start::vocabulary_record(&run.thread))?,
    };
    let subject = Subject {
        thread: &run.thread,
        document: &stored.document,
        collection: &target.collection,
        labels,
    };
    let records = match start::records(subject, &on.flow, &target.flow) {
        Ok(records) => records,
        Err(error) => {
            run::set_state(tx, number, State::Stopped, &error.message)?;
            return Ok(Plan::Nothing);
        }
    };
    if begins {
        let hash = content::hash(tx, stored.content)?;
        let with = Beginning {
            epoch: on.flow.epoch,
            wiring: &on.wiring,
            fingerprints: fingerprints::number(tx, &on.fingerprints)?,
            content: hash.map_or(0, |hash| ids::fingerprint(&hash.to_string())),
        };
        run::begin(tx, number, with)?;
        if on.tracked {
            let written = records
                .iter()
                .map(|record| (record.id.as_str(), record.topic.as_str()));
            completion::expect(tx, &run.thread, written, on.now)?;
            let triples = records.iter().map(start::Record::triples).sum();
            completion::made(tx, number, "triples", triples)?;
        }
    }
    let run = run::get(tx, number)?.ok_or(StorageError::Missing)?;
    Ok(Plan::Publish(Box::new(run), records))
}
