//! The chunk that a record carries, as extractors see it.

use tg_mesh::Cx;
use tg_runs::RunContext;
use tg_schemas::determinants::Determinants;
use tg_schemas::msg::{Chunk, Metadata, in_context};

use crate::engine::Source;
use crate::error::ExtractError;

/// A chunk with something to read.
pub(crate) struct Piece {
    pub(crate) source: Source,
    pub(crate) text: String,
    /// The text below where it stands, for models.
    pub(crate) read: String,
}

/// Takes a record apart. `None` when there is nothing to do: what this extractor makes of it is there, it has no text, or
/// its collection is no more.
pub(crate) fn piece(
    cx: &Cx,
    by: &Determinants,
    chunk: Chunk,
) -> Result<Option<Piece>, ExtractError> {
    let Some(fingerprint) = chunk.fingerprint(by.processor).map(str::to_owned) else {
        return Ok(None);
    };
    let metadata = chunk.metadata.unwrap_or_default();
    let id = if chunk.document_id.is_empty() {
        metadata.id.clone()
    } else {
        chunk.document_id
    };
    cx.subject(&id);
    if id.is_empty() {
        return Err(ExtractError::NoId);
    }
    let blank = !chunk.chunk.chars().any(char::is_alphanumeric);
    if blank || !cx.is_current(&metadata.collection) {
        return Ok(None);
    }
    let metadata = Metadata {
        id: id.clone(),
        ..metadata
    };
    Ok(Some(Piece {
        source: Source {
            chunk: id,
            metadata,
            fingerprint,
        },
        read: in_context(&chunk.context, &chunk.chunk).into_owned(),
        text: chunk.chunk,
    }))
}
