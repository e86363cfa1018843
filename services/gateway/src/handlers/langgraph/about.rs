//! What clients ask before anything else: whether somebody is there.

use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;

use super::told::answered;
use crate::engine::langgraph::shown;
use crate::error::json_response;
use crate::handlers::asked::Asked;

/// `GET /langgraph/ok`: the gateway answers.
pub(crate) async fn ok() -> Response {
    json_response(StatusCode::OK, &json!({"ok": true}))
}

/// `GET /langgraph/info`: what it is, for whoever has a key.
pub(crate) async fn info(asked: Asked) -> Response {
    answered(asked, |caller| async move {
        Ok(caller.reply(&shown::server()).await)
    })
    .await
}
