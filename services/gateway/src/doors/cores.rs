//! `import-core` and `export-core`: knowledge cores, which this release does not have.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use tg_schemas::{Error, ErrorCode};

use super::read;
use crate::auth::Resource;
use crate::fault::{Fault, json_response};
use crate::registry::Gate;
use crate::state::{App, Shared};
use crate::translate::error_body;

/// Upload of a core.
pub(crate) async fn import(State(app): State<Shared>, headers: HeaderMap) -> Response {
    refuse(&app, &headers).await
}

/// Download of a core.
pub(crate) async fn export(State(app): State<Shared>, headers: HeaderMap) -> Response {
    refuse(&app, &headers).await
}

async fn refuse(app: &App, headers: &HeaderMap) -> Response {
    let admitted = async {
        let identity = app.auth.authenticate(read::bearer(headers)).await?;
        let gate = Gate::Needs("users:admin");
        app.auth
            .authorise(&identity, gate, &Resource::default())
            .await
    };
    match admitted.await {
        Ok(()) => not_built("knowledge cores"),
        Err(fault) => Fault::into_response(fault),
    }
}

/// 501 for what arrives in a later release.
pub(super) fn not_built(what: &str) -> Response {
    let error = Error::new(
        ErrorCode::NotImplemented,
        format!("{what}: not part of this release"),
    );
    json_response(StatusCode::NOT_IMPLEMENTED, &error_body(&error))
}
