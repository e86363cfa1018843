//! The configuration that a step goes by: as it is now, or, of a run that is replayed, as it was.

use std::sync::Arc;

use tg_compaction::MODEL_TYPE;
use tg_schemas::processors::agent_manager::TOOL_HOOK;

use super::agent::Agent;
use super::execution::StepExecution;
use super::routers;
use super::tools;
use crate::engine::exchange::Rows;
use crate::engine::router::Router;
use crate::engine::toolset::ToolSet;

/// Rows of type `agent` that steps go by, besides budgets: what came of those is in the ledger.
const OWN: (&str, [&str; 3]) = (
    "agent",
    ["additional-context", "loop_detection", "compaction"],
);

impl StepExecution {
    /// The tools of the workspace.
    pub(super) fn tools(&self) -> Arc<ToolSet> {
        match &self.playback {
            Some(playback) => {
                let rows = playback.rows((&self.run.run, self.step));
                Arc::new(self.agent.tools.recorded(&rows, self.cx.workspace()))
            }
            None => self.agent.tools.of(&self.cx, &self.listed),
        }
    }

    /// What the workspace has configured of patterns.
    pub(super) fn router(&self) -> Arc<Router> {
        match &self.playback {
            Some(playback) => {
                let rows = playback.rows((&self.run.run, self.step));
                Arc::new(routers::recorded(&rows))
            }
            None => self.agent.routers.of(&self.cx),
        }
    }

    /// What the workspace adds to each prompt.
    pub(super) fn additional(&self) -> Option<String> {
        let row = self.row(OWN.0, OWN.1[0])?;
        Some(Agent::read_context(&row))
    }

    /// A row of configuration that may change how a run goes.
    pub(super) fn row(&self, kind: &str, key: &str) -> Option<Arc<str>> {
        match &self.playback {
            Some(playback) => {
                let rows = playback.rows((&self.run.run, self.step));
                rows.get(kind)?.get(key).map(|row| row.as_str().into())
            }
            None => self.cx.config().get(self.cx.workspace(), kind, key),
        }
    }

    /// All rows that steps go by.
    pub(super) fn rows_now(&self) -> Rows {
        let (config, workspace) = (self.cx.config(), self.cx.workspace());
        let kinds = tools::KINDS.iter().chain(&routers::KINDS);
        let kinds = kinds.chain(&[MODEL_TYPE]);
        let mut rows: Rows = kinds
            .map(|kind| {
                let rows = config.values(workspace, kind);
                let rows = rows.iter().map(|(key, row)| (key.clone(), row.to_string()));
                ((*kind).to_owned(), rows.collect())
            })
            .collect();
        let own = OWN.1.into_iter().filter_map(|key| {
            let row = config.get(workspace, OWN.0, key)?;
            Some((key.to_owned(), row.to_string()))
        });
        rows.insert(OWN.0.to_owned(), own.collect());
        if !self.listed.is_empty() {
            let listed = self.listed.iter();
            let listed = listed.map(|(key, row)| (key.clone(), row.to_string()));
            rows.insert(tools::LISTED.to_owned(), listed.collect());
        }
        rows
    }

    /// Whether the flow has a hook that is asked about tools.
    pub(super) fn has_hook(&self) -> bool {
        match &self.playback {
            Some(playback) => playback.around((&self.run.run, self.step)).hook,
            None => self.cx.has(TOOL_HOOK),
        }
    }
}
