//! What was made of a workspace's configuration rows, until they change.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tg_mesh::config_view::Rows;

/// Workspaces that are remembered.
const MOST: usize = 256;

/// By workspace, with the rows it was made of.
type Made<T> = HashMap<String, (Arc<Rows>, Arc<T>)>;

/// One kind of thing that is made of rows.
pub(crate) struct Ready<T>(Mutex<Made<T>>);

impl<T> Default for Ready<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Ready<T> {
    /// What was made of these very rows.
    pub(crate) fn get(&self, workspace: &str, rows: &Arc<Rows>) -> Option<Arc<T>> {
        let made = self.0.lock();
        let (known, made) = made.get(workspace)?;
        Arc::ptr_eq(known, rows).then(|| made.clone())
    }

    /// Remembers what was made. At the bound everything is forgotten and made again when it is needed.
    pub(crate) fn put(&self, workspace: &str, rows: Arc<Rows>, made: T) -> Arc<T> {
        let made = Arc::new(made);
        let mut all = self.0.lock();
        if all.len() >= MOST && !all.contains_key(workspace) {
            all.clear();
        }
        all.insert(workspace.to_owned(), (rows, made.clone()));
        made
    }
}
