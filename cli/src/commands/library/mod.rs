//! The library of documents.

pub mod add;
mod again;
pub mod content;
pub mod intake;
pub mod listing;
mod metadata;
pub mod processing;
pub mod reindex;
pub mod remove;
pub mod samples;
pub mod show;
mod standing;
mod upload;
mod waiting;
