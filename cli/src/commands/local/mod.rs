//! Commands that need no gateway.

pub mod backup;
pub mod completions;
pub mod links;
pub mod man_pages;
pub mod models;
