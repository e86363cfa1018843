//! Parts of documents. Their ids follow from their text, so a part that comes again is known, and one whose earlier
//! run is complete costs nothing.

use std::collections::{BTreeMap, HashSet};

use tg_schemas::msg::{ChunkReaders, DocumentMetadata, off_page};
use tg_storage::StorageError;
use tg_storage::rusqlite::Transaction;

use super::children::{Due, Seen};
use super::fingerprints::Known;
use super::{adding, children, document, note, run};
use crate::engine::asker::Asker;
use crate::engine::flow::Flow;
use crate::engine::ids;
use crate::error::{existing_document, invalid, missing_parent};
use crate::store::documents::{Added, New};
use crate::store::runs::Run;

/// Adds one part; another of its id is refused.
pub(super) fn add_child(
    tx: &Transaction<'_>,
    asker: &Asker,
    new: &New,
) -> Result<(), StorageError> {
    if !note(tx, &asker.question)? {
        return Ok(());
    }
    let (document, prepared) = new;
    if let Some(known) = document::get(tx, &asker.workspace, &document.id)?
        && !(adding::has(tx, &known, prepared)? && known.document.parent_id == document.parent_id)
    {
        return Err(StorageError::Refused(existing_document()));
    }
    let run = run_of(tx, asker)?;
    Cutting::new(tx, asker, run.as_ref(), false)?
        .take(0, new)
        .map(|_| ())
}

/// Adds parts. Says what is to be done about them.
pub(super) fn add_children(
    tx: &Transaction<'_>,
    asker: &Asker,
    new: Vec<New>,
    told_apart: bool,
) -> Result<Added, StorageError> {
    let run = run_of(tx, asker)?;
    let mut added = Added::default();
    if asker.in_run() && !run.as_ref().is_some_and(|run| run.state.makes()) {
        added.unchanged = new.into_iter().map(|(document, _)| document).collect();
        return Ok(added);
    }
    let mut cutting = Cutting::new(tx, asker, run.as_ref(), told_apart)?;
    let mut by: BTreeMap<BTreeMap<String, String>, Vec<String>> = BTreeMap::new();
    for (at, child) in new.iter().enumerate() {
        match cutting.take(at, child)? {
            Due::Nothing => added.unchanged.push(child.0.clone()),
            Due::By(readers) if told_apart && !readers.is_empty() => {
                by.entry(readers).or_default().push(child.0.id.clone());
            }
            Due::By(_) => {}
        }
    }
    let readers = by.into_iter();
    added.readers = readers
        .map(|(readers, chunks)| ChunkReaders { chunks, readers })
        .collect();
    Ok(added)
}

/// Forgets parts whose retraction is confirmed; with none, finds those that are gone, where that is certain.
pub(super) fn finish_children(
    tx: &Transaction<'_>,
    asker: &Asker,
    id: &str,
    confirmed: Vec<String>,
) -> Result<Vec<DocumentMetadata>, StorageError> {
    let Some(run) = run_of(tx, asker)?.filter(|run| run.state.makes()) else {
        return Ok(Vec::new());
    };
    let target = &run.target;
    let gone = children::gone(tx, target, run.number)?;
    if !confirmed.is_empty() {
        let gone: HashSet<String> = gone.into_iter().collect();
        let forget: Vec<_> = confirmed
            .into_iter()
            .filter(|child| gone.contains(child))
            .collect();
        children::forget(tx, target, &forget)?;
        return Ok(Vec::new());
    }
    let root = document::get(tx, &target.workspace, &target.document)?;
    let whole =
        target.document == id && root.is_some_and(|root| Flow::enters_as_text(&root.document.kind));
    if !whole {
        return Ok(Vec::new());
    }
    let mut found = Vec::with_capacity(gone.len());
    for child in gone {
        let stored = document::get(tx, &target.workspace, &child)?;
        found.push(stored.map_or_else(
            || DocumentMetadata {
                id: child,
                ..DocumentMetadata::default()
            },
            |stored| stored.document,
        ));
    }
    Ok(found)
}
fn run_of(tx: &Transaction<'_>, asker: &Asker) -> Result<Option<Run>, StorageError> {
    if !asker.in_run() {
        return Ok(None);
    }
    let run = run::by_thread(tx, &asker.thread)?;
    Ok(run.filter(|run| run.target.workspace == asker.workspace))
}

/// Takes children of one request.
struct Cutting<'a, 'b> {
    tx: &'a Transaction<'b>,
    workspace: &'a str,
    run: Option<(&'a Run, i64)>,
    /// Whoever asks tells processors apart that read a chunk.
    told_apart: bool,
    known: Known<'a>,
    parents: HashSet<String>,
}

impl<'a, 'b> Cutting<'a, 'b> {
    fn new(
        tx: &'a Transaction<'b>,
        asker: &'a Asker,
        run: Option<&'a Run>,
        told_apart: bool,
    ) -> Result<Self, StorageError> {
        let run = match run {
            Some(run) => Some((run, children::number(tx, &run.target)?)),
            None => None,
        };
        Ok(Self {
            tx,
            workspace: &asker.workspace,
            run,
            told_apart,
            known: Known::new(tx),
            parents: HashSet::new(),
        })
    }

    /// Takes one. Says what is to be done about it.
    fn take(&mut self, at: usize, (document, prepared): &New) -> Result<Due, StorageError> {
        let (tx, workspace) = (self.tx, self.workspace);
        if !self.parents.contains(&document.parent_id) {
            if !document::exists(tx, workspace, &document.parent_id)? {
                return Err(StorageError::Refused(missing_parent()));
            }
            self.parents.insert(document.parent_id.clone());
        }
        // Where it stands is read with it: below another heading it is told anew. On another page it says the same.
        let place = |document: &DocumentMetadata| off_page(&document.comments).0.into_owned();
        let mut same = false;
        match document::get(tx, workspace, &document.id)? {
            None => adding::insert(tx, workspace, document, prepared)?,
            Some(known) if known.document.parent_id.is_empty() => {
                let text = format!("document-metadatas[{at}].id: is a document of its own");
                return Err(StorageError::Refused(invalid(text)));
            }
            Some(known) => {
                let has = adding::has(tx, &known, prepared)?;
                if !has {
                    document::set_content(tx, &known, prepared)?;
                }
                same = has && place(&known.document) == place(document);
                if known.document.title != document.title
                    || known.document.comments != document.comments
                    || known.document.metadata != document.metadata
                {
                    document::update(tx, workspace, document)?;
                }
                if known.document.parent_id != document.parent_id {
                    document::set_parent(tx, known.number, &document.parent_id)?;
                }
            }
        }
        let Some((run, target)) = self.run else {
            return Ok(Due::By(BTreeMap::new()));
        };
        let seen = Seen {
            target,
            child: &document.id,
            run: run.number,
            fingerprints: run.fingerprints,
            says: ids::fingerprint(&format!("{} {}", prepared.hash, place(document))),
            same,
            told_apart: self.told_apart && document.document_type == "chunk",
        };
        children::see(tx, &mut self.known, seen)
    }
}
