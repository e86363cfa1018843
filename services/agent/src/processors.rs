//! The processor that this crate hosts.

use std::sync::Arc;

use tg_clients::rendering;
use tg_collections::reaper;
use tg_mesh::{Mesh, Processor, TaskKind};
use tg_schemas::processors::agent_manager;

use crate::handlers::{Measure, Questions, Runs, Steps, Traces, Usage};
use crate::options::Options;
use crate::run::leases::CONCURRENCY;
use crate::run::{Agent, STORE, WATCHED, forgetting, tasking};
use crate::store::Ledger;

/// The agent, with its ledger in the data directory. A process that stands by leaves the ledger alone.
///
/// Also starts the tasks that forget what belonged to deleted workspaces, and what is too old.
pub fn processors(mesh: &Mesh, mut options: Options) -> Vec<Processor> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    options.cli_agents = options.cli_agents.map(|all| all.looked_up(&path));
    let (dir, durability) = (options.data_dir.clone(), options.durability);
    let file = Ledger::file(&dir);
    let agent = Agent::new(options, move || Ledger::open(&dir, durability));
    agent.store.kept_in(file);
    reaper::start(mesh, STORE, agent.store.clone());
    let forgets = forgetting::run(
        agent.store.clone(),
        mesh.stopping().clone().cancelled_owned(),
    );
    mesh.spawn(TaskKind::Background, forgets);
    let prunes = tasking::prune(agent.clone(), mesh.stopping().clone().cancelled_owned());
    mesh.spawn(TaskKind::Background, prunes);
    vec![processor(&agent)]
}

/// The processor of an agent.
pub(crate) fn processor(agent: &Arc<Agent>) -> Processor {
    Processor::new(agent_manager::PROCESSOR)
        .serves(agent_manager::REQUEST, Arc::new(Questions(agent.clone())))
        .serves(agent_manager::MEASURE, Arc::new(Measure(agent.clone())))
        .serves(agent_manager::RUNS, Arc::new(Runs(agent.clone())))
        .serves(agent_manager::TRACES, Arc::new(Traces(agent.clone())))
        .serves(agent_manager::USAGE_TOTALS, Arc::new(Usage(agent.clone())))
        .reads(agent_manager::STEP, Arc::new(Steps(agent.clone())))
        .watches(WATCHED)
        .watches(&rendering::WATCHED)
        .concurrency(CONCURRENCY)
        .owns(agent.store.clone())
}
