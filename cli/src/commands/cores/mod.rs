//! Knowledge cores: what was learned from a document, as files and in collections.

pub mod dump;
pub mod embeds;
pub mod kind;
pub mod list;
pub mod load;
pub mod transfer;

mod file;
pub(super) mod partial;

crate::args::subject!(
    /// The core that a command is about.
    CoreId,
    "Id of the core",
    long = "id",
    visible_alias = "identifier"
);

/// The service behind all of them.
const SERVICE: &str = "knowledge";
