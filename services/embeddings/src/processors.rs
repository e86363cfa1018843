//! The processors of this service: `embeddings`, which answers, and the stages, which ask it.

use std::sync::Arc;

use tg_mesh::{Mesh, Processor};
use tg_schemas::processors::{
    self, ProcessorSpec, document_embeddings, graph_embeddings, row_embeddings,
};
use tg_settings::Fault;

use crate::engine::schema;
use crate::handlers::batch::Batcher;
use crate::handlers::{chunks, embeddings, entities, rows};
use crate::options::Options;

/// Requests in progress per flow.
const REQUESTS: usize = 256;
/// Records in progress; most of them wait to share a question.
const RECORDS: usize = 256;

/// The processors of this service, to be hosted; the last one is `embeddings`. Reads a static model's files (blocks);
/// opens no connection.
///
/// # Errors
/// The mistake in the options because of which the provider cannot be asked.
pub fn processors(_: &Mesh, options: Options) -> Result<Vec<Processor>, Fault> {
    let (embedder, origin) = (Arc::new(options.embedder()?), options.origin());
    let stage = |of: ProcessorSpec| Processor::new(of).concurrency(RECORDS);
    let chunks = Arc::new(chunks::Chunks(Batcher::new()));
    let entities = Arc::new(entities::Entities(Batcher::new()));
    let rows = Arc::new(rows::Rows(Batcher::new()));
    Ok(vec![
        stage(document_embeddings::PROCESSOR).reads(document_embeddings::INPUT, chunks),
        stage(graph_embeddings::PROCESSOR).reads(graph_embeddings::INPUT, entities),
        stage(row_embeddings::PROCESSOR)
            .reads(row_embeddings::INPUT, rows)
            .watches(&[schema::KIND]),
        Processor::new(processors::embeddings::PROCESSOR)
            .serves(
                processors::embeddings::REQUEST,
                Arc::new(embeddings::Embeddings { embedder, origin }),
            )
            .concurrency(REQUESTS),
    ])
}
