//! The agent.

pub mod console;
pub mod diff;
pub mod invoke;
mod parting;
mod render;
pub mod runs;
pub mod tasks;
pub(in crate::commands) mod why;
