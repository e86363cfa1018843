//! The table of routes. The router is built from it, and the API description is held against it.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware;
use axum::routing::{MethodRouter, delete, get, patch, post};
use tg_schemas::operations::{
    CancelTurn, Chat, CompactSession, CreateAgent, CreateConversation, CreateFromTemplate,
    CreateLlmService, CreateRerankingService, CreateSession, DeleteAgent, DeleteConversation,
    DeleteLlmService, DeleteRerankingService, DeleteSession, ExpandConversationSummary,
    ExpandSummary, ExportSession, ForgetMemory, GetAgent, GetConversation, GetLlmService,
    GetNamedAgent, GetRerankingService, GetSession, GetTenantConfig, ImportSession, ListAgents,
    ListConversationMessages, ListConversationSummaries, ListConversations, ListLlmServices,
    ListMemories, ListMessages, ListNamedAgents, ListRerankingServices, ListSessions,
    ListTemplates, Operation, PutTenantConfig, SendConversationMessage, SendMessage,
    SessionLineage, UndoCompaction, UndoConversationCompaction, UpdateAgent, UpdateConversation,
    UpdateLlmService, UpdateRerankingService,
};

use crate::handlers::{
    auth, bulk, compat, cores, cors, documents, edge, flow_service, graph_store, health, i18n,
    langgraph, mcp, metrics, oauth, operations, page, protected_resource, runs, service, socket,
    sparql, surface, workspaces,
};
use crate::paths::{AUTHORIZE, EXPORT, IMPORT, WORKSPACES};
use crate::state::Shared;

/// One route.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// HTTP method.
    pub method: &'static str,
    /// Path pattern.
    pub path: &'static str,
    /// It serves what was built into the program, and no data.
    pub page: bool,
    endpoint: fn() -> MethodRouter<Shared>,
}

const fn on_page(path: &'static str, endpoint: fn() -> MethodRouter<Shared>) -> Route {
    Route {
        page: true,
        ..on_get(path, endpoint)
    }
}

const fn on_get(path: &'static str, endpoint: fn() -> MethodRouter<Shared>) -> Route {
    Route {
        method: "GET",
        path,
        page: false,
        endpoint,
    }
}

const fn on_post(path: &'static str, endpoint: fn() -> MethodRouter<Shared>) -> Route {
    Route {
        method: "POST",
        path,
        page: false,
        endpoint,
    }
}

const fn on_delete(path: &'static str, endpoint: fn() -> MethodRouter<Shared>) -> Route {
    Route {
        method: "DELETE",
        path,
        page: false,
        endpoint,
    }
}

const fn on_patch(path: &'static str, endpoint: fn() -> MethodRouter<Shared>) -> Route {
    Route {
        method: "PATCH",
        path,
        page: false,
        endpoint,
    }
}

/// An operation as a type, which says its own method and path.
const fn on<O: Operation>() -> Route {
    Route {
        method: O::META.method,
        path: O::META.path,
        page: false,
        endpoint: operations::route::<O>,
    }
}

/// The same operation, answered with events.
const fn streamed<O: Operation>() -> Route {
    Route {
        method: O::META.method,
        path: O::META.stream,
        page: false,
        endpoint: operations::stream_route::<O>,
    }
}

/// The endpoints of the standards for graphs.
const SPARQL: &str = "/api/v1/flow/{flow}/sparql/{collection}";
const GRAPH_STORE: &str = "/api/v1/flow/{flow}/graph/{collection}";

/// One workspace.
const ONE_WORKSPACE: &str = "/api/v1/workspaces/{workspace}";

/// Every route of the gateway.
pub const ROUTES: &[Route] = &[
    on_post("/api/v1/auth/login", || post(auth::login)),
    on_post("/api/v1/auth/bootstrap", || post(auth::bootstrap)),
    on_post("/api/v1/auth/bootstrap-status", || {
        post(auth::bootstrap_status)
    }),
    on_post("/api/v1/auth/change-password", || {
        post(auth::change_password)
    }),
    on_post("/api/v1/iam", || post(service::iam)),
    on_get("/api/v1/i18n/packs/{lang}", || get(i18n::pack)),
    on_get("/api/metrics", || get(metrics::text)),
    on_get("/api/metrics/", || get(metrics::text)),
    on_get("/api/metrics/{*path}", || get(metrics::query)),
    on_post("/api/v1/{kind}", || post(service::global)),
    on_get("/api/v1/runs/{run}", || get(runs::follow)),
    on_get("/api/v1/socket", || get(socket::open)),
    on_get("/api/socket", || get(socket::open)),
    on_post("/api/v1/flow/{flow}/service/thru/{interface}", || {
        post(flow_service::thru)
    }),
    on_post("/api/v1/flow/{flow}/service/{kind}", || {
        post(flow_service::kind)
    }),
    on_get(IMPORT, || get(bulk::import)),
    on_post(IMPORT, || post(bulk::import_lines)),
    on_get(EXPORT, || get(bulk::export)),
    on_get(SPARQL, || get(sparql::get)),
    on_post(SPARQL, || post(sparql::post)),
    on_get(GRAPH_STORE, || get(graph_store::get)),
    on_post(GRAPH_STORE, || post(graph_store::post)),
    on_get(WORKSPACES, || get(workspaces::list)),
    on_post(WORKSPACES, || post(workspaces::create)),
    on_get(ONE_WORKSPACE, || get(workspaces::one)),
    on_patch(ONE_WORKSPACE, || patch(workspaces::update)),
    on_delete(ONE_WORKSPACE, || delete(workspaces::remove)),
    on_post("/api/v1/import-core", || post(cores::import)),
    on_get("/api/v1/export-core", || get(cores::export)),
    on_get("/api/v1/document-stream", || get(documents::stream)),
    on_post("/v1/chat/completions", || post(compat::chat)),
    on_post("/v1/completions", || post(compat::completions)),
    on_post("/v1/messages", || post(compat::messages)),
    on_post("/v1/messages/count_tokens", || post(compat::count_tokens)),
    on_post("/v1/responses", || post(compat::responses)),
    on_get("/v1/responses/{response_id}", || get(compat::read_response)),
    on_delete("/v1/responses/{response_id}", || {
        delete(compat::delete_response)
    }),
    on_post("/v1/responses/{response_id}/cancel", || {
        post(compat::cancel_response)
    }),
    on_post("/v1/embeddings", || post(compat::embed)),
    on_get("/v1/models", || get(compat::list)),
    on_get("/v1/models/health", || get(compat::health)),
    on_get("/v1/models/{*model}", || get(compat::one)),
    on_get("/v1/usage", || get(compat::used)),
    on::<ListNamedAgents>(),
    on::<GetNamedAgent>(),
    on::<Chat>(),
    on::<CreateSession>(),
    on::<ListSessions>(),
    on::<GetSession>(),
    on::<DeleteSession>(),
    on::<ListMessages>(),
    on::<SendMessage>(),
    on::<CancelTurn>(),
    on::<ListAgents>(),
    on::<CreateAgent>(),
    on::<GetAgent>(),
    on::<UpdateAgent>(),
    on::<DeleteAgent>(),
    on::<ListTemplates>(),
    on::<CreateFromTemplate>(),
    on::<ListConversations>(),
    on::<CreateConversation>(),
    on::<GetConversation>(),
    on::<UpdateConversation>(),
    on::<DeleteConversation>(),
    on::<ListConversationMessages>(),
    on::<SendConversationMessage>(),
    on::<ListConversationSummaries>(),
    on::<ExpandConversationSummary>(),
    on::<UndoConversationCompaction>(),
    on::<ListLlmServices>(),
    on::<CreateLlmService>(),
    on::<GetLlmService>(),
    on::<UpdateLlmService>(),
    on::<DeleteLlmService>(),
    on::<ListRerankingServices>(),
    on::<CreateRerankingService>(),
    on::<GetRerankingService>(),
    on::<UpdateRerankingService>(),
    on::<DeleteRerankingService>(),
    streamed::<SendConversationMessage>(),
    streamed::<SendMessage>(),
    streamed::<Chat>(),
    on::<CompactSession>(),
    on::<SessionLineage>(),
    on::<UndoCompaction>(),
    on::<ExpandSummary>(),
    on::<ExportSession>(),
    on::<ImportSession>(),
    on::<ListMemories>(),
    on::<ForgetMemory>(),
    on::<GetTenantConfig>(),
    on::<PutTenantConfig>(),
    on_get("/langgraph/ok", || get(langgraph::ok)),
    on_get("/langgraph/info", || get(langgraph::info)),
    on_post("/langgraph/assistants/search", || post(langgraph::search)),
    on_get("/langgraph/assistants/{assistant_id}", || {
        get(langgraph::assistant)
    }),
    on_post("/langgraph/threads", || post(langgraph::begin)),
    on_post("/langgraph/threads/search", || post(langgraph::find)),
    on_get("/langgraph/threads/{thread_id}", || get(langgraph::thread)),
    on_delete("/langgraph/threads/{thread_id}", || {
        delete(langgraph::delete)
    }),
    on_post("/langgraph/threads/{thread_id}/copy", || {
        post(langgraph::copy)
    }),
    on_get("/langgraph/threads/{thread_id}/state", || {
        get(langgraph::state)
    }),
    on_post("/langgraph/threads/{thread_id}/history", || {
        post(langgraph::history)
    }),
    on_get("/langgraph/threads/{thread_id}/runs", || {
        get(langgraph::list)
    }),
    on_post("/langgraph/threads/{thread_id}/runs", || {
        post(langgraph::create)
    }),
    on_post("/langgraph/threads/{thread_id}/runs/stream", || {
        post(langgraph::stream)
    }),
    on_post("/langgraph/threads/{thread_id}/runs/wait", || {
        post(langgraph::wait)
    }),
    on_get("/langgraph/threads/{thread_id}/runs/{run_id}", || {
        get(langgraph::one)
    }),
    on_post(
        "/langgraph/threads/{thread_id}/runs/{run_id}/cancel",
        || post(langgraph::cancel),
    ),
    on_get("/langgraph/threads/{thread_id}/runs/{run_id}/join", || {
        get(langgraph::join)
    }),
    on_get(
        "/langgraph/threads/{thread_id}/runs/{run_id}/stream",
        || get(langgraph::stream_joined),
    ),
    on_post("/langgraph/runs/wait", || post(langgraph::stateless)),
    on_post("/langgraph/runs/stream", || {
        post(langgraph::stateless_stream)
    }),
    on_post("/mcp", || post(mcp::post)),
    on_get("/.well-known/oauth-protected-resource", || {
        get(protected_resource::metadata)
    }),
    on_get("/.well-known/oauth-protected-resource/mcp", || {
        get(protected_resource::metadata)
    }),
    on_get("/.well-known/oauth-authorization-server", || {
        get(oauth::metadata)
    }),
    on_post("/oauth/register", || post(oauth::register)),
    on_get(AUTHORIZE, || get(oauth::ask)),
    on_post(AUTHORIZE, || post(oauth::sign_in)),
    on_post("/oauth/token", || post(oauth::token)),
    on_get("/health/live", || get(health::live)),
    on_get("/health/ready", || get(health::ready)),
    on_get("/metrics", || get(metrics::text)),
    on_page("/", || get(page::console)),
    // By this name the official status check looks for a page.
    on_page("/index.html", || get(page::console)),
    on_page("/docs", || get(page::docs)),
    on_page("/assets/{file}", || get(page::file)),
    on_page("/openapi.yaml", || get(page::openapi)),
    on_page("/asyncapi.yaml", || get(page::asyncapi)),
];

/// The router, with what surrounds every request.
pub(crate) fn router(app: Shared) -> Router {
    let mut router = Router::new();
    for route in ROUTES {
        router = router.route(route.path, (route.endpoint)());
    }
    router
        .fallback(surface::nothing)
        .method_not_allowed_fallback(surface::not_allowed)
        // Endpoints read bodies themselves, with the limit of the options.
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn(edge::check_leave))
        .layer(middleware::from_fn_with_state(app.clone(), edge::guard))
        .layer(middleware::from_fn_with_state(app.clone(), cors::allow))
        .layer(middleware::from_fn(edge::trace))
        .with_state(app)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths;

    #[test]
    fn every_operation_that_is_a_type_has_its_route() {
        let routes: Vec<_> = ROUTES.iter().map(|one| (one.method, one.path)).collect();
        for meta in tg_schemas::operations::ALL {
            assert!(routes.contains(&(meta.method, meta.path)), "{}", meta.name);
            let streamed = meta.stream.is_empty() || routes.contains(&(meta.method, meta.stream));
            assert!(streamed, "{}", meta.stream);
        }
    }

    #[test]
    fn what_is_open_to_links_is_the_page_and_nothing_else() {
        for route in ROUTES {
            let page = paths::is_of_page(route.path);
            assert_eq!(route.page, page, "{}", route.path);
        }
        assert_eq!(
            ROUTES.iter().filter(|route| route.page).count(),
            paths::PAGES.len()
        );
    }
}
