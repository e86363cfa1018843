//! Traces: what was done to answer a question.

mod chain;
pub(crate) mod entity;
mod exported;
pub mod extraction;
pub(crate) mod fetch;
mod heads;
mod links;
pub mod list;
mod render;
mod sentences;
pub mod show;
pub mod sign;
pub(crate) mod told;
mod trace;
pub mod verify;
