//! `GET /api/v1/document-stream`: the bytes of a library document.

use axum::extract::{Extension, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::stream;
use serde::Deserialize;
use serde_json::{Value, json};
use tg_schemas::{Error, ErrorCode};
use tokio_util::sync::CancellationToken;

use super::read;
use crate::ask::Part;
use crate::call::{Call, Leave, Meta, Target};
use crate::engine::translate::{Body, error_body};
use crate::error::{RequestError, json_response, refusal};
use crate::running::Running;
use crate::sending::Outlet;
use crate::state::{App, Shared};

/// Largest chunk a caller may ask for.
const MAX_CHUNK: i64 = tg_schemas::limits::LARGEST_PIECE as i64;

/// The query string.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Wanted {
    document_id: Option<String>,
    workspace: Option<String>,
    chunk_size: Option<String>,
}

/// Streams a document. Nothing is sent before the first chunk is there, so a missing one is a 404.
pub(crate) async fn stream(
    State(app): State<Shared>,
    Query(wanted): Query<Wanted>,
    Extension(meta): Extension<Meta>,
    headers: HeaderMap,
) -> Response {
    let Some(document) = wanted.document_id.clone().filter(|id| !id.is_empty()) else {
        let text = "Missing required parameter: document-id";
        return refusal(StatusCode::BAD_REQUEST, text);
    };
    match open(&app, document, wanted, meta, &headers).await {
        Ok((first, running, outlet)) => respond(first, running, outlet),
        Err(RequestError::Service(error)) => refused(&error),
        Err(fault) => fault.into_response(),
    }
}

async fn open(
    app: &App,
    document: String,
    wanted: Wanted,
    meta: Meta,
    headers: &HeaderMap,
) -> Result<(Bytes, Running, Outlet), RequestError> {
    let identity = app.known(read::bearer(headers), &meta).await?;
    let size: i64 = match wanted.chunk_size.as_deref().unwrap_or("").trim() {
        "" => tg_schemas::limits::STREAM_PIECE as i64,
        text => text.parse().map_err(|_| bad_size())?,
    };
    if !(1..=MAX_CHUNK).contains(&size) {
        return Err(bad_size());
    }
    let body = json!({
        "operation": "stream-document",
        "document-id": document,
        "chunk-size": size,
        "streaming": true,
    });
    let body = body.as_object().cloned().unwrap_or_default();
    let call = Call {
        target: Target::service("librarian", &body)?,
        body,
        workspace: wanted.workspace,
        timeout: None,
        leave: Leave::Cancel,
        whole: false,
        meta,
    };
    let mut running = app.start(&identity, call, CancellationToken::new()).await?;
    let first = match running.next().await {
        Some(part) => content(part).map_err(RequestError::Service)?,
        None => Bytes::new(),
    };
    Ok((first, running, app.sending.outlet(&identity)))
}

fn bad_size() -> RequestError {
    let text = format!("chunk-size: must be a whole number from 1 to {MAX_CHUNK}");
    RequestError::Service(Error::new(ErrorCode::BadRequest, text))
}

fn respond(first: Bytes, running: Running, outlet: Outlet) -> Response {
    let rest = stream::unfold(
        (Some(first), running, false),
        |(first, mut running, failed)| async move {
            if let Some(first) = first {
                return Some((Ok(first), (None, running, false)));
            }
            if failed {
                return None;
            }
            let part = running.next().await?;
            let chunk = content(part).map_err(|error| {
                tracing::warn!(%error, "a document was cut off while it was sent");
                std::io::Error::other(error.message)
            });
            let failed = chunk.is_err();
            Some((chunk, (None, running, failed)))
        },
    );
    let kind = [(header::CONTENT_TYPE, "application/octet-stream")];
    (kind, outlet.body(rest)).into_response()
}

/// The bytes of a part, or its error.
fn content(part: Part) -> Result<Bytes, Error> {
    let body: Body = match part {
        Part::Body { body, .. } => body.into_tree(),
        Part::Error(error) => return Err(error),
    };
    if let Some(error) = body.get("error") {
        return Err(serde_json::from_value(error.clone()).unwrap_or_default());
    }
    let text = body
        .get("content")
        .and_then(Value::as_str)
        .unwrap_or_default();
    STANDARD
        .decode(text.as_bytes())
        .map(Bytes::from)
        .map_err(|_| Error::new(ErrorCode::Internal, "the document cannot be read"))
}

/// The librarian has one type for everything that is wrong with a request; for this endpoint that means:
/// there is no such document.
fn refused(error: &Error) -> Response {
    let code = match error.kind.as_str() {
        "request-error" => ErrorCode::NotFound,
        _ => error.code(),
    };
    let status = StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    json_response(status, &error_body(error))
}
