//! `GET /health/*`: whether the process lives, and whether the default flow serves.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;
use tg_schemas::{FlowId, WorkspaceId};

use crate::error::{RequestError, json_response};
use crate::state::{App, Shared};

/// The process answers.
pub(crate) async fn live() -> Response {
    json_response(StatusCode::OK, &json!({"live": true}))
}

/// 200 when a question to the default flow would be answered; else what is missing. Stores that purge nothing are told
/// beside it: they answer all the same.
pub(crate) async fn ready(State(app): State<Shared>) -> Response {
    let missing = missing(&app);
    let status = if missing.is_empty() {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let body = json!({
        "ready": missing.is_empty(),
        "missing": missing,
        "purging_refused": app.mesh.presence().purging_refused(),
    });
    json_response(status, &body)
}

/// What is said where nothing can be stored: a question is not answered without its trace, and no document goes on.
const FULL: &str = "the disk is full";

fn missing(app: &App) -> Vec<&'static str> {
    let full = app.mesh.presence().disk_full().then_some(FULL);
    full.into_iter().chain(unserved(app)).collect()
}

fn unserved(app: &App) -> Vec<&'static str> {
    if app.closing.is_cancelled() {
        return vec!["the gateway is closing"];
    }
    if app.mesh.config().version() < 0 {
        return vec!["the configuration was not read yet"];
    }
    let (Ok(workspace), Ok(id)) = (WorkspaceId::new("default"), FlowId::new("default")) else {
        return vec!["the default flow"];
    };
    match app.flows.get(&workspace, &id) {
        Ok(flow) => {
            let epoch = flow.epoch.unwrap_or(0);
            let presence = app.mesh.presence();
            if presence.attached("agent-manager", "default", "default", epoch) {
                Vec::new()
            } else {
                vec!["the agent of the default flow is not attached"]
            }
        }
        Err(RequestError::InvalidFlow { .. }) => vec!["the default flow is not started"],
        Err(_) => vec!["the default flow is being stopped"],
    }
}
