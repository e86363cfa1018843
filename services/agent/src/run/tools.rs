//! The tool set of each workspace, read again when configuration changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use tg_mesh::{Cx, Derived};

use crate::engine::toolset::{Rows, ToolSet};

/// Workspaces remembered; beyond it all are forgotten and read again.
const KEEP: usize = 1024;

/// Config types that the agent watches.
pub const WATCHED: &[&str] = &["tool", "tool-native", "tool-service", "mcp", "agent"];

/// See the module.
pub(super) struct Tools(Derived<ToolSet>);

impl Default for Tools {
    fn default() -> Self {
        Self(Derived::of(KEEP))
    }
}

impl Tools {
    /// The tools of the context's workspace as configuration says now.
    pub(super) fn of(&self, cx: &Cx) -> Arc<ToolSet> {
        let workspace = cx.workspace();
        let kinds = ["tool", "tool-native", "tool-service"];
        let rows = kinds.map(|kind| cx.config().values(workspace, kind));
        if let Some(set) = self.0.get(workspace, &rows) {
            return set;
        }
        let set = ToolSet::read(&Rows {
            tools: &pairs(&rows[0]),
            native: &pairs(&rows[1]),
            services: &pairs(&rows[2]),
            workspace,
        });
        for fault in &set.faults {
            tracing::warn!(workspace, fault, "a tool was left out");
        }
        self.0.put(workspace, rows.into(), set)
    }
}

fn pairs(rows: &BTreeMap<String, Arc<str>>) -> Vec<(&str, &str)> {
    rows.iter()
        .map(|(key, value)| (key.as_str(), &**value))
        .collect()
}
