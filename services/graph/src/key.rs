//! What selects data: a collection of a workspace in one of its lives.

use std::sync::Arc;

/// Which dataset: collections of different workspaces never meet, nor do lives of one name. Always compared
/// field by field; its parts are never joined to one name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DatasetKey {
    workspace: Arc<str>,
    collection: Arc<str>,
    incarnation: i64,
}

impl DatasetKey {
    /// Names a dataset in the first life of its name; an empty collection is `default`.
    pub fn new(workspace: &str, collection: &str) -> Self {
        let collection = if collection.is_empty() {
            "default"
        } else {
            collection
        };
        Self {
            workspace: workspace.into(),
            collection: collection.into(),
            incarnation: 0,
        }
    }

    /// The same name in another life: the number grows each time a name is created again after a deletion.
    pub fn in_life(self, incarnation: i64) -> Self {
        Self {
            incarnation,
            ..self
        }
    }

    /// The workspace.
    pub fn workspace(&self) -> &str {
        &self.workspace
    }

    /// The collection.
    pub fn collection(&self) -> &str {
        &self.collection
    }

    /// Which life of the name.
    pub fn incarnation(&self) -> i64 {
        self.incarnation
    }

    /// Whether this is the same name, in this life or one before.
    pub(crate) fn ends_with(&self, last: &Self) -> bool {
        self.workspace == last.workspace
            && self.collection == last.collection
            && self.incarnation <= last.incarnation
    }
}

/// How a change comes to a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// In a run that began with this life of the collection: once that is dropped, what still comes is
    /// dropped too.
    Run,
    /// From anywhere else: a dataset that does not exist begins with it.
    Open,
}
