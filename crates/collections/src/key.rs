//! What selects data: a collection of a workspace in one generation of its name.

use std::sync::Arc;

use tg_schemas::msg::collection_or_default;

/// A collection of a workspace in one generation of its name. Always compared field by field; its parts are never
/// joined to one name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CollectionKey {
    workspace: Arc<str>,
    collection: Arc<str>,
    generation: i64,
}

impl CollectionKey {
    /// Names a collection in its first generation; an empty collection is `default`. `workspace` is the text form of
    /// the workspace's key.
    pub fn new(workspace: &str, collection: &str) -> Self {
        Self {
            workspace: workspace.into(),
            collection: collection_or_default(collection).into(),
            generation: 0,
        }
    }

    /// The same name in another generation: the number grows each time a name is created again after a deletion.
    pub fn in_generation(self, generation: i64) -> Self {
        Self { generation, ..self }
    }

    /// The workspace.
    pub fn workspace(&self) -> &str {
        &self.workspace
    }

    /// The collection.
    pub fn collection(&self) -> &str {
        &self.collection
    }

    /// Which generation of the name.
    pub fn generation(&self) -> i64 {
        self.generation
    }

    /// Whether this has ended when `last` has: the same name, in that generation or one before.
    pub fn ends_with(&self, last: &Self) -> bool {
        self.workspace == last.workspace
            && self.collection == last.collection
            && self.generation <= last.generation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_ends_with_itself_and_with_later_ones_of_its_name_only() {
        let key = |generation| CollectionKey::new("w", "").in_generation(generation);
        assert_eq!(key(3).collection(), "default");
        assert!(key(3).ends_with(&key(3)) && key(2).ends_with(&key(3)));
        assert!(!key(4).ends_with(&key(3)));
        for other in [CollectionKey::new("w", "c"), CollectionKey::new("x", "")] {
            assert!(!other.ends_with(&key(3)));
        }
    }
}
