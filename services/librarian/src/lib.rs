//! Documents and their content, and the collections of a workspace.
//!
//! * `store`: metadata rows in one SQLite file.
//! * `library`: the operations, over the store and a directory of content by hash.
//! * `handler`: the door `request:tg:librarian:<workspace>`.
//! * `collections`: the door `request:tg:collection:<workspace>`; collections are rows of the configuration.
//!
//! Chunked uploads and processing records are not built; those operations say so.

mod collections;
mod fault;
mod handler;
mod library;
mod processor;
mod store;

pub use processor::{PROCESSOR, processors};
