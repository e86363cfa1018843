//! The processor that this crate hosts.

use std::path::Path;
use std::sync::Arc;

use tg_mesh::Processor;
use tg_schemas::Error;
use tg_schemas::processors::STEP_BASE;
use tg_storage::Durability;

use crate::run::{Agent, Questions, Steps, WATCHED};
use crate::settings::AgentSettings;
use crate::store::Ledger;

/// Its id.
pub const AGENT: &str = "agent-manager";

/// Steps in progress at once per flow: most of them only wait for a model.
const CONCURRENCY: usize = 1024;

/// The agent, with its ledger in a directory. A process that stands by leaves the ledger alone.
pub fn processors(
    settings: AgentSettings,
    dir: &Path,
    durability: Durability,
) -> Result<Vec<Processor>, Error> {
    let dir = dir.to_owned();
    let file = Ledger::file(&dir);
    let agent = Agent::new(settings, move || Ledger::open(&dir, durability));
    agent.store.kept_in(file);
    Ok(vec![processor(&agent)])
}

/// The processor of an agent.
pub(crate) fn processor(agent: &Arc<Agent>) -> Processor {
    Processor::new(AGENT)
        .serves("request", Arc::new(Questions(agent.clone())))
        .reads_own(STEP_BASE, Arc::new(Steps(agent.clone())))
        .watches(WATCHED)
        .concurrency(CONCURRENCY)
        .owns(agent.store.clone())
}
