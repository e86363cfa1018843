//! What ingest knows without bus, clock or processes: kinds of content, text out of bytes, and chunks out of
//! text.

pub mod chunks;
pub mod kind;
pub mod recursive;
pub mod text;
pub mod tokens;
pub mod turns;
pub mod window;
