//! The tools of a workspace as configuration says, and which of them a run may use now.
//!
//! A row that cannot be read costs its own tool and no other. Never calls a tool.

mod row;
mod tool;

use std::collections::BTreeMap;

use tg_schemas::msg::AgentRun;

use self::tool::state_of;
pub use self::tool::{Kind, Rows, Tool, UNDEFINED};

/// Tools that a run may use at once; more are left out, in the order of their names.
const MAX_TOOLS: usize = 200;

/// All tools of a workspace.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolSet {
    tools: Vec<Tool>,
    /// Rows that were left out, and why.
    pub faults: Vec<String>,
}

impl ToolSet {
    /// Reads the rows. Of two tools with one name, the one read later wins: `tool` after `tool-native`,
    /// keys in their order.
    pub fn read(rows: &Rows<'_>) -> Self {
        let mut tools: BTreeMap<String, Tool> = BTreeMap::new();
        let mut faults = Vec::new();
        let native = rows.native.iter().map(|row| (row, true));
        for ((key, value), native) in native.chain(rows.tools.iter().map(|row| (row, false))) {
            match row::read(key, value, native, rows) {
                Ok(tool) => {
                    tools.insert(tool.name.clone(), tool);
                }
                Err(fault) => faults.push(format!("tool '{key}': {fault}")),
            }
        }
        Self {
            tools: tools.into_values().collect(),
            faults,
        }
    }

    /// The tools that a run may use in its present state.
    pub fn available(&self, run: &AgentRun) -> Vec<&Tool> {
        let groups: Vec<&str> = match &run.group {
            None => vec!["default"],
            Some(groups) => groups.iter().map(String::as_str).collect(),
        };
        let state = state_of(&run.state);
        self.tools
            .iter()
            .filter(|tool| tool.available(&groups, state))
            .take(MAX_TOOLS)
            .collect()
    }
}

/// The tool a model means: the exact name, else the only one that differs in case and separators.
pub fn find<'a>(tools: &[&'a Tool], name: &str) -> Option<&'a Tool> {
    if let Some(tool) = tools.iter().find(|tool| tool.name == name) {
        return Some(tool);
    }
    let plain = |text: &str| -> String {
        text.chars()
            .filter(|c| !matches!(c, ' ' | '-' | '_'))
            .flat_map(char::to_lowercase)
            .collect()
    };
    let wanted = plain(name);
    let mut alike = tools.iter().filter(|tool| plain(&tool.name) == wanted);
    match (alike.next(), alike.next()) {
        (Some(tool), None) => Some(tool),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
