//! What ingest knows without bus, clock or processes: chunks out of text.

pub mod chunks;
pub mod code;
#[cfg(test)]
mod fuzz;
pub mod markdown;
pub mod outline;
pub mod recursive;
pub mod structure;
pub mod tokens;
pub mod turns;
pub mod window;
