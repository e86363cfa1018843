//! What is made of the rows of a workspace (prompts, tools, a schema), kept ready until these rows change. Holds no more
//! workspaces than its bound: where there would be more, everything is forgotten and made again as it is asked for.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::config_view::Rows;

/// Workspaces that are remembered where nothing else is said.
const MOST: usize = 256;

/// By workspace: the rows, and what was made of them.
type Made<T> = HashMap<String, (Vec<Arc<Rows>>, Arc<T>)>;

/// One kind of thing that is made of rows of one or more types.
pub struct Derived<T> {
    most: usize,
    made: Mutex<Made<T>>,
}

impl<T> Default for Derived<T> {
    fn default() -> Self {
        Self::of(MOST)
    }
}

impl<T> Derived<T> {
    /// Of no more workspaces than this.
    pub fn of(most: usize) -> Self {
        Self {
            most,
            made: Mutex::default(),
        }
    }

    /// What was made of these very rows.
    pub fn get(&self, workspace: &str, rows: &[Arc<Rows>]) -> Option<Arc<T>> {
        let made = self.made.lock();
        let (of, made) = made.get(workspace)?;
        // Rows that did not change are the same ones: contents are compared only where they may differ.
        (of == rows).then(|| made.clone())
    }

    /// Remembers what was made.
    pub fn put(&self, workspace: &str, rows: Vec<Arc<Rows>>, made: T) -> Arc<T> {
        let made = Arc::new(made);
        let mut all = self.made.lock();
        if all.len() >= self.most && !all.contains_key(workspace) {
            all.clear();
        }
        all.insert(workspace.to_owned(), (rows, made.clone()));
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(value: &str) -> Arc<Rows> {
        Arc::new([("k".to_owned(), Arc::from(value))].into())
    }

    #[test]
    fn what_was_made_is_kept_until_one_of_the_types_changes() {
        let derived = Derived::default();
        let [a, b] = ["a", "b"].map(rows);
        assert!(derived.get("w", &[a.clone(), b.clone()]).is_none());
        derived.put("w", vec![a.clone(), b.clone()], 1);
        assert_eq!(
            derived.get("w", &[a.clone(), rows("b")]).as_deref(),
            Some(&1)
        );
        assert!(derived.get("w", &[a.clone(), rows("c")]).is_none());
        assert!(derived.get("w", &[a]).is_none());
    }

    #[test]
    fn no_more_workspaces_are_remembered_than_the_bound() {
        let derived = Derived::of(2);
        for name in ["a", "b", "b"] {
            derived.put(name, vec![], ());
        }
        assert!(derived.get("a", &[]).is_some());
        derived.put("c", vec![], ());
        assert!(derived.get("a", &[]).is_none() && derived.get("c", &[]).is_some());
    }
}
