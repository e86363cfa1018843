//! Why an endpoint turned a request away, in the words of HTTP and of the socket; and why the gateway did not start.

use std::net::SocketAddr;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde_json::{Value, json};
use tg_schemas::{Error, ErrorCode};
use tg_tls::FileError;

use crate::engine::translate::{error_body, error_value};
use crate::registry::Unknown;

/// The credential may be good; it cannot be said now.
const UNCHECKED: &str = "credentials cannot be checked at the moment; try again";

/// An agent's model is not known before it answers.
const MODEL_NOT_ALLOWED: &str =
    "this key may ask only for the models that its scopes name, so it may not ask an agent";

/// Refusals of the endpoints. Errors of services come as [`RequestError::Service`].
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RequestError {
    /// The body is no JSON.
    InvalidJson(String),
    /// The body is no object.
    NotAnObject,
    /// No `operation`.
    MissingOperation,
    /// No such service, operation or kind.
    Unknown(Unknown),
    /// Whoever asks is not known; the reason stays inside.
    AuthFailure,
    /// Whoever asks may be known: the iam service cannot say at the moment.
    Unchecked,
    /// Whoever asks may not.
    AccessDenied,
    /// The key names the models that it may ask for, and an agent chooses its own.
    ModelNotAllowed,
    /// No such workspace.
    WorkspaceNotFound,
    /// No such flow in a workspace that the caller may use.
    InvalidFlow {
        /// Workspace.
        workspace: String,
        /// Flow id.
        flow: String,
    },
    /// The flow has no such interface.
    KindNotInFlow,
    /// A socket frame without its mandatory keys.
    BadMessage(&'static str),
    /// The body is larger than the limit.
    TooLarge {
        /// Limit in bytes.
        limit: usize,
    },
    /// No more sockets: of this caller, or at all.
    NoRoom(&'static str),
    /// One request more than may be made in a second.
    Slowed {
        /// Whose requests are too many, in a word.
        whose: &'static str,
        /// In how many seconds there may be another.
        seconds: u64,
    },
    /// Everything that has a type and a message of its own.
    Service(Error),
}

impl From<Error> for RequestError {
    fn from(error: Error) -> Self {
        Self::Service(error)
    }
}

impl RequestError {
    /// A limit on work in progress is reached.
    pub(crate) fn busy(what: &str) -> Self {
        Self::Service(Error::new(
            ErrorCode::Busy,
            format!("too many requests in progress {what}; try again when some have ended"),
        ))
    }

    /// Type and message on a socket.
    pub(crate) fn error(&self) -> Error {
        let (kind, message) = match self {
            Self::InvalidJson(detail) => ("error", format!("invalid JSON: {detail}")),
            Self::NotAnObject => ("error", "Bad message: must be an object".into()),
            Self::MissingOperation => ("unknown-service", "unknown service".into()),
            Self::Unknown(what) => {
                let known = what.known();
                ("unknown-service", format!("unknown service{known}"))
            }
            Self::AuthFailure => ("auth-required", "auth failure".into()),
            Self::Unchecked => ("unavailable", UNCHECKED.into()),
            Self::AccessDenied => ("access-denied", "access denied".into()),
            Self::ModelNotAllowed => ("access-denied", MODEL_NOT_ALLOWED.into()),
            Self::WorkspaceNotFound => ("workspace-not-found", "workspace not found".into()),
            Self::InvalidFlow { workspace, flow } => {
                ("error", format!("Invalid flow {workspace}/{flow}"))
            }
            Self::KindNotInFlow => ("error", "This kind not supported by flow".into()),
            Self::BadMessage(why) => ("error", format!("Bad message: {why}")),
            Self::TooLarge { limit } => ("too-large", format!("larger than {limit} bytes")),
            Self::NoRoom(whose) => {
                let text = format!("too many open sockets {whose}; try again when some are closed");
                return Error::new(ErrorCode::Busy, text);
            }
            Self::Slowed { whose, seconds } => {
                let unit = if *seconds == 1 { "second" } else { "seconds" };
                let text = format!(
                    "too many requests a second of this {whose}; try again in {seconds} {unit}"
                );
                return Error::new(ErrorCode::Busy, text);
            }
            Self::Service(error) => return error.clone(),
        };
        Error::typed(kind, message)
    }

    /// A socket frame that ends a request.
    pub(crate) fn frame(&self, id: Option<&Value>) -> Value {
        error_frame(&self.error(), id)
    }

    /// Label in metrics.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Self::AuthFailure => ErrorCode::Unauthenticated.as_str(),
            Self::Unchecked => ErrorCode::Unavailable.as_str(),
            Self::AccessDenied | Self::ModelNotAllowed => ErrorCode::Forbidden.as_str(),
            Self::WorkspaceNotFound | Self::InvalidFlow { .. } => ErrorCode::NotFound.as_str(),
            Self::Unknown(Unknown::Kind | Unknown::Import | Unknown::Export) => {
                ErrorCode::NotFound.as_str()
            }
            Self::TooLarge { .. } => ErrorCode::TooLarge.as_str(),
            Self::NoRoom(_) | Self::Slowed { .. } => ErrorCode::Busy.as_str(),
            Self::Service(error) => error.code().as_str(),
            _ => ErrorCode::BadRequest.as_str(),
        }
    }
}

/// Why the gateway did not start. For operators, never shown to clients.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// No authentication on an address that others can reach.
    #[error(
        "refusing to listen on {listen} without authentication: anybody on the network could do \
         everything. Either switch authentication on (--auth iam) or listen on a loopback address \
         (--listen 127.0.0.1:{port})", port = listen.port()
    )]
    Open {
        /// The address asked for.
        listen: SocketAddr,
    },
    /// A listener that asks for no credentials on an address that others can reach.
    #[error(
        "refusing to tell metrics on {listen}: this listener asks for no credentials; set metrics.listen to a loopback \
         address such as 127.0.0.1:{port}", port = listen.port()
    )]
    Exposed {
        /// The address asked for.
        listen: SocketAddr,
    },
    /// The certificate or its key cannot be used.
    #[error("gateway.tls_{0}")]
    Certificate(#[from] FileError),
    /// Somebody else listens there.
    #[error(
        "another program listens on {listen} already; is another threadgraph running? Another address is chosen with \
         {setting}"
    )]
    Taken {
        /// The address asked for.
        listen: SocketAddr,
        /// What says it.
        setting: &'static str,
    },
    /// The address cannot be used.
    #[error("cannot listen on {listen}")]
    Bind {
        /// The address asked for.
        listen: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
}

impl GatewayError {
    /// From a listener that cannot be opened at an address; `setting` says which one it is.
    pub(crate) fn bind(listen: SocketAddr, setting: &'static str, source: std::io::Error) -> Self {
        match source.kind() {
            std::io::ErrorKind::AddrInUse => Self::Taken { listen, setting },
            _ => Self::Bind { listen, source },
        }
    }
}

/// A frame that carries only an error.
pub(crate) fn error_frame(error: &Error, id: Option<&Value>) -> Value {
    let mut frame = json!({"error": error_value(error), "complete": true});
    if let Some(id) = id {
        frame["id"] = id.clone();
    }
    frame
}

/// `{"error": "text"}` with a status.
pub(crate) fn refusal(status: StatusCode, text: &str) -> Response {
    json_response(status, &json!({"error": text}))
}

/// What a response with status 200 reports, for who asked for a status that says so.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Failed(ErrorCode);

impl Failed {
    /// The status.
    pub(crate) fn status(self) -> StatusCode {
        StatusCode::from_u16(self.0.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

/// A response of status 200 that reports an error.
pub(crate) fn failed(mut response: Response, code: ErrorCode) -> Response {
    response.extensions_mut().insert(Failed(code));
    response
}

/// The same of an error that may name a pause.
pub(crate) fn failed_with(mut response: Response, error: &Error) -> Response {
    if let Some(seconds) = error.pause() {
        let headers = response.headers_mut();
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    failed(response, error.code())
}

/// A JSON response with the content type of the contract.
pub(crate) fn json_response<T: serde::Serialize>(status: StatusCode, body: &T) -> Response {
    as_json((status, Json(body)).into_response())
}

/// The same of JSON that is written already.
pub(crate) fn json_written(status: StatusCode, text: Bytes) -> Response {
    as_json((status, text).into_response())
}

fn as_json(mut response: Response) -> Response {
    let kind = HeaderValue::from_static("application/json; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

impl IntoResponse for RequestError {
    /// Errors of services come with status 200, as every official client expects.
    fn into_response(self) -> Response {
        match &self {
            Self::InvalidJson(_) => refusal(StatusCode::BAD_REQUEST, "invalid json"),
            Self::NotAnObject => refusal(StatusCode::BAD_REQUEST, "body must be an object"),
            Self::MissingOperation => refusal(StatusCode::BAD_REQUEST, "missing operation"),
            Self::Unknown(what @ (Unknown::Service | Unknown::Operation(_))) => {
                let text = format!("unknown operation{}", what.known());
                refusal(StatusCode::BAD_REQUEST, &text)
            }
            Self::Unknown(what) => {
                let text = format!("unknown kind{}", what.known());
                refusal(StatusCode::NOT_FOUND, &text)
            }
            Self::BadMessage(why) => refusal(StatusCode::BAD_REQUEST, why),
            Self::AuthFailure => refusal(StatusCode::UNAUTHORIZED, "auth failure"),
            Self::Unchecked => refusal(StatusCode::SERVICE_UNAVAILABLE, UNCHECKED),
            Self::AccessDenied => refusal(StatusCode::FORBIDDEN, "access denied"),
            Self::ModelNotAllowed => refusal(StatusCode::FORBIDDEN, MODEL_NOT_ALLOWED),
            Self::WorkspaceNotFound => refusal(StatusCode::NOT_FOUND, "workspace not found"),
            Self::InvalidFlow { .. } | Self::KindNotInFlow => {
                let response = refusal(StatusCode::OK, &self.error().message);
                failed(response, ErrorCode::NotFound)
            }
            Self::TooLarge { .. } => {
                json_response(StatusCode::PAYLOAD_TOO_LARGE, &error_body(&self.error()))
            }
            Self::NoRoom(_) => {
                json_response(StatusCode::SERVICE_UNAVAILABLE, &error_body(&self.error()))
            }
            Self::Slowed { seconds, .. } => {
                let mut response =
                    json_response(StatusCode::TOO_MANY_REQUESTS, &error_body(&self.error()));
                let headers = response.headers_mut();
                headers.insert(header::RETRY_AFTER, HeaderValue::from(*seconds));
                response
            }
            Self::Service(error) => {
                let response = json_response(StatusCode::OK, &error_body(error));
                failed_with(response, error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_names_a_pause_says_when_to_retry() {
        let over = Error::new(ErrorCode::Busy, "a budget").after(60);
        let response = RequestError::Service(over).into_response();
        let pause = response.headers().get(header::RETRY_AFTER);
        assert_eq!(pause, Some(&HeaderValue::from_static("60")));
        let failed = response.extensions().get::<Failed>();
        assert_eq!(failed.map(|failed| failed.status().as_u16()), Some(429));
        let quoted = Error::new(ErrorCode::NotFound, "no graph a; try again in 9 s");
        let response = RequestError::Service(quoted).into_response();
        assert!(!response.headers().contains_key(header::RETRY_AFTER));
    }

    #[test]
    fn statuses_follow_the_contract() {
        let status = |fault: RequestError| fault.into_response().status().as_u16();
        assert_eq!(status(RequestError::InvalidJson("x".into())), 400);
        assert_eq!(status(RequestError::Unknown(Unknown::Service)), 400);
        assert_eq!(status(RequestError::Unknown(Unknown::Kind)), 404);
        assert_eq!(status(RequestError::AuthFailure), 401);
        assert_eq!(status(RequestError::Unchecked), 503);
        assert_eq!(status(RequestError::AccessDenied), 403);
        assert_eq!(status(RequestError::ModelNotAllowed), 403);
        assert_eq!(status(RequestError::WorkspaceNotFound), 404);
        assert_eq!(status(RequestError::KindNotInFlow), 200);
        assert_eq!(status(RequestError::TooLarge { limit: 1 }), 413);
        assert_eq!(status(RequestError::busy("in this workspace")), 200);
    }

    #[test]
    fn error_frames_are_complete_and_echo_any_id() {
        let frame = RequestError::AuthFailure.frame(Some(&json!(0)));
        assert_eq!(
            frame,
            json!({"id": 0, "complete": true,
                   "error": {"type": "auth-required", "message": "auth failure"}})
        );
        assert!(RequestError::NotAnObject.frame(None).get("id").is_none());
    }
}
