//! `/api/v1/flow/{flow}/import/{kind}` and `…/export/{kind}`: bulk data, as WebSockets or as lines of JSON
//! over plain HTTP. Everything that can be refused is refused before anything is read.
//!
//! Sockets carry their credential in the query string, plain requests in the header as everywhere.

use std::sync::Arc;

use axum::body::Body as HttpBody;
use axum::extract::{Extension, Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use tg_clients::neighbours::Neighbours;
use tg_mesh::TaskKind;

use super::export;
use super::intake::Way;
use super::narrow::FrameGate;
use super::stored::Filter;
use super::upgrade::{self, Socket};
use super::{import, ndjson, read};
use crate::auth::{Identity, Lapse, Resource};
use crate::budget::{Reader, UNCOUNTED};
use crate::call::Meta;
use crate::engine::translate::bulk::BulkKind;
use crate::engine::translate::error_body;
use crate::engine::translate::fields::fault;
use crate::error::{RequestError, json_response, refusal};
use crate::flows::Flow;
use crate::registry::{EXPORTS, Gate, IMPORTS, Unknown, bulk};
use crate::state::{App, Shared};

/// The query string.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Wanted {
    token: Option<String>,
    workspace: Option<String>,
    /// Import: asks for a frame per confirmed batch.
    ack: Option<String>,
    /// Import: waits until stores have settled what was sent.
    settled: Option<String>,
    /// Import: `skip` goes on after a faulty frame.
    errors: Option<String>,
    /// Export: what is stored instead of what passes.
    stored: Option<String>,
    /// Export: only this collection.
    collection: Option<String>,
    /// Export of what is stored: only this graph.
    graph: Option<String>,
}

impl Wanted {
    /// Nothing but a workspace, and whether an import waits for the stores.
    pub(super) fn of(workspace: Option<String>, settled: Option<String>) -> Self {
        Self {
            workspace,
            settled,
            ..Self::default()
        }
    }
}

/// Opens an import socket.
pub(crate) async fn import(
    State(app): State<Shared>,
    Path((flow, kind)): Path<(String, String)>,
    Query(wanted): Query<Wanted>,
    Extension(meta): Extension<Meta>,
    mut request: Request,
) -> Response {
    let way = match way(&app, (&flow, &kind), &wanted, meta, request.headers()).await {
        Ok(way) => way,
        Err(fault) => return refused(fault),
    };
    let whose = (
        Reader::known(&way.identity),
        app.options.settings.frame_bytes,
    );
    as_socket(&app, &mut request, whose, |app, socket, gate| async move {
        import::run(&app, socket, &gate, way).await;
    })
}

/// Turns a request into a socket of bulk data: whose it is, and how large its messages may be.
fn as_socket<F: Future<Output = ()> + Send + 'static>(
    app: &Shared,
    request: &mut Request,
    (reader, limit): (Reader, usize),
    serve: impl FnOnce(Shared, Socket, Arc<FrameGate>) -> F + Send + 'static,
) -> Response {
    let (response, upgraded) = match upgrade::accept(request) {
        Ok(accepted) => accepted,
        Err(refused) => return refused.into_response(),
    };
    let (sockets, mesh, app) = (app.sockets.clone(), app.mesh.clone(), app.clone());
    let served = async move {
        let Ok(upgraded) = upgraded.await else {
            return;
        };
        let (socket, gate) = upgrade::socket(&app, upgraded, Some(reader), limit).await;
        serve(app, socket, gate).await;
    };
    mesh.spawn(TaskKind::Connection, sockets.track_future(served));
    response
}

/// Takes lines of JSON, each a frame, and answers with counters.
pub(crate) async fn import_lines(
    State(app): State<Shared>,
    Path((flow, kind)): Path<(String, String)>,
    Query(wanted): Query<Wanted>,
    Extension(meta): Extension<Meta>,
    headers: HeaderMap,
    body: HttpBody,
) -> Response {
    let way = match way(&app, (&flow, &kind), &wanted, meta, &headers).await {
        Ok(way) => way,
        Err(fault) => return refused(fault),
    };
    ndjson::import(&app, body, way).await
}

/// Opens an export: a socket, or for a plain request lines of JSON.
pub(crate) async fn export(
    State(app): State<Shared>,
    Path((flow, kind)): Path<(String, String)>,
    Query(wanted): Query<Wanted>,
    Extension(meta): Extension<Meta>,
    mut request: Request,
) -> Response {
    let headers = request.headers();
    let opened = async {
        let unknown = RequestError::Unknown(Unknown::Export);
        let capability = bulk(EXPORTS, &kind).ok_or_else(|| unknown.clone())?;
        let kind = BulkKind::named(&kind).ok_or(unknown)?;
        let Admitted {
            identity,
            flow,
            generation,
            lapse,
        } = admit(&app, capability, &flow, &wanted, &meta, headers).await?;
        let filter = Filter {
            stored: switch("stored", wanted.stored.as_deref())?,
            collection: wanted.collection.clone().filter(|name| !name.is_empty()),
            graph: wanted.graph.clone(),
        };
        let room = app.socket_room(&identity, meta.address)?;
        let from = export::Source {
            flow: flow.clone(),
            generation,
            identity,
        };
        let export = export::open(&app, kind, from, filter, &meta).await?;
        Ok((export, flow, lapse, room))
    };
    let (export, flow, lapse, room) = match opened.await {
        Ok(opened) => opened,
        Err(fault) => return refused(fault),
    };
    if !headers.contains_key(header::UPGRADE) {
        return ndjson::export(&app, export, flow, lapse, room);
    }
    // What its client sends means nothing.
    let whose = (export.outlet.reader().clone(), UNCOUNTED);
    as_socket(&app, &mut request, whose, |app, socket, _| async move {
        export::run(&app, socket, export, flow, lapse).await;
        drop(room);
    })
}

/// Where an import goes, once it may.
pub(super) async fn way(
    app: &App,
    (flow, kind): (&str, &str),
    wanted: &Wanted,
    meta: Meta,
    headers: &HeaderMap,
) -> Result<Way, RequestError> {
    let unknown = RequestError::Unknown(Unknown::Import);
    let capability = bulk(IMPORTS, kind).ok_or_else(|| unknown.clone())?;
    let kind = BulkKind::named(kind).ok_or(unknown)?;
    let admitted = admit(app, capability, flow, wanted, &meta, headers).await?;
    let skips = match wanted.errors.as_deref() {
        None | Some("") => None,
        Some("stop") => Some(false),
        Some("skip") => Some(true),
        Some(_) => return Err(fault("errors", "must be stop or skip").into()),
    };
    let settled = switch("settled", wanted.settled.as_deref())?;
    Ok(Way {
        settled: settled && Neighbours::of(&app.mesh).give_receipts(),
        _room: app.socket_room(&admitted.identity, meta.address)?,
        topic: admitted.flow.input(kind.interface())?,
        ack: switch("ack", wanted.ack.as_deref())?,
        skips,
        kind,
        flow: admitted.flow,
        generation: admitted.generation,
        identity: admitted.identity,
        lapse: admitted.lapse,
        traceparent: meta.traceparent,
        request_id: meta.request_id,
    })
}

fn switch(name: &str, value: Option<&str>) -> Result<bool, RequestError> {
    match value {
        None | Some("" | "0" | "false") => Ok(false),
        Some("1" | "true") => Ok(true),
        Some(_) => Err(fault(name, "must be true or false").into()),
    }
}

/// Who came in, and where to.
pub(super) struct Admitted {
    pub(super) identity: Identity,
    pub(super) flow: Arc<Flow>,
    /// Of the workspace.
    pub(super) generation: i64,
    pub(super) lapse: Lapse,
}

pub(super) async fn admit(
    app: &App,
    capability: &'static str,
    id: &str,
    wanted: &Wanted,
    meta: &Meta,
    headers: &HeaderMap,
) -> Result<Admitted, RequestError> {
    // There is no anonymous attempt at these endpoints.
    let token = wanted.token.as_deref().filter(|token| !token.is_empty());
    let token = token.or_else(|| read::bearer(headers));
    if token.is_none() && !app.auth.open() {
        let fault = RequestError::AuthFailure;
        app.not_known(token, &fault, meta);
        return Err(fault);
    }
    let identity = app.known(token, meta).await?;
    let named = wanted.workspace.as_deref().filter(|name| !name.is_empty());
    let asked = app.asked_for(
        &identity,
        (capability, operation(capability)),
        named.unwrap_or(&identity.workspace),
        meta,
    );
    let gate = Gate::Needs(capability);
    let admitted = app.flow(&identity, named, id, gate).await;
    app.decided(asked, admitted.as_ref().err());
    let (flow, generation) = admitted?;
    let resource = Resource::flow(flow.workspace.as_str(), id);
    let lapse = app.auth.lapse(&identity, Gate::Needs(capability), resource);
    Ok(Admitted {
        identity,
        flow,
        generation,
        lapse,
    })
}

/// What is written down that somebody did.
fn operation(capability: &str) -> String {
    match capability.split_once(':') {
        Some((kind, "write")) => format!("import/{kind}"),
        Some((kind, _)) => format!("export/{kind}"),
        None => capability.to_owned(),
    }
}

/// At a handshake everything has a status.
pub(super) fn refused(fault: RequestError) -> Response {
    match &fault {
        RequestError::InvalidFlow { .. } | RequestError::KindNotInFlow => {
            refusal(StatusCode::NOT_FOUND, &fault.error().message)
        }
        RequestError::Service(error) => {
            let status = StatusCode::from_u16(error.code().status());
            let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            json_response(status, &error_body(error))
        }
        _ => fault.into_response(),
    }
}
