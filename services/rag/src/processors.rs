//! The hosted processors.

use std::sync::Arc;

use tg_clients::model_calls::{self, ModelCalls};
use tg_mesh::{Mesh, Processor};
use tg_schemas::processors::{
    ProcessorSpec, document_rag, graph_rag, nlp_query, reranker, structured_diag, structured_query,
};
use tg_schemas::table::TABLE;
use tg_settings::SettingError;

use crate::handlers::{Diagnosis, DocumentRag, GraphRag, Nlp, Reranker, Structured};
use crate::options::Options;

/// Row that says which store of ours answers a flow's patterns.
const STORE_ROW: &str = "processor:triples-query";
/// Questions in progress at once per flow: they mostly wait for others.
const CONCURRENCY: usize = 256;

/// The processors of this service, to be hosted.
///
/// # Errors
/// The reranking model that the options name cannot be asked, or a credential that they list cannot be read.
pub fn processors(mesh: &Mesh, options: Options) -> Result<Vec<Processor>, SettingError> {
    let reranker = Reranker {
        endpoint: options.reranker()?,
        services: options.services()?,
        calls: ModelCalls::start(mesh),
    };
    let options = Arc::new(options);
    let processor = |of: ProcessorSpec| Processor::new(of).concurrency(CONCURRENCY);
    Ok(vec![
        processor(graph_rag::PROCESSOR)
            .serves(graph_rag::REQUEST, Arc::new(GraphRag(options.clone())))
            .watches(&[STORE_ROW]),
        processor(document_rag::PROCESSOR)
            .serves(document_rag::REQUEST, Arc::new(DocumentRag(options)))
            .watches(&[STORE_ROW]),
        processor(reranker::PROCESSOR)
            .serves(reranker::REQUEST, Arc::new(reranker))
            .watches(&[model_calls::WATCHED]),
        processor(nlp_query::PROCESSOR)
            .serves(nlp_query::REQUEST, Arc::new(Nlp))
            .watches(&[TABLE]),
        processor(structured_query::PROCESSOR)
            .serves(structured_query::REQUEST, Arc::new(Structured)),
        processor(structured_diag::PROCESSOR)
            .serves(structured_diag::REQUEST, Arc::new(Diagnosis))
            .watches(&[TABLE]),
    ])
}
