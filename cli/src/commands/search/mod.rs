//! Looking things up by meaning and by structure: vectors, the reranker, rows.

pub mod embeddings;
pub mod nearest;
pub mod reranker;
pub mod rows;
