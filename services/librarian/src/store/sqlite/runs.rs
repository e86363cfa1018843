//! Runs in their tables.

use async_trait::async_trait;
use tg_schemas::msg::RunTallyEntry;
use tg_storage::StorageError;
use tg_storage::rusqlite::Transaction;

use super::{
    SqliteLibrary, children, collection, document, note, outbox, plan, processed, report, retry,
    run,
};
use super::{completion, settle};
use crate::engine::asker::Asker;
use crate::engine::state::{State, cancelled};
use crate::error::{existing_processing, missing_document, missing_processing};
use crate::store::runs::{
    Pair, Plan, Processed, Retraction, Run, RunStore, Selector, Shown, Start, Target, Wanted,
};

#[async_trait]
impl RunStore for SqliteLibrary {
    async fn note_run(&self, asker: &Asker, wanted: Wanted) -> Result<Run, StorageError> {
        let asker = asker.clone();
        self.write(move |tx| {
            let processing = &wanted.processing;
            let known = run::listed(tx, &asker.workspace, &processing.id)?;
            let new = note(tx, &asker.question)?;
            match known {
                Some(known) if !new => return Ok(known),
                Some(known) if known.is_for(&wanted) && processed::is_current(tx, &known)? => {
                    return Ok(known);
                }
                Some(_) => return Err(StorageError::Refused(existing_processing())),
                None => {}
            }
            if !document::exists(tx, &asker.workspace, &processing.document_id)? {
                return Err(StorageError::Refused(missing_document()));
            }
            run::insert(tx, &wanted, asker.now)
        })
        .await
    }

    async fn replace_run(
        &self,
        number: i64,
        wanted: Wanted,
        now: i64,
    ) -> Result<Run, StorageError> {
        self.write(move |tx| {
            run::delete(tx, number)?;
            match run::listed(tx, &wanted.workspace, &wanted.processing.id)? {
                Some(other) => Ok(other),
                None => run::insert(tx, &wanted, now),
            }
        })
        .await
    }

    async fn run(&self, number: i64) -> Result<Option<Run>, StorageError> {
        self.read(move |conn| run::get(conn, number)).await
    }

    async fn live_runs(&self, after: i64, most: u32) -> Result<Vec<Run>, StorageError> {
        self.read(move |conn| run::live(conn, after, most)).await
    }

    async fn shown(
        &self,
        workspace: &str,
        processing: &str,
        faults: u32,
    ) -> Result<Option<Shown>, StorageError> {
        let (workspace, processing) = (workspace.to_owned(), processing.to_owned());
        self.read(move |conn| {
            let run = run::listed(conn, &workspace, &processing)?;
            run.map(|run| settle::shown(conn, run, faults)).transpose()
        })
        .await
    }

    async fn shown_after(
        &self,
        workspace: &str,
        after: i64,
        most: u32,
        faults: u32,
    ) -> Result<Vec<Shown>, StorageError> {
        let workspace = workspace.to_owned();
        self.read(move |conn| {
            let runs = run::list(conn, &workspace, after, most)?.into_iter();
            runs.map(|run| settle::shown(conn, run, faults)).collect()
        })
        .await
    }

    async fn shown_last(
        &self,
        workspace: &str,
        flow: &str,
        most: u32,
    ) -> Result<Vec<Shown>, StorageError> {
        let (workspace, flow) = (workspace.to_owned(), flow.to_owned());
        self.read(move |conn| {
            let runs = run::last(conn, &workspace, &flow, most)?.into_iter();
            runs.map(|run| settle::shown(conn, run, 0)).collect()
        })
        .await
    }

    async fn open_pairs(&self, number: i64, most: u32) -> Result<Vec<Pair>, StorageError> {
        self.read(move |conn| report::open_pairs(conn, number, most))
            .await
    }

    async fn plan(&self, number: i64, start: Start) -> Result<Plan, StorageError> {
        self.write(move |tx| plan::plan(tx, number, &start)).await
    }

    async fn started(&self, run: &Run, state: State) -> Result<(), StorageError> {
        let (number, target) = (run.number, run.target.clone());
        self.write(move |tx| {
            if state == State::Submitted {
                collection::set_labelled(tx, &target)?;
            }
            // It may have been taken back meanwhile.
            change_state(tx, number, State::Starting, state, "")
        })
        .await
    }

    async fn change_state(
        &self,
        number: i64,
        from: State,
        to: State,
        why: &str,
    ) -> Result<(), StorageError> {
        let why = why.to_owned();
        self.write(move |tx| change_state(tx, number, from, to, &why))
            .await
    }

    async fn revive(&self, number: i64, epoch: u64) -> Result<(), StorageError> {
        self.write(move |tx| run::revive(tx, number, epoch)).await
    }

    async fn take_back(
        &self,
        asker: &Asker,
        processing: &str,
    ) -> Result<Option<(Shown, Option<i64>)>, StorageError> {
        let (asker, processing) = (asker.clone(), processing.to_owned());
        self.write(move |tx| {
            let known = run::listed(tx, &asker.workspace, &processing)?;
            let new = note(tx, &asker.question)?;
            let Some(run) = known else {
                return match new {
                    true => Err(StorageError::Refused(missing_processing())),
                    false => Ok(None),
                };
            };
            children::undone(tx, &run.target)?;
            let (number, counts) = (run.number, run.counts);
            let moves = matches!(run.state, State::Starting | State::Running);
            let stood = settle::shown(tx, run, 0)?;
            if !moves || counts.is_still() {
                run::delete(tx, number)?;
                return Ok(Some((stood, None)));
            }
            let left = counts.expected - counts.settled;
            run::unlist(tx, number)?;
            run::set_state(tx, number, State::Cancelled, &cancelled(left))?;
            Ok(Some((stood, Some(left))))
        })
        .await
    }

    async fn processed(
        &self,
        workspace: &str,
        of: &Selector,
        after: i64,
        most: u32,
    ) -> Result<Vec<Processed>, StorageError> {
        let (workspace, of) = (workspace.to_owned(), of.clone());
        self.read(move |conn| processed::list(conn, &workspace, &of, after, most))
            .await
    }

    async fn do_again(&self, target: &Target) -> Result<(), StorageError> {
        let target = target.clone();
        self.write(move |tx| children::undone(tx, &target)).await
    }

    async fn delete_run(&self, number: i64) -> Result<(), StorageError> {
        self.write(move |tx| run::delete(tx, number)).await
    }

    async fn hear(&self, entries: Vec<RunTallyEntry>, now: i64) -> Result<bool, StorageError> {
        self.write(move |tx| {
            let mut changed = false;
            for number in completion::apply(tx, &entries, now)? {
                changed |= settle::settle(tx, number, now)?;
            }
            Ok(changed)
        })
        .await
    }

    async fn settle(&self, number: i64, now: i64) -> Result<bool, StorageError> {
        self.write(move |tx| settle::settle(tx, number, now)).await
    }

    async fn reopen_record(&self, number: i64, pair: &Pair) -> Result<(), StorageError> {
        let Pair {
            record,
            subscription,
        } = pair.clone();
        self.write(move |tx| retry::reopen(tx, number, &record, &subscription))
            .await
    }

    async fn close_record(&self, number: i64, pair: &Pair, why: &str) -> Result<(), StorageError> {
        let Pair {
            record,
            subscription,
        } = pair.clone();
        let why = why.to_owned();
        self.write(move |tx| retry::close(tx, number, &record, &subscription, &why))
            .await
    }

    async fn due_retractions(
        &self,
        after: i64,
        most: u32,
    ) -> Result<Vec<Retraction>, StorageError> {
        self.read(move |conn| outbox::due(conn, after, most)).await
    }

    async fn remove_retraction(&self, number: i64) -> Result<(), StorageError> {
        self.write(move |tx| outbox::remove(tx, number)).await
    }
}

fn change_state(
    tx: &Transaction<'_>,
    number: i64,
    from: State,
    to: State,
    why: &str,
) -> Result<(), StorageError> {
    match run::get(tx, number)? {
        Some(now) if now.state == from => run::set_state(tx, number, to, why),
        _ => Ok(()),
    }
}
