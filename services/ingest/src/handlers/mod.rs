//! Handlers: one file per processor.

mod chunker;
mod document_decoder;

pub(crate) use chunker::Chunker;
pub(crate) use document_decoder::Decoder;

/// The time for provenance.
fn now() -> String {
    chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Micros, true)
}
