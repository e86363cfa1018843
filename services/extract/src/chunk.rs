//! The chunk that a record carries, as extractors see it.

use tg_mesh::{ConsumeError, Cx};
use tg_runs::RunContext;
use tg_schemas::msg::{Chunk, Metadata};
use tg_schemas::{Error, ErrorCode};

use crate::engine::Source;

/// A chunk with something to read.
pub(super) struct Piece {
    pub(super) source: Source,
    pub(super) text: String,
}

/// Takes a record apart. `None` when there is nothing to do: no text, or its collection is no more.
pub(super) fn piece(cx: &Cx, chunk: Chunk) -> Result<Option<Piece>, ConsumeError> {
    let metadata = chunk.metadata.unwrap_or_default();
    let id = if chunk.document_id.is_empty() {
        metadata.id.clone()
    } else {
        chunk.document_id
    };
    cx.subject(&id);
    if id.is_empty() {
        let fault = Error::new(ErrorCode::BadRequest, "document_id: the chunk has no id");
        return Err(ConsumeError::Dead(fault));
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
        },
        text: chunk.chunk,
    }))
}
