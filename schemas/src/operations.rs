//! Operations as types: each is declared once, in a file of its own, and everything else follows from that.
//!
//! * [`Operation`] ties an operation's [`Meta`] to the types of its request, reply, chunks and error.
//! * [`visit`] goes over all of them with their types, [`ALL`] without.
//! * The gateway makes routes of them, services serve them, and commands and other services call them
//!   (`tg_clients::operations`).
//!
//! A new operation is three files: its own here, this one with its line in [`each_operation`](crate::each_operation), and its handler. Operations
//! from before this list are in [`crate::msg`].

mod cancel_turn;
mod chat;
mod compact_session;
mod conversations;
mod create_agent;
mod create_conversation;
mod create_from_template;
mod create_llm_service;
mod create_reranking_service;
mod create_session;
mod declare;
mod delete_agent;
mod delete_conversation;
mod delete_llm_service;
mod delete_reranking_service;
mod delete_session;
mod expand_conversation_summary;
mod expand_summary;
mod export;
mod export_session;
mod failure;
mod forget_memory;
mod get_agent;
mod get_conversation;
mod get_llm_service;
mod get_named_agent;
mod get_reranking_service;
mod get_session;
mod get_tenant_config;
mod import_session;
mod lineage;
mod list_agents;
mod list_conversation_messages;
mod list_conversation_summaries;
mod list_conversations;
mod list_llm_services;
mod list_memories;
mod list_messages;
mod list_named_agents;
mod list_reranking_services;
mod list_sessions;
mod list_templates;
mod llm_services;
mod put_tenant_config;
mod records;
mod reranking_services;
mod send_conversation_message;
mod send_message;
mod session_lineage;
mod surface;
mod tenant_config;
mod undo_compaction;
mod undo_conversation_compaction;
mod update_agent;
mod update_conversation;
mod update_llm_service;
mod update_reranking_service;
mod workspace_agents;

pub use cancel_turn::{CancelTurn, CancelledTurn};
pub use chat::{Chat, EarlierMessage, Question};
pub use compact_session::CompactSession;
pub use conversations::{ChatMessage, Conversation, OneConversation, WhichPage};
pub use create_agent::{CreateAgent, NewAgent};
pub use create_conversation::{CreateConversation, NewConversation};
pub use create_from_template::{CreateFromTemplate, FromTemplate};
pub use create_llm_service::{CreateLlmService, NewLlmService};
pub use create_reranking_service::{CreateRerankingService, NewRerankingService};
pub use create_session::{CreateSession, NewSession};
pub use declare::{
    Described, Effect, Field, Form, Meta, Object, Operation, Refusal, WORKSPACE, Wire, read, write,
};
pub use delete_agent::DeleteAgent;
pub use delete_conversation::DeleteConversation;
pub use delete_llm_service::DeleteLlmService;
pub use delete_reranking_service::DeleteRerankingService;
pub use delete_session::DeleteSession;
pub use expand_conversation_summary::{
    ExpandConversationSummary, ExpandedConversation, OneConversationSummary,
};
pub use expand_summary::{ExpandSummary, Expanded, OneSummary};
pub use export::{FORM, SessionDocument};
pub use export_session::ExportSession;
pub use failure::{Failure, FailureCode};
pub use forget_memory::{ForgetMemory, OneMemory};
pub use get_agent::{GetAgent, OneAgent};
pub use get_conversation::GetConversation;
pub use get_llm_service::GetLlmService;
pub use get_named_agent::{GetNamedAgent, NamedAgent};
pub use get_reranking_service::GetRerankingService;
pub use get_session::{GetSession, OneSession};
pub use get_tenant_config::GetTenantConfig;
pub use import_session::{ImportSession, ImportedSession};
pub use lineage::{CompactResult, Lineage, LineageNode, Summary};
pub use list_agents::{ListAgents, WhichAgents, WorkspaceAgents};
pub use list_conversation_messages::{ChatMessages, ListConversationMessages};
pub use list_conversation_summaries::{
    ConversationSummaries, ConversationSummary, ListConversationSummaries,
};
pub use list_conversations::{Conversations, ListConversations};
pub use list_llm_services::{ListLlmServices, LlmServices, WhichLlmServices};
pub use list_memories::{ListMemories, Memories, Memory, WhichMemories};
pub use list_messages::{ListMessages, SessionMessages, WhichMessages};
pub use list_named_agents::{ListNamedAgents, NamedAgents};
pub use list_reranking_services::{
    ListRerankingServices, RerankingServices, WhichRerankingServices,
};
pub use list_sessions::{ListSessions, Sessions, WhichSessions};
pub use list_templates::{AgentTemplates, ListTemplates};
pub use llm_services::{LlmService, OneLlmService};
pub use put_tenant_config::PutTenantConfig;
pub use records::{
    AgentConfig, AgentSummary, Capability, CompactStrategy, Compacted, Cost, Empty, Session,
    SessionMessage, ToolCall, TurnEvent, TurnResult, Usage, decimal,
};
pub use reranking_services::{OneRerankingService, RerankingService};
pub use send_conversation_message::{Exchange, SendConversationMessage, SentContent};
pub use send_message::{SendMessage, SentMessage, WhenBusy};
pub use session_lineage::SessionLineage;
pub use surface::{DEPTH, PARENT, SESSIONS, TENANT, USER};
pub use tenant_config::{TenantChange, TenantConfig, TenantLevels, TenantSettings};
pub use undo_compaction::UndoCompaction;
pub use undo_conversation_compaction::UndoConversationCompaction;
pub use update_agent::{AgentChange, UpdateAgent};
pub use update_conversation::{ConversationChange, UpdateConversation};
pub use update_llm_service::{LlmServiceChange, UpdateLlmService};
pub use update_reranking_service::{RerankingServiceChange, UpdateRerankingService};
pub use workspace_agents::{AgentTemplate, WorkspaceAgent};

/// Does something for each operation with its types.
pub trait Visit {
    /// For one of them.
    fn visit<O: Operation>(&mut self);
}

/// Lists the operations, with their types and without.
macro_rules! operations {
    ($($operation:ident),* $(,)?) => {
        /// What is said of each operation.
        pub const ALL: &[Meta] = &[$($operation::META),*];

        /// Shows all operations to a visitor, in the order of [`ALL`].
        pub fn visit(visitor: &mut impl Visit) {
            $(visitor.visit::<$operation>();)*
        }
    };
}

/// Gives the names of all operations to a macro. Each is declared once, here.
#[macro_export]
macro_rules! each_operation {
    ($with:ident) => {
        $with! {
            ListNamedAgents,
            GetNamedAgent,
            Chat,
            CreateSession,
            ListSessions,
            GetSession,
            DeleteSession,
            ListMessages,
            SendMessage,
            CancelTurn,
            ListAgents,
            CreateAgent,
            GetAgent,
            UpdateAgent,
            DeleteAgent,
            ListTemplates,
            CreateFromTemplate,
            ListConversations,
            CreateConversation,
            GetConversation,
            UpdateConversation,
            DeleteConversation,
            ListConversationMessages,
            SendConversationMessage,
            ListConversationSummaries,
            ExpandConversationSummary,
            UndoConversationCompaction,
            ListLlmServices,
            CreateLlmService,
            GetLlmService,
            UpdateLlmService,
            DeleteLlmService,
            ListRerankingServices,
            CreateRerankingService,
            GetRerankingService,
            UpdateRerankingService,
            DeleteRerankingService,
            CompactSession,
            SessionLineage,
            UndoCompaction,
            ExpandSummary,
            ExportSession,
            ImportSession,
            ListMemories,
            ForgetMemory,
            GetTenantConfig,
            PutTenantConfig,
        }
    };
}

each_operation!(operations);

/// What is said of an operation of a service; `None`: there is no such operation.
pub fn find(service: &str, name: &str) -> Option<&'static Meta> {
    let mut all = ALL.iter();
    all.find(|meta| meta.service == service && meta.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Reads an empty request, and looks whether each declared field is one.
    struct Fields;

    impl Visit for Fields {
        fn visit<O: Operation>(&mut self) {
            let meta = O::META;
            let request = read::<O::Request>(&Object::new());
            let request = request.unwrap_or_else(|why| panic!("{}: {why}", meta.name));
            let known = write(&request).unwrap();
            let beside = meta.headers.iter().chain(meta.query);
            let named = meta.path_fields().chain(beside.map(|one| one.field));
            for field in named {
                assert!(known.contains_key(field), "{}: {field}", meta.name);
            }
        }
    }

    #[test]
    fn every_field_beside_the_body_is_a_field_of_the_request() {
        visit(&mut Fields);
    }

    #[test]
    fn names_and_routes_are_unique() {
        let names: BTreeSet<_> = ALL.iter().map(|meta| (meta.service, meta.name)).collect();
        let routes: BTreeSet<_> = ALL.iter().map(|meta| (meta.method, meta.path)).collect();
        assert_eq!((names.len(), routes.len()), (ALL.len(), ALL.len()));
        assert!(find(SESSIONS, "chat").is_some() && find(SESSIONS, "x").is_none());
    }

    #[test]
    fn an_operation_that_streams_its_answer_asks_models() {
        for meta in ALL.iter().filter(|meta| !meta.stream.is_empty()) {
            assert!(meta.asks_models, "{}", meta.name);
        }
    }
}
