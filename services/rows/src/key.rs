//! What selects rows: a collection of a workspace in one of its lives.

use std::sync::Arc;

/// Always compared field by field; its parts are never joined to one name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CollectionKey {
    /// Workspace.
    pub workspace: Arc<str>,
    /// Collection.
    pub collection: Arc<str>,
    /// Which life of the name.
    pub incarnation: i64,
}

impl CollectionKey {
    /// Names a collection; an empty one is `default`.
    pub fn new(workspace: &str, collection: &str, incarnation: i64) -> Self {
        let collection = match collection {
            "" => "default",
            named => named,
        };
        Self {
            workspace: workspace.into(),
            collection: collection.into(),
            incarnation,
        }
    }
}
