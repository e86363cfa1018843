//! The life cycle of what stores keep for workspaces and collections.
//!
//! * [`CollectionKey`]: what selects data; [`Target`]: which of it a record changes, and how ([`WriteKind`]).
//! * [`CollectionStore`]: what a store of collections does, with its handlers [`Retractor`] and [`Dropper`].
//! * [`Quota`]: what a workspace may keep in a store.
//! * [`reaper`]: the one place where what a deleted workspace left is purged, by tombstone only, from a
//!   [`WorkspaceStore`].

mod handlers;
mod key;
mod known_config;
mod quota;
pub mod reaper;
mod registry;
mod store;
mod target;
mod verdict;
mod write_kind;

pub use handlers::{Dropper, Retractor};
pub use key::CollectionKey;
pub use known_config::KnownConfig;
pub use quota::{Quota, Usage, Words};
pub use reaper::WorkspaceStore;
pub use store::CollectionStore;
pub use target::Target;
pub use write_kind::WriteKind;
