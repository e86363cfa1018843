//! Texts to vectors, and the stages that embed chunks, entities and rows.
//!
//! * [`Options`] chooses a [`provider`]: letters (`lexical`), a table of token vectors
//!   (`static`), an OpenAI-compatible endpoint or Ollama.
//! * [`Embedder`] makes vectors in bounded batches and remembers what it made.
//! * [`processors`] are the hosted processors: `embeddings`, which answers, and the stages
//!   `document-embeddings`, `graph-embeddings` and `row-embeddings`, which ask it over the bus, many records
//!   at a time.
//!
//! The crate never shows a provider's body or key to anybody, and its address only to those who run the system.

mod cache;
mod embedder;
mod engine;
mod error;
mod handlers;
mod options;
mod processors;
pub mod provider;
mod provider_client;
#[cfg(test)]
mod testing;

pub use cache::Vector;
pub use embedder::{Asked, Bounds, Embedded, Embedder};
pub use error::EmbedError;
pub use options::{Options, ProviderKind, Variables};
pub use processors::processors;
pub use tg_provider_http::Secret;
