//! Questions that are answered from what was retrieved: `tg ask`, `tg invoke-graph-rag`, `tg invoke-document-rag`.

pub(crate) mod answered;
mod ask;
pub mod document;
pub mod graph;
pub mod question;
