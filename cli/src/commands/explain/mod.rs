//! Traces: what was done to answer a question.

pub(crate) mod entity;
pub mod extraction;
pub(crate) mod fetch;
mod links;
pub mod list;
mod render;
mod sentences;
pub mod show;
mod trace;
pub mod verify;
