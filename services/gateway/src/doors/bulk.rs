//! `GET /api/v1/flow/{flow}/import/{kind}` and `…/export/{kind}`: bulk sockets. Credentials are in the
//! query string; everything that can be refused is refused at the handshake.

use std::sync::Arc;

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Extension, Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use super::cores::not_built;
use super::import::{self, Way};
use super::socket::no_room;
use crate::auth::Identity;
use crate::dispatch::Meta;
use crate::fault::{Fault, json_response, refusal};
use crate::flows::Flow;
use crate::registry::{EXPORTS, Gate, IMPORTS, bulk};
use crate::state::{App, Shared};
use crate::translate::error_body;

/// The query string.
#[derive(Debug, Deserialize)]
pub(crate) struct Wanted {
    token: Option<String>,
    workspace: Option<String>,
    /// Asks for a frame per confirmed batch.
    ack: Option<String>,
}

/// Opens an import.
pub(crate) async fn import(
    State(app): State<Shared>,
    Path((flow, kind)): Path<(String, String)>,
    Query(wanted): Query<Wanted>,
    Extension(meta): Extension<Meta>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Response {
    let admitted = admit(&app, bulk(IMPORTS, &kind), &flow, &wanted).await;
    let (identity, flow) = match admitted {
        Ok(admitted) => admitted,
        Err(fault) => return refused(fault),
    };
    if kind != "triples" {
        return not_built(&format!("import of {kind}"));
    }
    let topic = match flow.input("triples-store") {
        Ok(topic) => topic,
        Err(fault) => return refused(fault),
    };
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(rejection) => return rejection.into_response(),
    };
    let Some(room) = app.socket_room() else {
        return no_room();
    };
    let limit = app.options.limits.frame;
    let way = Way {
        ack: wanted.ack.is_some_and(|ack| ack == "1" || ack == "true"),
        topic,
        flow,
        identity,
        traceparent: meta.traceparent,
    };
    upgrade
        .max_message_size(limit)
        .max_frame_size(limit)
        .on_upgrade(move |socket| {
            let sockets = app.sockets.clone();
            sockets.track_future(async move {
                import::run(&app, socket, way).await;
                drop(room);
            })
        })
}

/// Exports arrive with a later release.
pub(crate) async fn export(
    State(app): State<Shared>,
    Path((flow, kind)): Path<(String, String)>,
    Query(wanted): Query<Wanted>,
) -> Response {
    match admit(&app, bulk(EXPORTS, &kind), &flow, &wanted).await {
        Ok(_) => not_built(&format!("export of {kind}")),
        Err(fault) => refused(fault),
    }
}

async fn admit(
    app: &App,
    capability: Option<&'static str>,
    flow: &str,
    wanted: &Wanted,
) -> Result<(Identity, Arc<Flow>), Fault> {
    let gate = Gate::Needs(capability.ok_or(Fault::UnknownKind)?);
    // There is no anonymous attempt at this door.
    let token = wanted.token.as_deref().filter(|token| !token.is_empty());
    if token.is_none() && !app.auth.open() {
        return Err(Fault::AuthFailure);
    }
    let identity = app.auth.authenticate(token).await?;
    let flow = app
        .flow(&identity, wanted.workspace.as_deref(), flow, gate)
        .await?;
    Ok((identity, flow))
}

/// At a handshake everything has a status.
fn refused(fault: Fault) -> Response {
    match &fault {
        Fault::InvalidFlow { .. } | Fault::KindNotInFlow => {
            refusal(StatusCode::NOT_FOUND, &fault.error().message)
        }
        Fault::Service(error) => {
            let status = StatusCode::from_u16(error.code().status());
            let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            json_response(status, &error_body(error))
        }
        _ => fault.into_response(),
    }
}
