//! Knowledge cores: what was learned from a document, as files and in collections.

pub mod dump;
pub mod list;
pub mod load;
pub mod transfer;

mod file;

/// The service behind all of them.
const SERVICE: &str = "knowledge";
