//! Texts to vectors, and the stages that embed chunks, entities and rows.
//!
//! * [`EmbeddingSettings`] chooses a [`provider`]: letters (`lexical`), a table of token vectors
//!   (`static`), an OpenAI-compatible endpoint or Ollama.
//! * [`Embedder`] makes vectors in bounded batches and remembers what it made.
//! * [`processors`] are the hosted processors: `embeddings`, which answers, and the stages
//!   `document-embeddings`, `graph-embeddings` and `row-embeddings`, which ask it over the bus, many records
//!   at a time.
//!
//! The crate never shows a provider's body, address or key to anybody, in errors or in logs.

mod cache;
mod embedder;
mod error;
pub mod provider;
mod service;
mod settings;
mod stage;
#[cfg(test)]
mod testing;

use std::sync::Arc;

use tg_mesh::Processor;

pub use cache::Vector;
pub use embedder::{Bounds, Embedded, Embedder};
pub use error::EmbedError;
pub use settings::{EmbeddingSettings, KEYS, ProviderSettings};
pub use tg_provider_http::{Secret, SettingFault};

/// Requests in progress per flow.
const REQUESTS: usize = 256;

/// The processors of this service, to be hosted.
pub fn processors(embedder: Embedder) -> Vec<Processor> {
    let service = Arc::new(service::Embeddings(Arc::new(embedder)));
    let mut all = stage::processors();
    all.push(
        Processor::new("embeddings")
            .serves("request", service)
            .concurrency(REQUESTS),
    );
    all
}
