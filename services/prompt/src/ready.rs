//! Prompts of workspaces, kept ready until their configuration changes.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tg_mesh::Cx;
use tg_mesh::config_view::Rows;

use crate::engine::prompts::PromptSet;

/// The config type of prompts.
pub(crate) const CONFIG: &str = "prompt";

/// Prompts, and the rows they were read from.
type Known = (Arc<Rows>, Arc<PromptSet>);

/// Prompts by workspace.
pub(crate) struct ReadyPrompts {
    known: Mutex<HashMap<String, Known>>,
    /// Most workspaces; where there would be more, all are read again as they are asked for.
    most: usize,
}

impl ReadyPrompts {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            known: Mutex::default(),
            most,
        }
    }

    /// The prompts of the workspace of a question, as its configuration has them now.
    pub(crate) fn get(&self, cx: &Cx) -> Arc<PromptSet> {
        let rows = cx.config().values(cx.workspace(), CONFIG);
        if let Some((known, set)) = self.known.lock().get(cx.workspace())
            && Arc::ptr_eq(known, &rows)
        {
            return set.clone();
        }
        let set = Arc::new(PromptSet::read(
            rows.iter()
                .map(|(key, value)| (key.as_str(), value.as_ref())),
        ));
        let mut known = self.known.lock();
        if known.len() >= self.most && !known.contains_key(cx.workspace()) {
            known.clear();
        }
        known.insert(cx.workspace().to_owned(), (rows, set.clone()));
        set
    }
}
