//! What the service serves: the operations on agents and sessions, a file for each kind.

mod agents;
mod announced;
mod asking;
mod continuing;
mod conversations;
mod documents;
mod dropped;
mod known;
mod lineage;
mod llm_services;
mod recalling;
mod reranking_services;
mod retrieving;
mod services;
mod sessions;
mod streaming;
mod summaries;
mod summing;
mod tenant;
mod turn;
mod work;
mod workspace_agents;

use std::sync::Arc;

use tg_clients::flow_records::ReadyFlows;
use tg_clients::operations::Served;
use tg_mesh::LeasedStore;
use tg_provider_http::Credentials;
use tg_schemas::operations;

use crate::engine::catalogue::Catalogue;
use crate::engine::chat::ChatDefaults;
use crate::engine::tenant::Levels;
use crate::options::Options;
use crate::pasts::Pasts;
use crate::store::SqliteSessions;
use crate::trail::Trail;
use crate::turns::Turns;

pub(crate) use announced::Announced;
pub(crate) use dropped::Dropped;
pub(crate) use known::Known;
pub(crate) use workspace_agents::SEED;

/// What all handlers go by.
pub(crate) struct Agents {
    catalogue: Arc<Catalogue>,
    store: Arc<LeasedStore<SqliteSessions>>,
    turns: Arc<Turns>,
    pasts: Arc<Pasts>,
    flows: Arc<ReadyFlows>,
    levels: Levels,
    trail: Arc<Trail>,
    /// Credentials that LLM services may name.
    credentials: Option<Credentials>,
    /// What the operator says of agents of workspaces that say nothing themselves.
    chat: ChatDefaults,
    /// Euros for a dollar; 0: not set.
    rate: f64,
}

impl Agents {
    /// What all handlers go by.
    pub(crate) fn new(
        catalogue: Arc<Catalogue>,
        levels: Levels,
        (store, turns, pasts): (Arc<LeasedStore<SqliteSessions>>, Arc<Turns>, Arc<Pasts>),
        options: &Options,
    ) -> Arc<Self> {
        Arc::new(Self {
            catalogue,
            store,
            turns,
            pasts,
            flows: Arc::default(),
            levels,
            trail: Arc::new(
                Trail::below(&options.data_dir, options.trail_days).rated(options.usd_eur_rate),
            ),
            credentials: options.credentials.clone(),
            chat: options.chat(),
            rate: options.usd_eur_rate,
        })
    }
}

/// All operations of the service.
pub(crate) fn served(agents: &Arc<Agents>) -> Served {
    macro_rules! all {
        ($($operation:ident),* $(,)?) => {
            Served::default()$(.serve::<operations::$operation>(agents.clone()))*
        };
    }
    tg_schemas::each_operation!(all)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tg_schemas::operations::{ALL, SESSIONS};

    use super::*;

    #[tokio::test]
    async fn every_operation_of_the_service_is_served() {
        let dir = tempfile::tempdir().unwrap();
        let durability = tg_storage::Durability::Process;
        let store = SqliteSessions::open(&dir.path().join("i"), dir.path(), durability).unwrap();
        let store = LeasedStore::opened_with("sessions", store);
        let served = served(&Agents::new(
            Arc::default(),
            Levels::default(),
            (store, Turns::new(1), Pasts::new()),
            &Options::default(),
        ));
        let declared = ALL.iter().filter(|meta| meta.service == SESSIONS);
        let declared: BTreeSet<_> = declared.map(|meta| meta.name).collect();
        assert_eq!(served.names().collect::<BTreeSet<_>>(), declared);
    }
}
