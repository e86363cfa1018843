//! What lies where in a data directory, beside the stores.

/// The log of records on the embedded bus.
pub(super) const BUS: &str = "bus";
/// What the library keeps, in files named by their hashes.
pub(super) const CONTENT: &str = "content";
/// Below the content: uploads in progress.
pub(super) const STAGED: &str = "staged";
/// Below the content: what a write left unfinished.
pub(super) const SCRATCH: &str = "unfinished";
/// The configuration, which says what belongs to a workspace.
pub(super) const CONFIG: &str = "config.sqlite";
/// The library, which says whose content is whose.
pub(super) const LIBRARY: &str = "librarian.sqlite";
/// The sessions of agents, in a file for each workspace.
pub(super) const SESSIONS: &str = "agent_sessions";
/// The mark of a directory that a restore did not fill to the end.
pub(super) const UNFINISHED: &str = "unfinished-restore";
