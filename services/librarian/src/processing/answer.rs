//! How runs are shown to clients.

use tg_schemas::Error;
use tg_schemas::msg::ProcessingMetadata;
use tg_storage::StorageError;
use tg_storage::rusqlite::Connection;

use crate::engine::page::{Asked, Page};
use crate::engine::progress::progress;
use crate::engine::state::State;
use crate::fault::missing_processing;
use crate::library::Asker;
use crate::service::Librarian;
use crate::store::run::{self, Run};
use crate::store::{book, from_json, made};

/// Errors shown of one run.
const ERRORS: u32 = 100;
/// Errors shown of each run in a list.
const ERRORS_IN_LIST: u32 = 5;

impl Librarian {
    /// The processing of a workspace, or a page of it.
    pub(crate) async fn list_processing(
        &self,
        asker: &Asker,
        asked: Asked,
    ) -> Result<Page<ProcessingMetadata>, Error> {
        let workspace = asker.workspace.clone();
        self.library
            .read(move |conn| {
                let mut page = Page::new(asked);
                for run in run::list(conn, &workspace, asked.after)? {
                    if page.is_full() {
                        break;
                    }
                    let number = run.number;
                    let shown = show(conn, run, ERRORS_IN_LIST)?;
                    page.push(number, shown).map_err(StorageError::Refused)?;
                }
                Ok(page)
            })
            .await
    }

    /// One processing with its errors.
    pub(crate) async fn processing_status(
        &self,
        asker: &Asker,
        id: &str,
    ) -> Result<ProcessingMetadata, Error> {
        let (workspace, id) = (asker.workspace.clone(), id.to_owned());
        self.library
            .read(move |conn| one(conn, &workspace, &id))
            .await
    }
}

/// One processing as it stands.
pub(super) fn one(
    conn: &Connection,
    workspace: &str,
    id: &str,
) -> Result<ProcessingMetadata, StorageError> {
    let run = run::listed(conn, workspace, id)?;
    let run = run.ok_or_else(|| StorageError::Refused(missing_processing()))?;
    show(conn, run, ERRORS)
}

/// A run as clients see it.
pub(super) fn show(
    conn: &Connection,
    run: Run,
    errors: u32,
) -> Result<ProcessingMetadata, StorageError> {
    let progress = match run.state {
        State::Complete => from_json(&run.summary),
        State::Queued | State::Submitted => Default::default(),
        _ => numbers(conn, &run)?,
    };
    let errors = book::faults(conn, run.number, errors)?;
    let error = match run.state {
        State::Running if run.counts.failed > 0 => some_failed(&run),
        _ => run.why,
    };
    Ok(ProcessingMetadata {
        id: run.processing,
        document_id: run.target.document,
        time: run.time,
        flow: run.target.flow,
        collection: run.target.collection,
        tags: run.tags,
        status: run.state.status().to_owned(),
        error,
        progress,
        errors,
    })
}

/// How far a run is.
pub(super) fn numbers(
    conn: &Connection,
    run: &Run,
) -> Result<std::collections::BTreeMap<String, i64>, StorageError> {
    let readings = book::readings(conn, run.number)?;
    let effects = book::effects(conn, run.number)?;
    let unchanged = made::unchanged(conn, &run.target, run.number)?;
    Ok(progress(run.counts, &readings, &effects, unchanged))
}

/// What is said of a run in which something failed.
pub(super) fn some_failed(run: &Run) -> String {
    let (failed, all) = (run.counts.failed, run.counts.expected);
    format!("{failed} of {all} records failed; retry-processing tries them again")
}
