//! The sockets of the scripted model: routes, bodies that pause, break or hang, and noticing that the
//! caller hung up.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, OriginalUri, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures::stream;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::dialect::{Asked, Dialect};
use super::{CLOCK, Call, End, Reply, Shared, clock};

/// Bytes of a request at most.
const LARGEST: usize = 64 << 20;

pub(super) async fn run(
    listener: tokio::net::TcpListener,
    shared: Arc<Shared>,
    stop: CancellationToken,
) {
    let chat = |dialect: Dialect| {
        post(
            move |state: State<Arc<Shared>>, uri: OriginalUri, headers: HeaderMap, body: Bytes| {
                answer(dialect, state.0, uri, headers, body)
            },
        )
    };
    let router = Router::new()
        .route("/v1/chat/completions", chat(Dialect::OpenAi))
        // The doors of clouds have the same dialect behind longer paths.
        .route("/openai/v1/chat/completions", chat(Dialect::OpenAi))
        .route(
            "/v1/projects/{project}/locations/{location}/endpoints/openapi/chat/completions",
            chat(Dialect::OpenAi),
        )
        .route("/v1/messages", chat(Dialect::Anthropic))
        .route("/api/chat", chat(Dialect::Ollama))
        .route("/v1/embeddings", post(embeddings))
        .route("/v1/models", get(models))
        .route("/api/tags", get(tags))
        .layer(DefaultBodyLimit::max(LARGEST))
        .with_state(shared);
    let serving = async { axum::serve(listener, router).await };
    tokio::select! {
        () = stop.cancelled() => {}
        _ = serving => {}
    }
}

/// What a refusal answers with; one that says nothing never does.
async fn refused(refusal: Reply) -> Response {
    match refusal {
        Reply::Status {
            code,
            retry_after,
            body,
        } => {
            let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let mut response = (status, body).into_response();
            if let Some(seconds) = retry_after {
                response
                    .headers_mut()
                    .insert(header::RETRY_AFTER, seconds.into());
            }
            response
        }
        Reply::Text { pieces, .. } => pieces.concat().into_response(),
        Reply::Silence => {
            std::future::pending::<()>().await;
            unreachable_response()
        }
    }
}

/// Vectors as nobody needs to understand them: of a text its length, and one.
async fn embeddings(
    State(shared): State<Arc<Shared>>,
    uri: OriginalUri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let Ok(body) = serde_json::from_slice::<Value>(&body) else {
        return (StatusCode::BAD_REQUEST, "not JSON").into_response();
    };
    let mut guard = Guard::begin(shared.clone(), &uri, &headers, body.clone());
    if let Some(refusal) = shared.refusal() {
        return refused(refusal).await;
    }
    shared
        .batch(body["input"].as_array().map_or(0, Vec::len))
        .await;
    let texts = body["input"].as_array().into_iter().flatten();
    let data: Vec<Value> = texts
        .map(|text| text.as_str().map_or(0, str::len))
        .enumerate()
        .map(|(at, length)| json!({"object": "embedding", "index": at, "embedding": [length, 1.0]}))
        .collect();
    guard.whole = true;
    json_response(&json!({"object": "list", "data": data, "model": body["model"]}))
}

async fn models(State(shared): State<Arc<Shared>>) -> Response {
    if let Some(refusal) = shared.refusal() {
        return refused(refusal).await;
    }
    let data: Vec<Value> = shared
        .models
        .iter()
        .map(|id| {
            json!({
                "id": id, "object": "model", "type": "model", "created": 1_700_000_000,
                "owned_by": "testkit", "display_name": id, "context_length": shared.window,
            })
        })
        .collect();
    json_response(&json!({"object": "list", "data": data, "has_more": false}))
}

async fn tags(State(shared): State<Arc<Shared>>) -> Response {
    if let Some(refusal) = shared.refusal() {
        return refused(refusal).await;
    }
    let models: Vec<Value> = shared
        .models
        .iter()
        .map(|id| {
            let details = json!({
                "family": "scripted", "parameter_size": "0B", "quantization_level": "none",
                "format": "rules",
            });
            json!({"name": id, "model": id, "details": details})
        })
        .collect();
    json_response(&json!({"models": models}))
}

fn json_response(value: &Value) -> Response {
    (
        [(header::CONTENT_TYPE, "application/json")],
        value.to_string(),
    )
        .into_response()
}

/// Tells the log how a call ended, also when hyper drops the answer because the caller went away.
struct Guard {
    shared: Arc<Shared>,
    at: usize,
    whole: bool,
}

impl Guard {
    /// Notes a call.
    fn begin(
        shared: Arc<Shared>,
        OriginalUri(uri): &OriginalUri,
        headers: &HeaderMap,
        body: Value,
    ) -> Self {
        let key = headers
            .get(header::AUTHORIZATION)
            .or(headers.get("x-api-key"));
        let at = shared.begin(Call {
            path: uri.path().to_owned(),
            body,
            authorization: key.and_then(|value| value.to_str().ok()).map(str::to_owned),
            traceparent: headers
                .get("traceparent")
                .and_then(|value| value.to_str().ok())
                .map(str::to_owned),
            closed_early: false,
            finished: false,
        });
        Self {
            shared,
            at,
            whole: false,
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.shared.end(self.at, self.whole);
    }
}

async fn answer(
    dialect: Dialect,
    shared: Arc<Shared>,
    uri: OriginalUri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let Ok(body) = serde_json::from_slice::<Value>(&body) else {
        return (StatusCode::BAD_REQUEST, "not JSON").into_response();
    };
    let asked = dialect.read(&body, shared.counts_tokens);
    let mut guard = Guard::begin(shared.clone(), &uri, &headers, body);
    match shared.reply(&asked.prompt) {
        silence @ Reply::Silence => refused(silence).await,
        status @ Reply::Status { .. } => {
            guard.whole = true;
            refused(status).await
        }
        Reply::Text { pieces, delay, end } if asked.streaming => {
            streamed(dialect, asked, pieces, delay, end, guard)
        }
        Reply::Text { pieces, delay, end } => {
            guard.shared.pause(delay * pieces.len() as u32).await;
            match end {
                End::Complete => {
                    guard.whole = true;
                    json_response(&dialect.whole(&asked, &pieces.concat()))
                }
                End::Hang => {
                    std::future::pending::<()>().await;
                    unreachable_response()
                }
                End::Disconnect => broken(stream::iter([Err(broken_pipe())])),
            }
        }
    }
}

fn unreachable_response() -> Response {
    StatusCode::INTERNAL_SERVER_ERROR.into_response()
}

fn broken_pipe() -> std::io::Error {
    std::io::Error::from(std::io::ErrorKind::BrokenPipe)
}

fn broken(
    items: impl futures::Stream<Item = Result<Bytes, std::io::Error>> + Send + 'static,
) -> Response {
    Body::from_stream(items).into_response()
}

struct Writing {
    dialect: Dialect,
    asked: Asked,
    pieces: Vec<String>,
    next: usize,
    delay: Duration,
    end: End,
    guard: Guard,
}

fn streamed(
    dialect: Dialect,
    asked: Asked,
    pieces: Vec<String>,
    delay: Duration,
    end: End,
    guard: Guard,
) -> Response {
    let writing = Writing {
        dialect,
        asked,
        pieces,
        next: 0,
        delay,
        end,
        guard,
    };
    let items = stream::unfold(Some(writing), |state| async move {
        let mut writing = state?;
        let at = writing.next;
        writing.next += 1;
        if at < writing.pieces.len() {
            writing.guard.shared.pause(writing.delay).await;
            let mut text = String::new();
            if at == 0 {
                text = writing.dialect.opening(&writing.asked);
            }
            let mut piece = writing.pieces[at].clone();
            if piece.contains(CLOCK) {
                piece = piece.replace(CLOCK, &clock().to_string());
            }
            text += &writing.dialect.piece(&writing.asked, &piece);
            return Some((Ok(Bytes::from(text)), Some(writing)));
        }
        match writing.end {
            End::Hang => {
                std::future::pending::<()>().await;
                None
            }
            End::Disconnect => {
                // Lets the connection write what it holds before it breaks.
                tokio::task::yield_now().await;
                Some((Err(broken_pipe()), None))
            }
            End::Complete => {
                let text = writing.pieces.concat();
                let end = writing.dialect.closing(&writing.asked, &text);
                writing.guard.whole = true;
                Some((Ok(Bytes::from(end)), None))
            }
        }
    });
    let mut response = broken(items);
    let kind = header::HeaderValue::from_static(dialect.content_type(true));
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
