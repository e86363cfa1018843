//! The librarian of a process: its library, and what must not happen twice at the same time.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use tg_mesh::fair::Pool;
use tg_schemas::WorkspaceKey;
use tokio::sync::{MutexGuard, Notify};

use crate::chores::Chores;
use crate::engine::ids;
use crate::library::Library;
use crate::processing::KnownModels;
use crate::store::LibraryStore;

/// Locks that collections share.
const LOCKS: usize = 64;

/// Estimates under way at once, and of them those of one workspace: who is asked for one asks the library in turn.
const ESTIMATES: usize = 16;
const ESTIMATES_OF_ONE: usize = 4;

/// The librarian.
pub(crate) struct Librarian {
    pub(crate) library: Library,
    /// There is something to look after.
    pub(crate) wake: Arc<Notify>,
    /// Runs whose first records are being published.
    pub(crate) starting: Mutex<HashSet<i64>>,
    pub(crate) chores: Mutex<Chores>,
    /// Models of flows.
    pub(crate) models: KnownModels,
    /// Estimates under way.
    pub(crate) estimates: Pool,
    /// What changes a collection happens one after the other.
    collections: [tokio::sync::Mutex<()>; LOCKS],
}

impl Librarian {
    /// Over an open library.
    pub(crate) fn new(library: Library, wake: Arc<Notify>) -> Self {
        Self {
            library,
            wake,
            starting: Mutex::default(),
            chores: Mutex::default(),
            models: KnownModels::default(),
            estimates: Pool::new(ESTIMATES, ESTIMATES_OF_ONE),
            collections: std::array::from_fn(|_| tokio::sync::Mutex::new(())),
        }
    }

    /// The library's rows.
    pub(crate) fn rows(&self) -> &dyn LibraryStore {
        self.library.rows()
    }

    /// Alone with a collection.
    pub(crate) async fn alone(&self, workspace: &str, collection: &str) -> MutexGuard<'_, ()> {
        let workspace = WorkspaceKey::parse(workspace);
        let name = format!("{} {collection}", workspace.name());
        let at = ids::fingerprint(&name).unsigned_abs() as usize;
        self.collections[at % LOCKS].lock().await
    }
}
