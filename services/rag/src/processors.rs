//! The hosted processors, and what their handlers share.

use std::sync::Arc;

use chrono::{SecondsFormat, Utc};
use tg_mesh::{Cx, Mesh, Processor};
use tg_provenance::retrieval_id;
use tg_schemas::table::TABLE;
use tg_settings::Fault;

use crate::document_rag::DocumentRag;
use crate::graph_rag::GraphRag;
use crate::options::Options;
use crate::reranker::Reranker;
use crate::structured::{Diagnosis, Nlp, Structured};

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

/// Names the trace of a question: the same again when it is asked again under its id.
pub fn trace_id(cx: &Cx) -> String {
    if cx.id.is_empty() {
        return uuid::Uuid::new_v4().to_string();
    }
    retrieval_id(cx.workspace(), cx.flow(), &cx.id)
}

/// The time as traces write it.
pub fn now() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true)
}
