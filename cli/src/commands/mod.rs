//! One command, one file (or a tight family): arguments, the call, the rendering.
//!
//! A command talks to the gateway through its [`Session`](crate::session::Session) and to nothing
//! else. What it prints is made by a pure function beside it.

pub mod agent;
pub mod collections;
pub mod config;
pub mod cores;
pub mod explain;
pub mod flow;
pub mod graph;
pub mod iam;
pub mod library;
pub mod llm;
pub mod local;
pub mod retrieval;
pub mod search;
pub mod sessions;
pub mod status;
pub mod structured;
pub mod tools;
pub mod workspace;

mod groups;
mod table;
#[cfg(test)]
mod tests;

pub use groups::{FIRST, GROUPS, SYNONYMS};
pub use table::ALL;
