//! The agent.

pub mod console;
pub mod diff;
pub mod invoke;
mod parting;
mod render;
pub mod runs;
pub mod summaries;
pub mod tasks;
pub mod threads;
pub(in crate::commands) mod why;
