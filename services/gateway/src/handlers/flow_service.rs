//! `POST /api/v1/flow/{flow}/service/{kind}` and `…/thru/{interface}`: services of a flow.

use axum::body::Body as HttpBody;
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use tg_schemas::ErrorCode;
use tokio_util::sync::CancellationToken;

use super::{read, runs, sse, whole::Whole};
use crate::call::{Call, Meta, Target};
use crate::engine::translate::{Body, Fields};
use crate::error::{RequestError, failed, refusal};
use crate::state::{App, Shared};

/// A kind of service.
pub(crate) async fn kind(
    State(app): State<Shared>,
    Path((flow, kind)): Path<(String, String)>,
    Extension(meta): Extension<Meta>,
    headers: HeaderMap,
    body: HttpBody,
) -> Response {
    answer(&app, Target::kind(&kind, &flow), meta, &headers, body).await
}

/// Any interface.
pub(crate) async fn thru(
    State(app): State<Shared>,
    Path((flow, interface)): Path<(String, String)>,
    Extension(meta): Extension<Meta>,
    headers: HeaderMap,
    body: HttpBody,
) -> Response {
    let target = Target::kind(&format!("thru/{interface}"), &flow);
    answer(&app, target, meta, &headers, body).await
}

async fn answer(
    app: &App,
    target: Result<Target, RequestError>,
    meta: Meta,
    headers: &HeaderMap,
    body: HttpBody,
) -> Response {
    let outcome = async {
        let target = target?;
        let identity = app.known(read::bearer(headers), &meta).await?;
        let (mut body, question) = read::body(app, headers, body, Some(&identity)).await?;
        let streaming = sse::wanted(headers);
        let whole = Whole::of(target.name(), "", &body);
        if let Some(request) = runs::resumed(&target, headers)? {
            let running = runs::join(app, &identity, request, read::workspace(&body)?, meta);
            let running = running.await?.holding(question);
            let outlet = app.sending.outlet(&identity);
            return Ok(match streaming {
                true => sse::respond(running, app.options.heartbeat, outlet),
                false => whole.respond(running, &outlet).await,
            });
        }
        let untouched = target.name() == "thru";
        if !untouched {
            set_streaming(&mut body, streaming)?;
        }
        let call = Call {
            workspace: read::workspace(&body)?,
            target,
            body,
            timeout: read::timeout(headers)?,
            leave: read::leave(headers)?,
            whole: !streaming,
            meta,
        };
        let running = app.start(&identity, call, CancellationToken::new()).await?;
        let running = running.holding(question);
        let outlet = app.sending.outlet(&identity);
        if streaming {
            return Ok(sse::respond(running, app.options.heartbeat, outlet));
        }
        Ok(whole.respond(running, &outlet).await)
    };
    match outcome.await {
        Ok(response) => response,
        // This endpoint answers with status 200 where others say 400, as clients of it expect.
        Err(fault @ (RequestError::InvalidJson(_) | RequestError::NotAnObject)) => {
            let response = refusal(StatusCode::OK, &fault.error().message);
            failed(response, ErrorCode::BadRequest)
        }
        Err(fault) => fault.into_response(),
    }
}

/// Only the last message of an answer leaves this endpoint, so it must not be the last of many pieces. Who
/// asks for events wants pieces, unless they say otherwise.
pub(super) fn set_streaming(body: &mut Body, events: bool) -> Result<(), RequestError> {
    let asked = Fields::new(body).flag_or("streaming", events)?;
    if events || body.contains_key("streaming") {
        body.insert("streaming".into(), Value::Bool(asked && events));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pieces_only_for_those_who_take_events() {
        let set = |value: Value, events| {
            let mut body = value.as_object().cloned().unwrap();
            set_streaming(&mut body, events).map(|()| Value::Object(body))
        };
        assert_eq!(
            set(json!({"streaming": true}), false),
            Ok(json!({"streaming": false}))
        );
        assert_eq!(set(json!({}), false), Ok(json!({})));
        assert_eq!(set(json!({}), true), Ok(json!({"streaming": true})));
        assert_eq!(
            set(json!({"streaming": false}), true),
            Ok(json!({"streaming": false}))
        );
        assert!(set(json!({"streaming": 3}), true).is_err());
    }
}
