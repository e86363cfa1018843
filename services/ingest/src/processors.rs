//! The processors `document-decoder` and `chunker`.

use tg_mesh::{Mesh, Processor};
use tg_schemas::processors::{chunker, document_decoder};

use crate::handlers::{Chunker, Decoder};
use crate::options::Options;

/// Documents of one flow that are taken apart at once.
const DOCUMENTS: usize = 4;
/// Texts of one flow that are cut at once.
const TEXTS: usize = 16;

/// The processors of this service, to be hosted.
pub fn processors(_: &Mesh, options: Options) -> Vec<Processor> {
    let types = ["collection"];
    vec![
        Processor::new(document_decoder::PROCESSOR)
            .reads(document_decoder::INPUT, Decoder::new(options))
            .watches(&types)
            .concurrency(DOCUMENTS),
        Processor::new(chunker::PROCESSOR)
            .reads(chunker::INPUT, Chunker::new())
            .watches(&types)
            .concurrency(TEXTS),
    ]
}
