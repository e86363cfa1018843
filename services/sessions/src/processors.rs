//! The processor `sessions`, over the files of its workspaces.

use std::sync::Arc;

use tg_collections::reaper;
use tg_mesh::{LeasedStore, Mesh, Processor};
use tg_schemas::flow_record;
use tg_schemas::processors::sessions;
use tg_storage::StorageError;

use crate::agents_dir;
use crate::error::AgentFilesError;
use crate::handlers;
use crate::options::Options;
use crate::pasts::Pasts;
use crate::store::SqliteSessions;
use crate::turns::Turns;

/// Below the data directory: whose the sessions are, and a file for each workspace.
const INDEX: &str = "agent_sessions.sqlite";
const ROOT: &str = "agent_sessions";
/// Store that one process owns.
const STORE: &str = "sessions";

/// Requests in progress at once per workspace: most of them wait for an agent.
const CONCURRENCY: usize = 2_048;
/// Config type of collections: an agent that names none reads all.
const COLLECTION: &str = "collection";

/// The processors of this service, to be hosted. Reads the files of agents, which blocks.
///
/// Also starts the task that forgets what was said in deleted workspaces.
///
/// # Errors
/// Everything that is wrong with the files of agents.
pub fn processors(mesh: &Mesh, options: Options) -> Result<Vec<Processor>, AgentFilesError> {
    let catalogue = Arc::new(agents_dir::load(&options.agents(), &options.models())?);
    let levels = agents_dir::levels(&options.tenants(), options.settings(), options.models())?;
    let index = options.data_dir.join(INDEX);
    let (root, durability) = (options.data_dir.join(ROOT), options.durability);
    let (opened, quota) = (index.clone(), options.quota());
    let pasts = Pasts::new();
    let purged = pasts.purged();
    let store = LeasedStore::blocking(STORE, move || {
        let store = SqliteSessions::open(&opened, &root, durability)?;
        Ok::<_, StorageError>(store.holding(quota).purging(purged.clone()))
    });
    store.kept_in(index);
    reaper::start(mesh, STORE, store.clone());
    let turns = Turns::new(options.max_concurrent);
    let kept = (store.clone(), turns, pasts);
    let agents = handlers::Agents::new(catalogue, levels, kept, &options);
    let served = handlers::Known(handlers::served(&agents));
    let sessions = Processor::new(sessions::PROCESSOR)
        .serves(sessions::SESSIONS, Arc::new(served))
        .serves(sessions::DROP, Arc::new(handlers::Dropped(store.clone())))
        .serves(sessions::NOTICES, Arc::new(handlers::Announced(agents)))
        .watches(&[
            flow_record::KIND,
            tg_compaction::MODEL_TYPE,
            tg_schemas::price::ROWS,
            COLLECTION,
            handlers::SEED.0,
        ])
        .concurrency(CONCURRENCY)
        .owns(store);
    Ok(vec![sessions])
}
