//! The processors `document-decoder` and `chunker`.

use std::sync::Arc;

use tg_mesh::{Mesh, Processor};
use tg_schemas::processors::{chunker, document_decoder};

use crate::child::Children;
use crate::handlers::{Chunker, Decoder, Measure};
use crate::options::Options;

/// Documents of one flow that are taken apart at once.
const DOCUMENTS: usize = 4;
/// Texts of one flow that are cut at once.
const TEXTS: usize = 16;

/// The processors of this service, to be hosted.
pub fn processors(_: &Mesh, options: Options) -> Vec<Processor> {
    let types = ["collection"];
    let children = Arc::new(Children::new(options));
    vec![
        Processor::new(document_decoder::PROCESSOR)
            .reads(document_decoder::INPUT, Decoder::new(children.clone()))
            .watches(&types)
            .concurrency(DOCUMENTS),
        Processor::new(chunker::PROCESSOR)
            .reads(chunker::INPUT, Chunker::new())
            .serves(chunker::MEASURE, Measure::new(children))
            .watches(&types)
            .concurrency(TEXTS),
    ]
}
