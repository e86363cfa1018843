//! The library of documents.

pub mod add;
pub mod content;
mod metadata;
pub mod remove;
pub mod show;
