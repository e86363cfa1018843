//! Commands that need no gateway.

pub mod backup;
pub mod completions;
pub mod links;
pub mod models;
