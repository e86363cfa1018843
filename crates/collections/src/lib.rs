//! The life cycle of what stores keep for workspaces and collections.
//!
//! * [`WriteKind`]: how a change comes to a collection, and so whether it may begin one.
//! * [`reaper`]: the one place where what a deleted workspace left is purged, by tombstone only.

pub mod reaper;
mod verdict;
mod write_kind;

pub use reaper::WorkspaceStore;
pub use write_kind::WriteKind;
