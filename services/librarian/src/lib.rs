//! The library: documents and what they contain, processing them, and the workspace's collections.
//!
//! | processor | serves | what it does |
//! |---|---|---|
//! | `librarian` | `librarian` per workspace | documents, content, uploads, processing |
//! | | `collection` per workspace | collections and their deletion |
//! | | `run-tally` of the system | hears how far runs are |
//! | | `library-texts` of the system | takes in the texts that traces link to |
//!
//! * `handlers`: the queues. `library`, `collections`, `processing`: what is done about documents, collections and runs.
//! * `engine`: rules over plain values. Pure.
//! * `store`: where rows and contents are kept: traits, the adapters over SQLite and over files, and the suites that
//!   adapters pass.
//! * `reconciler`: what the librarian does by itself.
//!
//! One process owns the store; others stand by. Documents are rows in a database, large content is files
//! named by their hash. What is accepted is done, through any crash: each step is noted before anything
//! follows from it, and the reconciler goes on with what it finds.

mod chores;
mod collections;
mod config;
mod engine;
mod error;
mod handlers;
mod librarian;
mod library;
mod options;
mod processing;
mod processors;
mod reaped;
mod reconciler;
mod store;

pub use engine::quota::Quota;
pub use options::Options;
pub use processors::{PROCESSOR, processors};
pub use store::{ONE_WORKSPACE, files_of_content};
