//! What the service serves: the operations on agents and sessions, a file for each kind.

mod agents;
mod announced;
mod asking;
mod conversations;
mod documents;
mod dropped;
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

use tg_clients::operations::Served;
use tg_mesh::LeasedStore;
use tg_provider_http::Credentials;
use tg_schemas::operations::{
    CancelTurn, Chat, CompactSession, CreateAgent, CreateConversation, CreateFromTemplate,
    CreateLlmService, CreateRerankingService, CreateSession, DeleteAgent, DeleteConversation,
    DeleteLlmService, DeleteRerankingService, DeleteSession, ExpandConversationSummary,
    ExpandSummary, ExportSession, ForgetMemory, GetAgent, GetConversation, GetLlmService,
    GetNamedAgent, GetRerankingService, GetSession, GetTenantConfig, ImportSession, ListAgents,
    ListConversationMessages, ListConversationSummaries, ListConversations, ListLlmServices,
    ListMemories, ListMessages, ListNamedAgents, ListRerankingServices, ListSessions,
    ListTemplates, PutTenantConfig, SendConversationMessage, SendMessage, SessionLineage,
    UndoCompaction, UndoConversationCompaction, UpdateAgent, UpdateConversation, UpdateLlmService,
    UpdateRerankingService,
};

use crate::engine::catalogue::Catalogue;
use crate::engine::chat::ChatDefaults;
use crate::engine::tenant::Levels;
use crate::options::Options;
use crate::store::SqliteSessions;
use crate::trail::Trail;
use crate::turns::Turns;

pub(crate) use announced::Announced;
pub(crate) use dropped::Dropped;
pub(crate) use workspace_agents::SEED;

/// What all handlers go by.
pub(crate) struct Agents {
    catalogue: Arc<Catalogue>,
    store: Arc<LeasedStore<SqliteSessions>>,
    turns: Arc<Turns>,
    levels: Levels,
    trail: Arc<Trail>,
    /// Credentials that LLM services may name.
    credentials: Option<Credentials>,
    /// What the operator says of agents of workspaces that say nothing themselves.
    chat: ChatDefaults,
}

/// All operations of the service.
pub(crate) fn served(
    catalogue: Arc<Catalogue>,
    levels: Levels,
    (store, turns): (Arc<LeasedStore<SqliteSessions>>, Arc<Turns>),
    options: &Options,
) -> Served {
    let agents = Arc::new(Agents {
        catalogue,
        store,
        turns,
        levels,
        trail: Arc::new(Trail::below(&options.data_dir, options.trail_days)),
        credentials: options.credentials.clone(),
        chat: options.chat(),
    });
    Served::default()
        .serve::<ListNamedAgents>(agents.clone())
        .serve::<GetNamedAgent>(agents.clone())
        .serve::<Chat>(agents.clone())
        .serve::<CreateSession>(agents.clone())
        .serve::<ListSessions>(agents.clone())
        .serve::<GetSession>(agents.clone())
        .serve::<DeleteSession>(agents.clone())
        .serve::<ListMessages>(agents.clone())
        .serve::<CancelTurn>(agents.clone())
        .serve::<SendMessage>(agents.clone())
        .serve::<ListAgents>(agents.clone())
        .serve::<CreateAgent>(agents.clone())
        .serve::<CreateFromTemplate>(agents.clone())
        .serve::<GetAgent>(agents.clone())
        .serve::<UpdateAgent>(agents.clone())
        .serve::<DeleteAgent>(agents.clone())
        .serve::<ListTemplates>(agents.clone())
        .serve::<ListConversations>(agents.clone())
        .serve::<CreateConversation>(agents.clone())
        .serve::<GetConversation>(agents.clone())
        .serve::<UpdateConversation>(agents.clone())
        .serve::<DeleteConversation>(agents.clone())
        .serve::<ListConversationMessages>(agents.clone())
        .serve::<ListConversationSummaries>(agents.clone())
        .serve::<ExpandConversationSummary>(agents.clone())
        .serve::<UndoConversationCompaction>(agents.clone())
        .serve::<ListLlmServices>(agents.clone())
        .serve::<CreateLlmService>(agents.clone())
        .serve::<GetLlmService>(agents.clone())
        .serve::<UpdateLlmService>(agents.clone())
        .serve::<DeleteLlmService>(agents.clone())
        .serve::<ListRerankingServices>(agents.clone())
        .serve::<CreateRerankingService>(agents.clone())
        .serve::<GetRerankingService>(agents.clone())
        .serve::<UpdateRerankingService>(agents.clone())
        .serve::<DeleteRerankingService>(agents.clone())
        .serve::<CompactSession>(agents.clone())
        .serve::<SessionLineage>(agents.clone())
        .serve::<UndoCompaction>(agents.clone())
        .serve::<ExpandSummary>(agents.clone())
        .serve::<ExportSession>(agents.clone())
        .serve::<ImportSession>(agents.clone())
        .serve::<ListMemories>(agents.clone())
        .serve::<ForgetMemory>(agents.clone())
        .serve::<GetTenantConfig>(agents.clone())
        .serve::<PutTenantConfig>(agents.clone())
        .serve::<SendConversationMessage>(agents)
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
        let served = served(
            Arc::default(),
            Levels::default(),
            (store, Turns::new(1)),
            &Options::default(),
        );
        let declared = ALL.iter().filter(|meta| meta.service == SESSIONS);
        let declared: BTreeSet<_> = declared.map(|meta| meta.name).collect();
        assert_eq!(served.names().collect::<BTreeSet<_>>(), declared);
    }
}
