//! Tools that read the project as text: sources without comments and tests, the graph of their imports, and what
//! cargo says of the crates. The rules themselves are the tests beside this crate.
//!
//! Every tool has a test of its own on a small sample, so that a rule that finds nothing finds nothing because
//! there is nothing.

pub mod bans;
pub mod functions;
pub mod imports;
pub mod licence;
pub mod manifest;
pub mod source;
pub mod text;
pub mod words;
