//! Questions that are answered from what was retrieved: `tg invoke-graph-rag`, `tg invoke-document-rag`.

pub(crate) mod answered;
mod ask;
pub mod document;
pub mod graph;
