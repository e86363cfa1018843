//! Questions that are answered from what was retrieved: `tg ask`, `tg chat`, `tg invoke-graph-rag`,
//! `tg invoke-document-rag`.

pub(crate) mod answered;
mod ask;
mod asking;
pub mod chat;
mod conversation;
pub mod document;
pub mod graph;
pub mod question;
