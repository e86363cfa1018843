//! Prompts of workspaces, kept ready until their configuration changes.

use std::sync::Arc;

use tg_mesh::{Cx, Derived};

use crate::engine::prompts::PromptSet;

/// The config type of prompts.
pub(crate) const CONFIG: &str = "prompt";

/// Prompts by workspace.
pub(crate) struct ReadyPrompts(Derived<PromptSet>);

impl ReadyPrompts {
    pub(crate) fn new(most: usize) -> Self {
        Self(Derived::of(most))
    }

    /// The prompts of the workspace of a question, as its configuration has them now.
    pub(crate) fn get(&self, cx: &Cx) -> Arc<PromptSet> {
        let rows = [cx.config().values(cx.workspace(), CONFIG)];
        if let Some(set) = self.0.get(cx.workspace(), &rows) {
            return set;
        }
        let texts = rows[0].iter();
        let set = PromptSet::read(texts.map(|(key, value)| (key.as_str(), value.as_ref())));
        self.0.put(cx.workspace(), rows.into(), set)
    }
}
