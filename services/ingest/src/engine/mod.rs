//! What ingest knows without bus, clock or processes: chunks out of text.

pub mod chunks;
#[cfg(test)]
mod fuzz;
pub mod recursive;
pub mod tokens;
pub mod turns;
pub mod window;
