//! How runs are shown to clients.

use std::collections::BTreeMap;

use tg_schemas::Error;
use tg_schemas::msg::ProcessingMetadata;

use crate::engine::asker::Asker;
use crate::engine::progress::{Reading, progress};
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

/// The operation that tries again what failed.
const RETRY: &str = "retry-processing";

/// A run as clients see it. One that failed at some records, but of which more than half of the chunks went through
/// everything, is complete, with warnings.
pub(super) fn show(shown: Shown) -> ProcessingMetadata {
    let errors_total = shown.run.counts.failed.max(shown.faults_kept);
    let helps = retry_helps(&shown);
    let run = shown.run;
    let progress = match run.state {
        State::Complete => serde_json::from_slice(run.summary.as_bytes()).unwrap_or_default(),
        State::Queued | State::Submitted => Default::default(),
        _ => progress(run.counts, &shown.readings, &shown.effects, shown.unchanged),
    };
    let complete = match run.state {
        State::Failed => mostly_done(&progress, &shown.readings),
        state => state == State::Complete,
    };
    let error = match run.state {
        _ if complete => String::new(),
        State::Running | State::Failed if run.counts.failed > 0 => run.counts.some_failed(),
        _ => run.why,
    };
    let state = if complete { State::Complete } else { run.state };
    ProcessingMetadata {
        id: run.processing,
        document_id: run.target.document,
        time: run.time,
        flow: run.target.flow,
        collection: run.target.collection,
        tags: run.tags,
        status: state.status().to_owned(),
        error,
        progress,
        errors: shown.faults,
        errors_total,
        warnings: if complete { errors_total } else { 0 },
        retry: if helps { RETRY } else { "" }.to_owned(),
    }
}

/// Whether more than half of the chunks went through all who read them, and so did more than half of whatever else is
/// made of the document: pages before them, triples and vectors behind them. The document itself is read once, and
/// handed on as far as it can be read.
fn mostly_done(progress: &BTreeMap<String, i64>, readings: &[Reading]) -> bool {
    let count = |key: &str| progress.get(key).copied().unwrap_or(0);
    let made = |one: &&Reading| one.expected > 0 && one.reader.message() != "Document";
    let half = |one: &Reading| one.done > one.expected / 2;
    count("chunks") > count("chunks-total") / 2 && readings.iter().filter(made).all(half)
}

/// Whether another try can do better: what the document lacks it will lack again.
fn retry_helps(shown: &Shown) -> bool {
    match shown.run.state {
        State::Failed => {
            let failed = shown.run.counts.failed;
            failed == 0 || failed > shown.of_content
        }
        State::Stopped | State::Dropped => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::readers::Reader;

    #[test]
    fn what_is_mostly_done_is_complete() {
        let reading = |(expected, done)| Reading {
            reader: Reader {
                topic: String::new(),
                subscription: String::new(),
            },
            expected,
            done,
            failed: 0,
        };
        let with = |chunks, total, others: &[(i64, i64)]| {
            let told = [("chunks", chunks), ("chunks-total", total)];
            let told = told.map(|(key, count)| (key.to_owned(), count)).into();
            let others: Vec<Reading> = others.iter().copied().map(reading).collect();
            mostly_done(&told, &others)
        };
        let mostly = |chunks, total| with(chunks, total, &[]);
        assert!(mostly(3, 4) && mostly(1, 1));
        assert!(!mostly(2, 4) && !mostly(0, 1) && !mostly(0, 0));
        // What stores have of it counts, too, and so do pages of which no chunk came.
        assert!(with(4, 4, &[(100, 51), (0, 0), (1, 1)]));
        assert!(!with(4, 4, &[(100, 0)]) && !with(1, 1, &[(100, 1)]));
    }
}
