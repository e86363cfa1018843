//! What the service serves: the operations on agents and sessions, a file for each kind.

mod agents;
mod asking;
mod conversations;
mod sessions;
mod turn;
mod workspace_agents;

use std::sync::Arc;

use tg_clients::operations::Served;
use tg_mesh::LeasedStore;
use tg_schemas::operations::{
    Chat, CreateAgent, CreateConversation, CreateFromTemplate, CreateSession, DeleteAgent,
    DeleteConversation, DeleteSession, GetAgent, GetConversation, GetNamedAgent, GetSession,
    ListAgents, ListConversationMessages, ListConversations, ListMessages, ListNamedAgents,
    ListSessions, ListTemplates, SendConversationMessage, SendMessage, UpdateAgent,
    UpdateConversation,
};

use crate::engine::catalogue::Catalogue;
use crate::options::Options;
use crate::store::SqliteSessions;
use crate::turns::Turns;

/// What all handlers go by.
pub(crate) struct Agents {
    catalogue: Arc<Catalogue>,
    store: Arc<LeasedStore<SqliteSessions>>,
    turns: Arc<Turns>,
}

/// All operations of the service.
pub(crate) fn served(
    catalogue: Arc<Catalogue>,
    store: Arc<LeasedStore<SqliteSessions>>,
    options: &Options,
) -> Served {
    let agents = Arc::new(Agents {
        catalogue,
        store,
        turns: Turns::new(options.max_concurrent),
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
        let served = served(Arc::default(), store, &Options::default());
        let declared = ALL.iter().filter(|meta| meta.service == SESSIONS);
        let declared: BTreeSet<_> = declared.map(|meta| meta.name).collect();
        assert_eq!(served.names().collect::<BTreeSet<_>>(), declared);
    }
}
