//! `POST /api/v1/{kind}` and `POST /api/v1/iam`: services outside flows.

use axum::body::Body as HttpBody;
use axum::extract::{Extension, Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use tokio_util::sync::CancellationToken;

use super::{read, runs, sse, whole::Whole};
use crate::auth::Identity;
use crate::call::{Call, Meta, Target};
use crate::error::RequestError;
use crate::registry::Gate;
use crate::state::{App, Shared};

/// A service by its name.
pub(crate) async fn global(
    State(app): State<Shared>,
    Path(name): Path<String>,
    Extension(meta): Extension<Meta>,
    headers: HeaderMap,
    body: HttpBody,
) -> Response {
    // Identity management has a endpoint of its own.
    let name = if name == "iam" { "" } else { name.as_str() };
    answer(&app, name, meta, &headers, body)
        .await
        .unwrap_or_else(RequestError::into_response)
}

/// Identity management.
pub(crate) async fn iam(
    State(app): State<Shared>,
    Extension(meta): Extension<Meta>,
    headers: HeaderMap,
    body: HttpBody,
) -> Response {
    answer(&app, "iam", meta, &headers, body)
        .await
        .unwrap_or_else(RequestError::into_response)
}

/// A body that cannot be understood is refused before an unknown caller is; so is an unknown operation.
async fn answer(
    app: &App,
    name: &str,
    meta: Meta,
    headers: &HeaderMap,
    body: HttpBody,
) -> Result<Response, RequestError> {
    app.pace.of_address(meta.address)?;
    let caller = app.auth.authenticate(read::bearer(headers)).await;
    if let Ok(identity) = &caller {
        app.pace.of_caller(identity)?;
    }
    let read = read::body(app, headers, body, caller.as_ref().ok()).await;
    let (mut body, question) = match (read, &caller) {
        // Of a key that was refused, or could not be looked at, that is what is said, not how little strangers may send.
        (Err(RequestError::TooLarge { .. }), Err(fault)) if read::bearer(headers).is_some() => {
            app.not_known(read::bearer(headers), fault, &meta);
            return Err(fault.clone());
        }
        (read, _) => read?,
    };
    let target = Target::service(name, &body)?;
    let public = matches!(
        target,
        Target::Service {
            gate: Gate::Public,
            ..
        }
    );
    let identity = match caller {
        Err(_) if public => stranger(),
        caller => caller.inspect_err(|fault| {
            app.not_known(read::bearer(headers), fault, &meta);
        })?,
    };
    let streaming = sse::wanted(headers);
    let whole = Whole::of(target.name(), target.operation(), &body);
    super::flow_service::set_streaming(&mut body, streaming)?;
    let workspace = read::workspace(&body)?;
    let running = match runs::resumed(&target, headers)? {
        Some(request) => runs::join(app, &identity, request, workspace, meta).await?,
        None => {
            let call = Call {
                workspace,
                target,
                body,
                timeout: read::timeout(headers)?,
                leave: read::leave(headers)?,
                whole: !streaming,
                meta,
            };
            app.start(&identity, call, CancellationToken::new()).await?
        }
    };
    let running = running.holding(question);
    let outlet = app.sending.outlet(&identity);
    if streaming {
        return Ok(sse::respond(running, app.options.heartbeat, outlet));
    }
    Ok(whole.respond(running, &outlet).await)
}

/// Whoever calls a public operation.
pub(super) fn stranger() -> Identity {
    Identity::plain("", "default")
}
