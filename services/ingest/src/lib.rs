//! Documents to pages and chunks.
//!
//! * `document-decoder`: PDF to pages; HTML, Word, Markdown, CSV, JSON and plain text to sections.
//! * `chunker`: text to chunks.
//!
//! Both keep what they make in the library, describe it in the graph and hand it on, a batch at a time. Ids
//! follow from content, so doing it again makes the same things again. Formats that need a parser are taken
//! apart in a child process ([`decode::run`]). Nothing is kept here.

mod child;
mod chunker;
pub mod decode;
mod decoder;
mod engine;
mod fault;
mod options;
mod parts;
mod source;

use tg_mesh::{Mesh, Processor};

pub use options::Options;

/// Documents of one flow that are taken apart at once.
const DOCUMENTS: usize = 4;
/// Texts of one flow that are cut at once.
const TEXTS: usize = 16;

/// The processors of this service.
pub fn processors(_: &Mesh, options: Options) -> Vec<Processor> {
    let types = ["collection"];
    vec![
        Processor::new("document-decoder")
            .reads("input", decoder::Decoder::new(options))
            .watches(&types)
            .concurrency(DOCUMENTS),
        Processor::new("chunker")
            .reads("input", chunker::Chunker::new())
            .watches(&types)
            .concurrency(TEXTS),
    ]
}

/// The time for provenance.
fn now() -> String {
    chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Micros, true)
}
