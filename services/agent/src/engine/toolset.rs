//! The tools of a workspace as configuration says, and which of them a run may use now.
//!
//! A row that cannot be read costs its own tool and no other. Never calls a tool.

mod discovered;
mod knowledge;
mod row;
mod tool;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tg_schemas::msg::AgentRun;

use self::discovered::Of;
pub use self::knowledge::{DOCUMENT, KB, Knowledge};
use self::row::Described;
use self::tool::state_of;
pub use self::tool::{Kind, Rows, Tool, UNDEFINED};
use super::delegating::Roster;

/// Tools that a run may use at once; more are left out, in the order of their names.
const MAX_TOOLS: usize = 200;

/// Names that a run's record holds; tools beyond it are left out, in the order of their names.
const MAX_NAMES: usize = 1000;

/// Servers of tools that a workspace may have; those of further rows are left out.
const MAX_SERVERS: usize = 8;

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
        let agents = Arc::new(Roster::read(rows.agents, rows.programs, &mut faults));
        let mut servers: Vec<(&str, Box<Of>)> = Vec::new();
        let mut prefixes = Vec::new();
        let native = rows.native.iter().map(|row| (row, true));
        for ((key, value), native) in native.chain(rows.tools.iter().map(|row| (row, false))) {
            match row::read((key, value), native, rows, &agents) {
                Ok(Described::One(tool)) => {
                    tools.insert(tool.name.clone(), *tool);
                }
                Ok(Described::Server(of)) => {
                    prefixes.push(of.prefix());
                    match refused(&servers, &of) {
                        Some(fault) => faults.push(format!("tool '{key}': {fault}")),
                        None => servers.push((key, of)),
                    }
                }
                Err(fault) => faults.push(format!("tool '{key}': {fault}")),
            }
        }
        for (key, of) in servers {
            let listing = rows.listed.iter().find(|(server, _)| *server == of.server);
            match discovered::read(&of, listing.map_or("[]", |(_, listing)| listing)) {
                Ok(found) => {
                    let (own, others) = divided(&of, found, &prefixes);
                    if others > 0 {
                        faults.push(format!(
                            "tool '{key}': {others} of its server's tools are left out: another row has the beginning of their names"
                        ));
                    }
                    // What somebody wrote is never replaced by what a server says.
                    for tool in own {
                        tools.entry(tool.name.clone()).or_insert(tool);
                    }
                }
                Err(fault) => faults.push(format!("tool '{key}': {fault}")),
            }
        }
        Self {
            tools: tools.into_values().collect(),
            faults,
        }
    }

    /// The servers whose tools rows name, by their keys in config type `mcp`.
    pub fn servers(rows: &[(&str, &str)]) -> BTreeSet<String> {
        let named = rows.iter().filter_map(|(_, row)| row::server(row));
        named
            .filter(|server| !server.is_empty())
            .take(MAX_SERVERS)
            .collect()
    }

    /// The names of all tools that a run may use in whatever state, and those of agents that it may give work to: what is fixed
    /// before its first step. Each uses those of its own groups alone.
    pub fn names(&self, run: &AgentRun) -> Vec<String> {
        let mut groups = groups_of(run);
        let own = self.tools.iter().filter(|tool| tool.is_for(run, &groups));
        let agents = own.filter_map(|tool| tool.kind.agents()).next();
        groups.extend(agents.into_iter().flat_map(Roster::groups));
        let tools = self.tools.iter().filter(|tool| tool.is_for(run, &groups));
        tools
            .map(|tool| tool.name.clone())
            .take(MAX_NAMES)
            .collect()
    }

    /// The tools that a run may use in its present state.
    pub fn available(&self, run: &AgentRun) -> Vec<&Tool> {
        let (groups, state) = (groups_of(run), state_of(&run.state));
        let fixed = |tool: &Tool| {
            run.tools
                .as_ref()
                .is_none_or(|all| all.contains(&tool.name))
        };
        self.tools
            .iter()
            .filter(|tool| tool.is_for(run, &groups) && tool.applies_in(state))
            .filter(|tool| fixed(tool) && tool.has_agents(run))
            .take(MAX_TOOLS)
            .collect()
    }
}

/// Why a row is left out, given the rows of servers before it.
fn refused(before: &[(&str, Box<Of>)], of: &Of) -> Option<String> {
    if before.len() == MAX_SERVERS {
        return Some(format!(
            "there are {MAX_SERVERS} servers of tools before it, and no more are asked"
        ));
    }
    // One of the servers could replace a tool of the other.
    let is_taken = before
        .iter()
        .any(|(_, other)| other.like.name == of.like.name && other.server != of.server);
    is_taken.then(|| "name: a row of another server has it".to_owned())
}

/// The tools that a row may have, and how many are left out: a name belongs to the row with the longest prefix of it.
fn divided(of: &Of, mut found: Vec<Tool>, prefixes: &[String]) -> (Vec<Tool>, usize) {
    let (own, all) = (of.prefix().len(), found.len());
    found.retain(|tool| {
        let mut longer = prefixes.iter().filter(|prefix| prefix.len() > own);
        !longer.any(|prefix| tool.name.starts_with(prefix.as_str()))
    });
    let others = all - found.len();
    (found, others)
}

fn groups_of(run: &AgentRun) -> Vec<&str> {
    match &run.group {
        None => vec!["default"],
        Some(groups) => groups.iter().map(String::as_str).collect(),
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
