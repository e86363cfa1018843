//! Commands that need no gateway.

pub mod completions;
pub mod links;
