//! The tool set of each workspace, read again when configuration changed.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use tg_mesh::Cx;

use crate::engine::toolset::{Rows, ToolSet};

/// Workspaces remembered; beyond it all are forgotten and read again.
const KEEP: usize = 1024;

/// Config types that the agent watches.
pub const WATCHED: &[&str] = &["tool", "tool-native", "tool-service", "mcp", "agent"];

/// See the module.
#[derive(Default)]
pub(super) struct Tools {
    known: Mutex<HashMap<String, (i64, Arc<ToolSet>)>>,
}

impl Tools {
    /// The tools of the context's workspace as configuration says now.
    pub(super) fn of(&self, cx: &Cx) -> Arc<ToolSet> {
        let version = cx.config().version();
        let workspace = cx.workspace();
        if let Some((at, set)) = self.known.lock().get(workspace)
            && *at == version
        {
            return set.clone();
        }
        let values = |kind| cx.config().values(workspace, kind);
        let (tools, native, services) = (
            values("tool"),
            values("tool-native"),
            values("tool-service"),
        );
        let set = Arc::new(ToolSet::read(&Rows {
            tools: &pairs(&tools),
            native: &pairs(&native),
            services: &pairs(&services),
            workspace,
        }));
        let mut known = self.known.lock();
        let news = known
            .get(workspace)
            .is_none_or(|(_, old)| old.faults != set.faults);
        if news {
            for fault in &set.faults {
                tracing::warn!(workspace, fault, "a tool was left out");
            }
        }
        if known.len() >= KEEP {
            known.clear();
        }
        known.insert(workspace.to_owned(), (version, set.clone()));
        set
    }
}

fn pairs(rows: &BTreeMap<String, Arc<str>>) -> Vec<(&str, &str)> {
    rows.iter()
        .map(|(key, value)| (key.as_str(), &**value))
        .collect()
}
