//! `/v1/…`: the doors of the OpenAI API, over `chat-completion` of a flow. Any client of that API is a client here; what
//! is asked, let in, bounded and counted is as at every door, only the words are that API's.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body as HttpBody;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tg_mesh::clock;
use tg_schemas::limits::CHAT_BODY;
use tg_schemas::{Error, ErrorCode};
use tokio_util::sync::CancellationToken;

use super::{read, sse};
use crate::ask::Part;
use crate::auth::{Identity, models};
use crate::call::{Call, Leave, Meta, Target};
use crate::engine::compat::cost::{Cost, HEADERS as COST_HEADERS, PRICES, Price};
use crate::engine::compat::errors::CompatError;
use crate::engine::compat::reply::{self, Head};
use crate::engine::compat::{augment, request::Asked};
use crate::engine::translate::Body;
use crate::error::{RequestError, json_response, json_written};
use crate::running::Running;
use crate::sending::Outlet;
use crate::state::{App, Shared};

/// The flow that is asked where none is named.
const FLOW: &str = "default";
const FLOW_HEADER: &str = "x-flow";
const WORKSPACE_HEADER: &str = "spass-tenant";
/// The kind of flow service that answers.
const KIND: &str = "chat-completion";
/// The last event.
const DONE: &[u8] = b"data: [DONE]\n\n";

/// `POST /v1/chat/completions`.
pub(crate) async fn chat(
    State(app): State<Shared>,
    Extension(meta): Extension<Meta>,
    headers: HeaderMap,
    body: HttpBody,
) -> Response {
    let id = meta.request_id.clone();
    let answered = completed(app, meta, &headers, body).await;
    answered.unwrap_or_else(|fault| told(&fault, &id))
}

/// `GET /v1/models`.
pub(crate) async fn list(
    State(app): State<Shared>,
    Extension(meta): Extension<Meta>,
    headers: HeaderMap,
) -> Response {
    let id = meta.request_id.clone();
    let outcome = async {
        let (identity, body) = about(&app, meta, &headers, "list-models").await?;
        let listed = reply::models(&body, &models::asked_about(&identity), |model| {
            models::may(&identity, model)
        });
        Ok::<_, CompatError>(json_response(StatusCode::OK, &listed))
    };
    outcome.await.unwrap_or_else(|fault| told(&fault, &id))
}

/// `GET /v1/models/health`.
pub(crate) async fn health(
    State(app): State<Shared>,
    Extension(meta): Extension<Meta>,
    headers: HeaderMap,
) -> Response {
    let id = meta.request_id.clone();
    let outcome = async {
        let (identity, mut body) = about(&app, meta, &headers, "health").await?;
        let mut models = body.remove("health").unwrap_or_else(|| json!([]));
        if let Some(models) = models.as_array_mut() {
            let name = |one: &Value| one["model"].as_str().unwrap_or_default().to_owned();
            models.retain(|one| models::may(&identity, &name(one)));
        }
        Ok::<_, CompatError>(json_response(StatusCode::OK, &json!({"models": models})))
    };
    outcome.await.unwrap_or_else(|fault| told(&fault, &id))
}

/// `GET /v1/usage`.
pub(crate) async fn used(
    State(app): State<Shared>,
    Extension(meta): Extension<Meta>,
    headers: HeaderMap,
) -> Response {
    let id = meta.request_id.clone();
    let outcome = async {
        let identity = app.known(read::bearer(&headers), &meta).await;
        let identity = identity.map_err(refused)?;
        let of = async |by: &str| {
            let mut body = Body::new();
            body.insert("operation".to_owned(), "list-usage".into());
            body.insert("by".to_owned(), by.into());
            let call = Call {
                target: Target::service("usage", &body).map_err(refused)?,
                ..call(meta.clone(), &headers, body, true)?
            };
            let running = app.start(&identity, call, CancellationToken::new()).await;
            part(running.map_err(refused)?.next().await)
        };
        let (all, sessions) = (of("workspace").await?.0, of("session").await?.0);
        let told = reply::used(&all, &sessions);
        Ok::<_, CompatError>(json_response(StatusCode::OK, &told))
    };
    outcome.await.unwrap_or_else(|fault| told(&fault, &id))
}

/// What is not there, below `/v1`.
pub(crate) fn nothing(meta: &Meta) -> Response {
    let fault = CompatError::new(404, "not_found", "there is no such endpoint");
    told(&fault, &meta.request_id)
}

/// A failure as the API tells it.
fn told(fault: &CompatError, request_id: &str) -> Response {
    let status = StatusCode::from_u16(fault.status).unwrap_or(StatusCode::BAD_GATEWAY);
    let mut response = json_response(status, &fault.body(request_id));
    let headers = response.headers_mut();
    if let Some(seconds) = fault.retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if status == StatusCode::UNAUTHORIZED {
        let bearer = HeaderValue::from_static("Bearer");
        headers.insert(header::WWW_AUTHENTICATE, bearer);
    }
    response
}

/// A refusal of the gateway in that API's words.
fn refused(error: RequestError) -> CompatError {
    match &error {
        RequestError::InvalidFlow { .. } | RequestError::KindNotInFlow => {
            CompatError::new(503, "agent_unavailable", "there is no such flow running")
        }
        RequestError::WorkspaceNotFound => {
            CompatError::new(404, "workspace_not_found", "workspace not found")
        }
        RequestError::AuthFailure => CompatError::new(401, "unauthorized", "auth failure"),
        RequestError::AccessDenied => CompatError::new(403, "forbidden", "access denied"),
        RequestError::Unchecked => {
            CompatError::new(503, "agent_unavailable", error.error().message)
        }
        RequestError::TooLarge { .. } => {
            CompatError::new(413, "payload_too_large", error.error().message)
        }
        RequestError::Slowed { seconds, .. } => {
            let seconds = i64::try_from(*seconds).ok();
            CompatError::of(&error.error(), None, None).after(seconds)
        }
        RequestError::Service(inner) => CompatError::of(inner, None, None),
        RequestError::NoRoom(_) => CompatError::of(&error.error(), None, None),
        _ => CompatError::new(400, "validation_error", error.error().message),
    }
}

/// The text of a header. One that cannot be read is not taken for one that is not there: it names another flow or
/// workspace.
fn text<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, CompatError> {
    let Some(value) = headers.get(name) else {
        return Ok(None);
    };
    let value = value.to_str().map_err(|_| {
        let message = format!("{name}: must consist of visible ASCII characters");
        CompatError::new(400, "invalid_header", message)
    })?;
    let value = value.trim();
    Ok((!value.is_empty()).then_some(value))
}

/// A question to the flow that is meant.
fn call(meta: Meta, headers: &HeaderMap, body: Body, whole: bool) -> Result<Call, CompatError> {
    let flow = text(headers, FLOW_HEADER)?.unwrap_or(FLOW);
    Ok(Call {
        target: Target::kind(KIND, flow).map_err(refused)?,
        body,
        workspace: text(headers, WORKSPACE_HEADER)?.map(str::to_owned),
        timeout: read::timeout(headers).map_err(refused)?,
        leave: Leave::Cancel,
        whole,
        meta,
    })
}

/// What a question about models is answered.
async fn about(
    app: &App,
    meta: Meta,
    headers: &HeaderMap,
    operation: &str,
) -> Result<(Identity, Body), CompatError> {
    let identity = app.known(read::bearer(headers), &meta).await;
    let identity = identity.map_err(refused)?;
    let mut body = Body::new();
    body.insert("operation".to_owned(), operation.into());
    if operation == "health" {
        let models = models::asked_about(&identity);
        body.insert("models".to_owned(), models.into());
    }
    let call = call(meta, headers, body, true)?;
    let running = app.start(&identity, call, CancellationToken::new()).await;
    let mut running = running.map_err(refused)?;
    let (body, _) = part(running.next().await)?;
    Ok((identity, body))
}

/// A part of an answer, and whether it is the last.
fn part(part: Option<Part>) -> Result<(Body, bool), CompatError> {
    match part {
        Some(Part::Body {
            body,
            last,
            failed: false,
        }) => Ok((body, last)),
        Some(Part::Body { body, .. }) => {
            let error = body.get("error").cloned().unwrap_or_default();
            let error: Error = serde_json::from_value(error).unwrap_or_default();
            let failure = body.get("failure").and_then(Value::as_str);
            let seconds = body.get("retry_after").and_then(Value::as_i64);
            Err(CompatError::of(&error, failure, seconds))
        }
        Some(Part::Error(error)) => Err(CompatError::of(&error, None, None)),
        None => {
            let error = Error::new(ErrorCode::Interrupted, "the answer is incomplete");
            Err(CompatError::of(&error, None, None))
        }
    }
}

async fn completed(
    app: Shared,
    meta: Meta,
    headers: &HeaderMap,
    body: HttpBody,
) -> Result<Response, CompatError> {
    let identity = app.known(read::bearer(headers), &meta).await;
    let identity = identity.map_err(refused)?;
    let wishes = text(headers, augment::HEADER)?.unwrap_or_default();
    augment::check(wishes)
        .map_err(|fault| CompatError::new(400, "invalid_header", fault.message))?;
    let read = read::body_of(&app, headers, body, Some(&identity), CHAT_BODY).await;
    let (body, question) = read.map_err(refused)?;
    let asked = Asked::read(&body).map_err(|error| CompatError::of(&error, None, None))?;
    drop(body);
    if !models::may(&identity, &asked.model) {
        return Err(CompatError::not_allowed());
    }
    let head = Head {
        id: format!("chatcmpl-{}", uuid::Uuid::new_v4().simple()),
        created: clock::now().timestamp(),
        model: asked.model,
    };
    let request_id = meta.request_id.to_string();
    let call = call(meta, headers, asked.body, !asked.streaming)?;
    let workspace = call.workspace.clone();
    let workspace = workspace.unwrap_or_else(|| identity.workspace.to_string());
    let running = app.start(&identity, call, CancellationToken::new()).await;
    let mut running = running.map_err(refused)?.holding(question);
    let outlet = app.sending.outlet(&identity);
    // Nothing is sent before the first part is there: what fails at once has a status that says so.
    let first = part(running.next().await)?;
    let mut answer = Answer {
        app,
        workspace,
        head,
        with_usage: asked.with_usage,
        request_id,
        pending: VecDeque::new(),
        running: None,
        trailers: Arc::default(),
    };
    if !asked.streaming {
        return answer.whole(running, first, &outlet).await;
    }
    let heartbeat = answer.app.options.heartbeat;
    answer.add(&first.0, true, first.1);
    answer.running = (!first.1).then_some(running);
    Ok(answer.stream(heartbeat, outlet))
}

/// An answer on its way. Dropping it cancels the question.
struct Answer {
    app: Shared,
    workspace: String,
    head: Head,
    with_usage: bool,
    request_id: String,
    /// Events that are to be sent.
    pending: VecDeque<Bytes>,
    running: Option<Running>,
    /// What it cost, once that is known: for the end of a stream.
    trailers: Arc<Mutex<HeaderMap>>,
}

impl Answer {
    fn cost(&self, body: &Body) -> Cost {
        let model = body.get("model").and_then(Value::as_str);
        let config = self.app.mesh.config();
        let price = |model: &str| {
            let row = config.get(&self.workspace, PRICES, model)?;
            Price::read(&row)
        };
        let price = model.and_then(price).or_else(|| price(&self.head.model));
        let told = body.get("cost").and_then(Value::as_f64);
        let usage = body.get("usage").unwrap_or(&Value::Null);
        Cost::of(told, price, usage, self.app.options.settings.usd_eur_rate)
    }

    /// All of it, once the last part is there.
    async fn whole(
        self,
        mut running: Running,
        first: (Body, bool),
        outlet: &Outlet,
    ) -> Result<Response, CompatError> {
        let (mut body, mut last) = first;
        while !last {
            (body, last) = part(running.next().await)?;
        }
        let answer = self.head.whole(&body).to_string();
        let mut response = json_written(StatusCode::OK, outlet.hold(answer.into()).await);
        response.headers_mut().extend(headers_of(&self.cost(&body)));
        Ok(response)
    }

    /// Adds the events that a part is.
    fn add(&mut self, body: &Body, first: bool, last: bool) {
        let chunks = self.head.chunks(body, first, last, self.with_usage);
        self.pending.extend(chunks.iter().map(data));
        if last {
            let cost = self.cost(body);
            let comment = format!(": cost {}\n\n", cost.json());
            self.pending.push_back(comment.into());
            *self.trailers.lock() = headers_of(&cost);
            self.pending.push_back(Bytes::from_static(DONE));
        }
    }

    /// The next event.
    async fn next(mut self) -> Option<(Bytes, Self)> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some((event, self));
            }
            let mut running = self.running.take()?;
            match part(running.next().await) {
                Ok((body, last)) => {
                    self.add(&body, false, last);
                    self.running = (!last).then_some(running);
                }
                // What was said stands, and that it is not all is said.
                Err(fault) => {
                    let event = data(&fault.body(&self.request_id));
                    self.pending.extend([event, Bytes::from_static(DONE)]);
                }
            }
        }
    }

    fn stream(self, heartbeat: Duration, outlet: Outlet) -> Response {
        let trailers = self.trailers.clone();
        let events = stream::unfold((self, outlet), |(answer, outlet)| async {
            let (event, answer) = answer.next().await?;
            let event = outlet.hold(event).await;
            Some((event, (answer, outlet)))
        });
        sse::kept_alive_until(events, heartbeat, COST_HEADERS, move || {
            std::mem::take(&mut *trailers.lock())
        })
    }
}

/// What a call cost, as headers.
fn headers_of(cost: &Cost) -> HeaderMap {
    let headers = cost.headers().into_iter();
    let headers = headers.filter_map(|(name, value)| {
        let value = HeaderValue::from_str(&value).ok()?;
        Some((HeaderName::from_static(name), value))
    });
    headers.collect()
}

/// An event of one line.
fn data(event: &Value) -> Bytes {
    Bytes::from(format!("data: {event}\n\n"))
}
