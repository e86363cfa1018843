//! Removing documents.

use tg_provenance::DocumentFacts;
use tg_schemas::Triple;
use tg_schemas::msg::DocumentMetadata;
use tg_storage::StorageError;
use tg_storage::rusqlite::Transaction;

use super::{children, document, note, outbox, run};
use crate::engine::asker::Asker;
use crate::engine::ids;
use crate::engine::state::State;
use crate::error::missing_document;
use crate::store::runs::{RETRACTED, Retraction, Run, Target};

/// Removes a document with all that was cut from it and its runs; what was processed from it is to be retracted.
pub(super) fn remove(tx: &Transaction<'_>, asker: &Asker, id: &str) -> Result<(), StorageError> {
    if !note(tx, &asker.question)? {
        return Ok(());
    }
    let said = document::get(tx, &asker.workspace, id)?;
    let said = said.map_or_else(Vec::new, |stored| described(&stored.document));
    let gone = document::remove(tx, &asker.workspace, id)?
        .ok_or(StorageError::Refused(missing_document()))?;
    let targets = children::targets_of(tx, &asker.workspace, &gone)?;
    let under_way = end_runs(tx, &asker.workspace, id)?;
    for target in &targets {
        retract(tx, asker, target, &gone, &said, None)?;
    }
    // What is on its way may arrive after that: it is taken back once more at its end.
    for run in under_way {
        retract(tx, asker, &run.target, &gone, &said, Some(run.number))?;
    }
    children::forget_documents(tx, &asker.workspace, &gone)
}

/// Ends a document's runs. Returns those that have records under way.
fn end_runs(
    tx: &Transaction<'_>,
    workspace: &str,
    document: &str,
) -> Result<Vec<Run>, StorageError> {
    let mut under_way = Vec::new();
    for one in run::of_document(tx, workspace, document)? {
        let moves = matches!(
            one.state,
            State::Starting | State::Running | State::Cancelled
        );
        if moves && !one.counts.is_still() {
            run::unlist(tx, one.number)?;
            run::set_state(tx, one.number, State::Cancelled, "the document was removed")?;
            under_way.push(one);
        } else {
            run::delete(tx, one.number)?;
        }
    }
    Ok(under_way)
}

/// What its processing says of a document; nothing of one that is part of another.
fn described(document: &DocumentMetadata) -> Vec<Triple> {
    if !document.parent_id.is_empty() {
        return Vec::new();
    }
    tg_provenance::document(&DocumentFacts {
        id: &document.id,
        title: &document.title,
        kind: &document.kind,
        metadata: &document.metadata,
    })
}

fn retract(
    tx: &Transaction<'_>,
    asker: &Asker,
    target: &Target,
    gone: &[String],
    said: &[Triple],
    after: Option<i64>,
) -> Result<(), StorageError> {
    for (at, chunks) in gone.chunks(RETRACTED).enumerate() {
        let what = format!("{target:?} {after:?} {at} {}", asker.now);
        let retraction = Retraction {
            number: 0,
            target: target.clone(),
            thread: String::new(),
            record: ids::of_question(&what, &asker.question),
            chunks: chunks.to_vec(),
            // What was said of the document itself goes with the first.
            triples: if at == 0 { said.to_vec() } else { Vec::new() },
            superseded: Vec::new(),
        };
        outbox::insert(tx, &retraction, after)?;
    }
    Ok(())
}
