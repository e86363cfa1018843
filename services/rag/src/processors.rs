//! The hosted processors.

use std::sync::Arc;

use tg_mesh::{Mesh, Processor};
use tg_schemas::table::TABLE;
use tg_settings::Fault;

use crate::handlers::{Diagnosis, DocumentRag, GraphRag, Nlp, Reranker, Structured};
use crate::options::Options;

/// Row that says which store of ours answers a flow's patterns.
const STORE_ROW: &str = "processor:triples-query";
/// Questions in progress at once per flow: they mostly wait for others.
const CONCURRENCY: usize = 256;

/// The processors of this service, to be hosted.
///
/// # Errors
/// The reranking model that the options name cannot be asked.
pub fn processors(_: &Mesh, options: Options) -> Result<Vec<Processor>, Fault> {
    let reranker = Reranker(options.reranker()?);
    let options = Arc::new(options);
    let processor = |id| Processor::new(id).concurrency(CONCURRENCY);
    Ok(vec![
        processor("graph-rag")
            .serves("request", Arc::new(GraphRag(options.clone())))
            .watches(&[STORE_ROW]),
        processor("document-rag")
            .serves("request", Arc::new(DocumentRag(options)))
            .watches(&[STORE_ROW]),
        processor("reranker").serves("request", Arc::new(reranker)),
        processor("nlp-query")
            .serves("request", Arc::new(Nlp))
            .watches(&[TABLE]),
        processor("structured-query").serves("request", Arc::new(Structured)),
        processor("structured-diag")
            .serves("request", Arc::new(Diagnosis))
            .watches(&[TABLE]),
    ])
}
