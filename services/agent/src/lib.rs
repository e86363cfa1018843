//! The ReAct loop: iterations, tools, provenance events.

pub mod engine;
