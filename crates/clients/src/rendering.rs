//! Prompts of workspaces, kept ready until their configuration changes. Whoever uses them watches the config type
//! [`PROMPTS`].

use std::sync::Arc;

use tg_mesh::{Cx, Derived};
use tg_schemas::determinants::PROMPTS;
use tg_templates::PromptSet;

/// Prompts by workspace.
pub struct ReadyPrompts(Derived<PromptSet>);

impl ReadyPrompts {
    /// Of so many workspaces at most; those of another are read again when they are asked for.
    pub fn new(most: usize) -> Self {
        Self(Derived::of(most))
    }

    /// The prompts of the workspace of a question, as its configuration has them now.
    pub fn get(&self, cx: &Cx) -> Arc<PromptSet> {
        let rows = [cx.config().values(cx.workspace(), PROMPTS)];
        if let Some(set) = self.0.get(cx.workspace(), &rows) {
            return set;
        }
        let texts = rows[0].iter();
        let set = PromptSet::read(texts.map(|(key, value)| (key.as_str(), value.as_ref())));
        self.0.put(cx.workspace(), rows.into(), set)
    }
}
