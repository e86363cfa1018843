//! The library of documents.

pub mod add;
pub mod content;
pub mod intake;
pub mod listing;
mod metadata;
pub mod processing;
pub mod remove;
pub mod samples;
pub mod show;
mod upload;
mod waiting;
