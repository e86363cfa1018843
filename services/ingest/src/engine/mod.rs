//! What ingest knows without bus, clock or processes: kinds of content, text out of bytes, and chunks out of
//! text.

pub mod chunks;
#[cfg(test)]
mod fuzz;
pub mod kind;
pub mod recursive;
pub mod text;
pub mod tokens;
pub mod turns;
pub mod window;
