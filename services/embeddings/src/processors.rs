//! The processors of this service: `embeddings`, which answers, and the stages, which ask it.

use std::sync::Arc;

use tg_clients::model_calls::{self, ModelCalls};
use tg_mesh::{Mesh, Processor, TaskKind};
use tg_schemas::processors::{
    self, ProcessorSpec, document_embeddings, graph_embeddings, row_embeddings,
};
use tg_settings::SettingError;

use crate::engine::schema;
use crate::handlers::batch::Batcher;
use crate::handlers::{chunks, embeddings, entities, rows};
use crate::options::Options;
use crate::provider_client::ProviderClient;

/// Requests in progress per flow.
const REQUESTS: usize = 256;
/// Records in progress; most of them wait to share a question.
const RECORDS: usize = 256;

/// The processors of this service, to be hosted; the last one is `embeddings`. Reads a static model's files (blocks).
/// Looks in the background whether a server that makes vectors has the model, and logs where it does not.
///
/// # Errors
/// The mistake in the options because of which the provider cannot be asked.
pub fn processors(mesh: &Mesh, options: Options) -> Result<Vec<Processor>, SettingError> {
    let calls = options.origin().map(|_| ModelCalls::start(mesh));
    let provider_client = Arc::new(ProviderClient {
        client: options.embedder()?,
        origin: options.origin(),
        tells_address: options.tells_address,
    });
    let (first, stopping) = (provider_client.clone(), mesh.stopping().clone());
    // Nothing waits for it: a server that is away holds up no start.
    mesh.spawn(TaskKind::Background, async move {
        if let Err(wrong) = first.look_at_start(&stopping).await {
            tracing::warn!("{wrong}");
        }
    });
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
                Arc::new(embeddings::Embeddings {
                    provider_client,
                    calls,
                }),
            )
            .concurrency(REQUESTS)
            .watches(&[model_calls::WATCHED]),
    ])
}
