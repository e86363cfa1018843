//! The life cycle of what stores keep for workspaces and collections.
//!
//! * [`CollectionKey`]: what selects data; [`Target`]: which of it a record changes, and how ([`WriteKind`]).
//! * [`CollectionStore`]: what a store of collections does, with its handlers [`Retractor`] and [`Dropper`].
//! * [`Retractions`]: which of the retractions a store has done, so that none is done twice.
//! * [`Quota`]: what a workspace may keep in a store.
//! * [`leftovers`]: the one loop in which a store removes, step by step, what it has let go of.
//! * [`reaper`]: the one place where what a deleted workspace left is purged, by tombstone only, from a
//!   [`WorkspaceStore`].

mod handlers;
mod key;
mod known_config;
pub mod leftovers;
mod quota;
pub mod reaper;
mod registry;
mod retractions;
mod store;
mod target;
mod verdict;
mod write_kind;

pub use handlers::{Dropper, Retractor};
pub use key::CollectionKey;
pub use known_config::KnownConfig;
pub use quota::{Quota, Usage, Words};
pub use reaper::WorkspaceStore;
pub use retractions::Retractions;
pub use store::CollectionStore;
pub use target::{Target, ended};
pub use write_kind::WriteKind;
