//! The tool set of each workspace, read again when configuration changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use tg_compaction::MODEL_TYPE;
use tg_mesh::config_view::Rows as ConfigRows;
use tg_mesh::{Cx, Derived};

use crate::engine::delegating::Definition;
use crate::engine::exchange::Rows as Recorded;
use crate::engine::toolset::{Rows, ToolSet};
use crate::programs::CliAgents;

/// Workspaces remembered; beyond it all are forgotten and read again.
const KEEP: usize = 1024;

/// Config types that the agent watches.
pub const WATCHED: &[&str] = &[
    "tool",
    "tool-native",
    "tool-service",
    "mcp",
    "agent",
    "agent-pattern",
    "agent-task-type",
    tg_schemas::price::ROWS,
    "agent-definition",
    MODEL_TYPE,
];

/// Config types that tools are made of.
pub(super) const KINDS: [&str; 4] = ["tool", "tool-native", "tool-service", "agent-definition"];

/// What servers of tools say that they have stands beside those rows, under this name, in what a run went by.
pub(super) const LISTED: &str = "mcp-listed";

/// See the module.
pub(super) struct Tools {
    known: Derived<ToolSet>,
    /// Agents that are programs: they stay the same while the process runs.
    programs: CliAgents,
}

impl Tools {
    /// With these programs.
    pub(super) fn with(programs: Option<&CliAgents>) -> Self {
        Self {
            known: Derived::of(KEEP),
            programs: programs.cloned().unwrap_or_default(),
        }
    }

    /// The tools of the context's workspace as configuration says now, and servers of tools.
    pub(super) fn of(&self, cx: &Cx, listed: &Arc<ConfigRows>) -> Arc<ToolSet> {
        let workspace = cx.workspace();
        let [tools, native, services, agents] =
            KINDS.map(|kind| cx.config().values(workspace, kind));
        let rows = [tools, native, services, agents, listed.clone()];
        if let Some(set) = self.known.get(workspace, &rows) {
            return set;
        }
        let own = self.programs.definitions(workspace);
        let set = read(rows.each_ref().map(|rows| pairs(rows)), &own, workspace);
        for fault in &set.faults {
            tracing::warn!(workspace, fault, "a tool was left out");
        }
        self.known.put(workspace, rows.into(), set)
    }

    /// The tools that a run had which is replayed.
    pub(super) fn recorded(&self, rows: &Recorded, workspace: &str) -> ToolSet {
        let [tools, native, services, agents] = KINDS.map(|kind| recorded_pairs(rows, kind));
        let listed = recorded_pairs(rows, LISTED);
        let own = self.programs.definitions(workspace);
        read([tools, native, services, agents, listed], &own, workspace)
    }
}

fn read(
    [tools, native, services, agents, listed]: [Vec<(&str, &str)>; 5],
    programs: &[(String, Definition)],
    workspace: &str,
) -> ToolSet {
    ToolSet::read(&Rows {
        tools: &tools,
        native: &native,
        services: &services,
        agents: &agents,
        listed: &listed,
        programs,
        workspace,
    })
}

/// Rows of a type that a run went by.
pub(super) fn recorded_pairs<'a>(rows: &'a Recorded, kind: &str) -> Vec<(&'a str, &'a str)> {
    let rows = rows.get(kind).into_iter().flatten();
    rows.map(|(key, row)| (key.as_str(), row.as_str()))
        .collect()
}

pub(super) fn pairs(rows: &BTreeMap<String, Arc<str>>) -> Vec<(&str, &str)> {
    rows.iter()
        .map(|(key, value)| (key.as_str(), &**value))
        .collect()
}
