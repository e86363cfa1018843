//! The agent.

pub mod invoke;
mod render;
