//! Adding documents.

use tg_schemas::msg::DocumentMetadata;
use tg_storage::StorageError;
use tg_storage::rusqlite::Transaction;

use super::{content, document, note};
use crate::engine::asker::Asker;
use crate::error::{existing_document, invalid};
use crate::store::documents::{New, Prepared};

/// Documents that are a few rows: the texts of a step are two.
const FEW: usize = 4;

/// How much is written to add documents. Of many, each looks for its content in a page of its own.
pub(super) fn bytes(new: &[New]) -> usize {
    let of_one = |(document, prepared): &New| {
        let said = [&document.id, &document.title, &document.comments];
        let said: usize = said.iter().map(|text| text.len()).sum();
        said + prepared.body.as_ref().map_or(0, Vec::len)
    };
    match new.len() <= FEW && new.iter().all(|(document, _)| is_plain(document)) {
        true => new.iter().map(of_one).sum(),
        false => usize::MAX,
    }
}

/// Whether nothing of unknown length is said of a document.
fn is_plain(document: &DocumentMetadata) -> bool {
    document.metadata.is_empty() && document.tags.is_empty()
}

/// Adds a document that is not there yet. A request that is repeated with the same content and metadata changes nothing.
pub(super) fn add_new(
    tx: &Transaction<'_>,
    asker: &Asker,
    (document, prepared): &New,
) -> Result<(), StorageError> {
    if !note(tx, &asker.question)? {
        return Ok(());
    }
    match document::get(tx, &asker.workspace, &document.id)? {
        None => insert(tx, &asker.workspace, document, prepared),
        Some(known) if is_same(tx, &known, document, prepared)? => Ok(()),
        Some(_) => Err(StorageError::Refused(existing_document())),
    }
}

/// Adds those that are not there. Returns those of the others that have other content.
pub(super) fn add_all(
    tx: &Transaction<'_>,
    workspace: &str,
    new: &[New],
) -> Result<Vec<DocumentMetadata>, StorageError> {
    let mut others = Vec::new();
    for (document, prepared) in new {
        match document::get(tx, workspace, &document.id)? {
            None => insert(tx, workspace, document, prepared)?,
            Some(known) if has(tx, &known, prepared)? => {}
            Some(known) => others.push(known.document),
        }
    }
    Ok(others)
}

/// Adds a document, or gives the one that is there its content.
pub(super) fn ensure(
    tx: &Transaction<'_>,
    asker: &Asker,
    (document, prepared): &New,
) -> Result<(), StorageError> {
    if !note(tx, &asker.question)? {
        return Ok(());
    }
    match document::get(tx, &asker.workspace, &document.id)? {
        None => insert(tx, &asker.workspace, document, prepared),
        Some(known) if has(tx, &known, prepared)? => Ok(()),
        Some(known) if known.document.kind != document.kind => {
            let text = "document-metadata.kind: the document exists with another kind";
            Err(StorageError::Refused(invalid(text)))
        }
        Some(known) => document::set_content(tx, &known, prepared),
    }
}

/// Overwrites a document's metadata, and its content if some is given. `false`: there is none.
pub(super) fn update(
    tx: &Transaction<'_>,
    workspace: &str,
    document: &DocumentMetadata,
    content: Option<&Prepared>,
) -> Result<bool, StorageError> {
    if !document::update(tx, workspace, document)? {
        return Ok(false);
    }
    if let Some(prepared) = content
        && let Some(known) = document::get(tx, workspace, &document.id)?
        && !has(tx, &known, prepared)?
    {
        document::set_content(tx, &known, prepared)?;
    }
    Ok(true)
}

/// Adds a row with its content.
pub(super) fn insert(
    tx: &Transaction<'_>,
    workspace: &str,
    document: &DocumentMetadata,
    prepared: &Prepared,
) -> Result<(), StorageError> {
    let number = content::acquire(tx, prepared)?;
    document::insert(tx, workspace, document, number)
}

/// Whether a document has this content.
pub(super) fn has(
    tx: &Transaction<'_>,
    known: &document::Stored,
    prepared: &Prepared,
) -> Result<bool, StorageError> {
    Ok(content::hash(tx, known.content)? == Some(prepared.hash))
}

/// Whether a document is what a request would add. Its time is not compared: the server sets it where the request has none.
/// Of answers, whose ids follow from their questions, only kind and content count.
fn is_same(
    tx: &Transaction<'_>,
    known: &document::Stored,
    new: &DocumentMetadata,
    prepared: &Prepared,
) -> Result<bool, StorageError> {
    let there = &known.document;
    let described = there.title == new.title
        && there.comments == new.comments
        && there.metadata == new.metadata
        && there.tags == new.tags
        && there.parent_id == new.parent_id;
    Ok(there.kind == new.kind
        && there.document_type == new.document_type
        && (described || new.document_type == "answer")
        && has(tx, known, prepared)?)
}
