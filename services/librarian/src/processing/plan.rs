//! Decides, in one step of the store, how a run starts.

use tg_storage::StorageError;
use tg_storage::rusqlite::Transaction;

use crate::config::Snapshot;
use crate::engine::flow::Flow;
use crate::engine::start::{self, Record, Subject};
use crate::engine::state::State;
use crate::store::run::{self, Run};
use crate::store::{collection, document, tally};

/// What a run needs to start.
pub(super) enum Plan {
    /// These records are to be published.
    Publish(Run, Vec<Record>, Labels),
    /// Nothing: it waits, or it is over.
    Nothing,
}

/// Whether the first records name the vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Labels(pub(super) bool);

/// Plans a run that is queued or was starting. `tracked` says whether anybody will tell how far it is.
pub(super) fn plan(
    tx: &Transaction<'_>,
    number: i64,
    snapshot: &Snapshot,
    tracked: bool,
    now: i64,
) -> Result<Plan, StorageError> {
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
    if !begins && run.epoch != snapshot.flow.epoch {
        run::set_state(tx, number, State::Stopped, "the flow was started anew")?;
        return Ok(Plan::Nothing);
    }
    let target = &run.target;
    let Some(stored) = document::get(tx, &target.workspace, &target.document)? else {
        run::set_state(tx, number, State::Dropped, "the document was removed")?;
        return Ok(Plan::Nothing);
    };
    let labelled = collection::get(tx, &target.workspace, &target.collection)?;
    let labels = labelled.is_none_or(|known| known.labelled != target.incarnation);
    let subject = Subject {
        thread: &run.thread,
        document: &stored.document,
        collection: &target.collection,
        labels,
    };
    let records = match start::records(subject, &snapshot.flow, &target.flow) {
        Ok(records) => records,
        Err(error) => {
            run::set_state(tx, number, State::Stopped, &error.message)?;
            return Ok(Plan::Nothing);
        }
    };
    if begins {
        run::begin(tx, number, snapshot.flow.epoch, &snapshot.wiring)?;
        if tracked {
            let written = records
                .iter()
                .map(|record| (record.id.as_str(), record.topic.as_str()));
            tally::expect(tx, &run.thread, written, now)?;
        }
    }
    let run = run::get(tx, number)?.ok_or(StorageError::NoRow)?;
    Ok(Plan::Publish(run, records, Labels(labels)))
}

/// Whether a flow is the one a run started under.
pub(super) fn goes_on(run: &Run, flow: Option<&Flow>) -> bool {
    match (run.state, flow) {
        (_, None) => false,
        (State::Queued, Some(_)) => true,
        (_, Some(flow)) => flow.is_start(run.epoch),
    }
}
