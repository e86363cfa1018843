//! The keyword index: words of chunks, ranked by BM25. One file; each collection has a full-text table of
//! its own, so neither hits nor statistics of one reach another. The texts themselves are not kept.

mod engine;
pub mod query;
mod store;

pub use engine::{ChunkText, KeywordHit, Keywords};
