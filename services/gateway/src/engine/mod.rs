//! What the gateway knows without a bus and without HTTP: both vocabularies, what may be said to clients, a little of a
//! query language. Pure.

pub(crate) mod compat;
pub(crate) mod event;
#[cfg(test)]
mod fuzz;
pub(crate) mod langgraph;
pub(crate) mod mcp;
pub(crate) mod oauth;
pub(crate) mod promql;
pub(crate) mod rdf;
pub(crate) mod scrub;
pub(crate) mod secret_names;
mod secret_nested;
mod secret_scan;
pub(crate) mod secret_texts;
pub(crate) mod secret_words;
pub mod translate;
pub(crate) mod workspaces;
