//! Threads of a workspace: the pump of [`tg_threads`] between the listeners of its flows and whoever is outside.
//!
//! * [`engine::rows`] makes listeners of the rows of config type `listener`; the flow's agent is one without a row.
//! * [`engine::words`] puts messages of the pump into messages of the bus and back, under ids of [`engine::ids`].
//! * [`processors`] is the one hosted processor, `threads`. One process at a time holds the threads, in memory: what it
//!   knows of them ends with it, and its successor begins with a new root.
//!
//! It never looks into a payload, and keeps nothing of one.

pub mod engine;
mod error;
mod handlers;
mod options;
mod processors;

pub use error::ThreadsError;
pub use options::Options;
pub use processors::processors;
