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
pub mod sync;
pub mod update;
mod upload;
mod waiting;
pub(in crate::commands) mod why;

pub(in crate::commands) use waiting::passes;
