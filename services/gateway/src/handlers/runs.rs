//! `GET /api/v1/runs/{run}`: a run of the agent, or another stream that is kept here, from the part on that the client lacks.

use axum::extract::{Extension, Path, Query, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::{read, sse, whole::Whole};
use crate::auth::Identity;
use crate::call::{Call, Leave, Meta, Target};
use crate::engine::translate::{Body, fields::fault};
use crate::error::RequestError;
use crate::registry;
use crate::rejoin;
use crate::running::Running;
use crate::state::{App, Shared};

/// The query string.
#[derive(Debug, Deserialize)]
pub(crate) struct Asked {
    offset: Option<u64>,
    workspace: Option<String>,
    #[serde(default)]
    all: bool,
}

/// As events, or, for who asks for none, as one reply when the run is over.
pub(crate) async fn follow(
    State(app): State<Shared>,
    Path(run): Path<String>,
    Query(asked): Query<Asked>,
    Extension(meta): Extension<Meta>,
    headers: HeaderMap,
) -> Response {
    let outcome = async {
        let identity = app.known(read::bearer(&headers), &meta).await?;
        let mut request = match read::last_event(&headers)? {
            Some(last) if last.get("run").and_then(|id| id.as_str()) != Some(&*run) => {
                return Err(fault("last-event-id", "is of another run").into());
            }
            Some(last) => last,
            None => rejoin::request(&run, asked.offset),
        };
        request.insert("all".to_owned(), asked.all.into());
        let running = join(&app, &identity, request, asked.workspace, meta).await?;
        let outlet = app.sending.outlet(&identity);
        if sse::wanted(&headers) {
            return Ok(sse::respond(running, app.options.heartbeat, outlet));
        }
        // Of another stream it is the last message, as for whoever asked.
        let of = if app.kept.knows(&run) { "" } else { "agent" };
        let whole = Whole::of(of, "", &Body::new());
        Ok(whole.respond(running, &outlet).await)
    };
    outcome.await.unwrap_or_else(RequestError::into_response)
}

/// The request by which a stream goes on, if the client says that it has the beginning.
pub(super) fn resumed(target: &Target, headers: &HeaderMap) -> Result<Option<Body>, RequestError> {
    match target.name() == "agent" || target.is_kept() {
        true => read::last_event(headers),
        false => Ok(None),
    }
}

/// Joins the stream that a request names.
pub(super) async fn join(
    app: &App,
    identity: &Identity,
    request: Body,
    workspace: Option<String>,
    meta: Meta,
) -> Result<Running, RequestError> {
    let call = Call {
        target: Target::service(registry::REQUESTS, &request)?,
        body: request,
        workspace,
        timeout: None,
        leave: Leave::Cancel,
        whole: false,
        meta,
    };
    app.start(identity, call, CancellationToken::new()).await
}
