//! Handlers: one file per processor.

mod chunker;
mod document_decoder;

pub(crate) use chunker::Chunker;
pub(crate) use document_decoder::Decoder;
