//! The library: documents and what they contain, processing them, and the workspace's collections.
//!
//! | processor | serves | what it does |
//! |---|---|---|
//! | `librarian` | `librarian` per workspace | documents, content, uploads, processing |
//! | | `collection` per workspace | collections and their deletion |
//! | | `run-tally` of the system | hears how far runs are |
//! | | `library-texts` of the system | takes in the texts that traces link to |
//!
//! One process owns the store; others stand by. Documents are rows in a database, large content is files
//! named by their hash. What is accepted is done, through any crash: each step is noted before anything
//! follows from it, and the keeper goes on with what it finds.

mod collections;
mod config;
mod engine;
mod fault;
mod handler;
mod keeper;
mod library;
mod processing;
mod processor;
mod reaped;
mod service;
mod store;
mod texts;

pub use engine::quota::Quota;
pub use processor::{PROCESSOR, processors, processors_with};
