//! What a query is run over.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use tg_collections::CollectionKey;

use crate::store::RowStore;

/// What resolvers need: which rows, and where they are.
pub(crate) struct Target {
    pub(crate) key: CollectionKey,
    pub(crate) store: Arc<dyn RowStore>,
    /// Fields so far that search inside texts: each goes through a whole table.
    pub(crate) searches: AtomicUsize,
}
