//! What clients ask before anything else: whether somebody is there.

use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde_json::json;

use super::told::answered;
use crate::call::Meta;
use crate::engine::langgraph::shown;
use crate::error::json_response;
use crate::state::Shared;

/// `GET /langgraph/ok`: the gateway answers.
pub(crate) async fn ok() -> Response {
    json_response(StatusCode::OK, &json!({"ok": true}))
}

/// `GET /langgraph/info`: what it is, for whoever has a key.
pub(crate) async fn info(
    State(app): State<Shared>,
    Extension(meta): Extension<Meta>,
    headers: HeaderMap,
) -> Response {
    answered(app, meta, headers, |caller| async move {
        Ok(caller.reply(&shown::server()).await)
    })
    .await
}
