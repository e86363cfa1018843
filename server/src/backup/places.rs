//! What lies where in a data directory, beside the stores.

/// The log of records on the embedded bus.
pub(super) const BUS: &str = "bus";
/// What the library keeps, in files named by their hashes.
pub(super) const CONTENT: &str = "content";
/// Below the content: uploads in progress.
pub(super) const STAGED: &str = "staged";
/// Below the content: what a write left unfinished.
pub(super) const SCRATCH: &str = "unfinished";
/// The mark of a directory that a restore did not fill to the end.
pub(super) const UNFINISHED: &str = "unfinished-restore";
