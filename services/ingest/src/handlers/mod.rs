//! Handlers: one file per processor.

mod chunker;
mod document_decoder;
mod measure;

pub(crate) use chunker::Chunker;
pub(crate) use document_decoder::Decoder;
pub(crate) use measure::Measure;
