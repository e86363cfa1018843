//! Typed clients of our services, one file per service asked. A service knows another only through one of these or
//! as a queue.
//!
//! What a foreign service of the same kind needs instead (interop mode) is decided here, not in who asks.
//!
//! * [`embeddings`]: texts as vectors.
//! * [`library`]: documents, their content, what is made of them, uploads.
//! * [`traces`]: what an answer leaves behind, its texts in the library and its entries in the graph.

mod caller;
pub mod embeddings;
pub mod library;
pub mod traces;
