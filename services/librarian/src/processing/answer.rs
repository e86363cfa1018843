//! How runs are shown to clients.

use tg_schemas::Error;
use tg_schemas::msg::ProcessingMetadata;

use crate::engine::asker::Asker;
use crate::engine::progress::progress;
use crate::engine::state::State;
use crate::error::{missing_processing, wire};
use crate::librarian::Librarian;
use crate::store::runs::Shown;
use tg_schemas::paging::{Asked, Page};

/// Errors shown of one run.
const ERRORS: u32 = 100;
/// Errors shown of each run in a list.
const ERRORS_IN_LIST: u32 = 5;
/// Runs looked at in one step of a listing.
const STRIDE: u32 = 256;

impl Librarian {
    /// The processing of a workspace, or a page of it.
    pub(crate) async fn list_processing(
        &self,
        asker: &Asker,
        asked: Asked,
    ) -> Result<Page<ProcessingMetadata>, Error> {
        let mut after = asked.after_as()?.unwrap_or(0);
        let mut page = Page::new(asked);
        loop {
            let found = self
                .rows()
                .shown_after(&asker.workspace, after, STRIDE, ERRORS_IN_LIST);
            let found = found.await.map_err(wire)?;
            let Some(last) = found.last() else {
                return Ok(page);
            };
            after = last.run.number;
            for one in found {
                if page.is_full() {
                    return Ok(page);
                }
                page.add(one.run.number, show(one))?;
            }
        }
    }

    /// One processing with its errors.
    pub(crate) async fn processing_status(
        &self,
        asker: &Asker,
        id: &str,
    ) -> Result<ProcessingMetadata, Error> {
        let found = self.rows().shown(&asker.workspace, id, ERRORS);
        let found = found.await.map_err(wire)?;
        found.map(show).ok_or_else(missing_processing)
    }
}

/// A run as clients see it.
pub(super) fn show(shown: Shown) -> ProcessingMetadata {
    let run = shown.run;
    let progress = match run.state {
        State::Complete => serde_json::from_str(&run.summary).unwrap_or_default(),
        State::Queued | State::Submitted => Default::default(),
        _ => progress(run.counts, &shown.readings, &shown.effects, shown.unchanged),
    };
    let error = match run.state {
        State::Running if run.counts.failed > 0 => run.counts.some_failed(),
        _ => run.why,
    };
    ProcessingMetadata {
        id: run.processing,
        document_id: run.target.document,
        time: run.time,
        flow: run.target.flow,
        collection: run.target.collection,
        tags: run.tags,
        status: run.state.status().to_owned(),
        error,
        progress,
        errors: shown.faults,
    }
}
