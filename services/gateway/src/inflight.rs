//! Counts work in progress per workspace, so that one tenant cannot take the whole gateway.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// Counts of all workspaces. Bounded by what is in progress.
#[derive(Debug, Clone)]
pub(crate) struct InFlight {
    counts: Arc<Mutex<HashMap<String, usize>>>,
    limit: usize,
}

/// One piece of work; counts until dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    counts: Arc<Mutex<HashMap<String, usize>>>,
    workspace: String,
}

impl InFlight {
    /// At most `limit` at once in each workspace.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            counts: Arc::default(),
            limit,
        }
    }

    /// Starts a piece of work, unless the workspace is at its limit.
    pub(crate) fn enter(&self, workspace: &str) -> Option<Permit> {
        let mut counts = self.counts.lock();
        let count = counts.entry(workspace.to_owned()).or_default();
        if *count >= self.limit {
            return None;
        }
        *count += 1;
        Some(Permit {
            counts: self.counts.clone(),
            workspace: workspace.to_owned(),
        })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut counts = self.counts.lock();
        if let Some(count) = counts.get_mut(&self.workspace) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.workspace);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_workspace_leaves_others_alone() {
        let all = InFlight::new(2);
        let first = all.enter("a");
        let _second = all.enter("a");
        assert!(first.is_some() && all.enter("a").is_none());
        assert!(all.enter("b").is_some());
        drop(first);
        assert!(all.enter("a").is_some());
    }
}
