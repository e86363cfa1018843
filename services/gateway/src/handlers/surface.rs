//! The surfaces of the gateway, each with its own form of an error. Here are the errors that no endpoint reports.

use axum::extract::Extension;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};

use super::{compat, langgraph, mcp, operations, read, workspaces};
use crate::call::Meta;
use crate::error::RequestError;
use crate::paths::WORKSPACES;
use crate::spelling::is_below;

/// Which form an error has.
enum Surface {
    /// That of model APIs.
    Models,
    /// That of agents and workspaces, with the name of the field for the id of the request.
    Agents(&'static str),
    /// That of LangGraph.
    Langgraph,
    /// That of the Model Context Protocol.
    Mcp,
}

/// The surface that a path is below.
fn of(path: &str) -> Option<Surface> {
    let surfaces = [
        ("/v1", Surface::Models),
        ("/a1", Surface::Agents(operations::REQUEST_ID)),
        (WORKSPACES, Surface::Agents(workspaces::ID)),
        ("/langgraph", Surface::Langgraph),
        ("/mcp", Surface::Mcp),
    ];
    let mut surfaces = surfaces.into_iter();
    surfaces.find_map(|(base, surface)| is_below(path, base).then_some(surface))
}

/// No endpoint has this path.
pub(crate) async fn nothing(uri: Uri, Extension(meta): Extension<Meta>) -> Response {
    let path = uri.path();
    match of(path) {
        Some(Surface::Models) => compat::nothing(path, &meta),
        Some(Surface::Agents(id_key)) => operations::nothing(id_key, &meta),
        Some(Surface::Langgraph) => langgraph::nothing(&meta),
        Some(Surface::Mcp) | None => (StatusCode::NOT_FOUND, "404: Not Found").into_response(),
    }
}

/// The endpoint does not take this method.
pub(crate) async fn not_allowed(
    uri: Uri,
    headers: HeaderMap,
    Extension(meta): Extension<Meta>,
) -> Response {
    let path = uri.path();
    match of(path) {
        Some(Surface::Models) => compat::not_allowed(path, &headers, &meta),
        Some(Surface::Agents(id_key)) => operations::not_allowed(id_key, &meta),
        Some(Surface::Langgraph) => langgraph::not_allowed(&meta),
        Some(Surface::Mcp) | None => {
            (StatusCode::METHOD_NOT_ALLOWED, "405: Method Not Allowed").into_response()
        }
    }
}

/// The gateway turns the request away before its endpoint sees it.
pub(super) fn refused(path: &str, error: RequestError, id: &str) -> Response {
    match of(path) {
        Some(Surface::Models) => compat::turned_away(path, error, id),
        Some(Surface::Agents(id_key)) => operations::turned_away(id_key, &error, id),
        Some(Surface::Langgraph) => langgraph::turned_away(&error, id),
        Some(Surface::Mcp) => mcp::turned_away(&error),
        None => error.into_response(),
    }
}

/// Refuses a request that is to go on without its caller at a surface that does not read the headers for that.
///
/// # Errors
/// It names the header.
pub(super) fn must_not_detach(path: &str, headers: &HeaderMap) -> Result<(), RequestError> {
    match of(path) {
        // A run goes on there unless its body says otherwise: no word of the header would be honoured.
        Some(Surface::Langgraph) => {
            read::must_not_say(headers, "a run has the field on_disconnect")
        }
        Some(_) => read::must_not_detach(headers),
        None => Ok(()),
    }
}
