//! `GET /v1/models`, one of them, their health, and what was used.

use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{call, known, let_in, operation, part, refused, told, workspace, workspace_of};
use crate::auth::{Identity, models};
use crate::call::{Call, Leave, Meta, Target};
use crate::engine::compat::agents;
use crate::engine::compat::chat::reply::Chat;
use crate::engine::compat::errors::CompatError;
use crate::engine::compat::listing;
use crate::engine::compat::messages::reply::Messages;
use crate::engine::translate::Body;
use crate::error::json_response;
use crate::state::{App, Shared};

/// Pages of agents of the workspace that a listing has at most.
const PAGES: usize = 5;
/// The kind of flow service that knows models.
const KIND: &str = "chat-completion";

/// `GET /v1/models`.
pub(crate) async fn list(
    State(app): State<Shared>,
    Extension(meta): Extension<Meta>,
    headers: HeaderMap,
) -> Response {
    let id = meta.request_id.clone();
    let listed = listed(&app, meta, &headers).await;
    match (listed, is_of_messages(&headers)) {
        (Ok(listed), false) => json_response(StatusCode::OK, &listed),
        (Ok(listed), true) => json_response(StatusCode::OK, &listing::page_of_messages(&listed)),
        (Err(fault), false) => told::<Chat>(&fault, &id),
        (Err(fault), true) => told::<Messages>(&fault, &id),
    }
}

/// Whether a client of messages asks, which reads another shape.
fn is_of_messages(headers: &HeaderMap) -> bool {
    headers.contains_key("anthropic-version")
}

/// `GET /v1/models/{model}`: one of those that [`list`] has.
pub(crate) async fn one(
    State(app): State<Shared>,
    Extension(meta): Extension<Meta>,
    Path(model): Path<String>,
    headers: HeaderMap,
) -> Response {
    let id = meta.request_id.clone();
    let found = async {
        let mut listed = listed(&app, meta, &headers).await?;
        let all = listed["data"].as_array_mut();
        let one = all.and_then(|all| all.iter_mut().find(|one| one["id"] == model));
        one.map(Value::take).ok_or_else(|| {
            let text = "model: there is no such model, or this key may not ask for it";
            CompatError::new(404, "model_not_found", text)
        })
    };
    match (found.await, is_of_messages(&headers)) {
        (Ok(one), false) => json_response(StatusCode::OK, &one),
        (Ok(one), true) => json_response(StatusCode::OK, &listing::of_messages(&one)),
        (Err(fault), false) => told::<Chat>(&fault, &id),
        (Err(fault), true) => told::<Messages>(&fault, &id),
    }
}

/// The models that a caller may ask for, as the API lists them.
async fn listed(app: &Shared, meta: Meta, headers: &HeaderMap) -> Result<Value, CompatError> {
    let (identity, body) = about(app, meta.clone(), headers, "list-models").await?;
    let named = models::asked_about(&identity);
    let agents = match named.is_empty() {
        true => agents_of(app, &identity, headers, &meta).await?,
        // A key that is held to models reaches none by an agent.
        false => Vec::new(),
    };
    let may = |model: &str| models::may(&identity, model);
    Ok(listing::models(&body, &named, &agents, may))
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
    outcome
        .await
        .unwrap_or_else(|fault| told::<Chat>(&fault, &id))
}

/// `GET /v1/usage`.
pub(crate) async fn used(
    State(app): State<Shared>,
    Extension(meta): Extension<Meta>,
    headers: HeaderMap,
) -> Response {
    let id = meta.request_id.clone();
    let outcome = async {
        let identity = known(&app, &headers, &meta).await?;
        let of = async |by: &str| {
            let mut body = Body::new();
            body.insert("operation".to_owned(), "list-usage".into());
            body.insert("by".to_owned(), by.into());
            let call = Call {
                target: Target::service("usage", &body).map_err(refused)?,
                body,
                workspace: workspace(&headers)?,
                timeout: crate::handlers::read::timeout(&headers).map_err(refused)?,
                leave: Leave::Cancel,
                whole: true,
                meta: meta.clone(),
            };
            let running = app.start(&identity, call, CancellationToken::new()).await;
            part(running.map_err(refused)?.next().await)
        };
        let (all, sessions) = (of("workspace").await?.0, of("session").await?.0);
        let used = listing::used(&all, &sessions);
        Ok::<_, CompatError>(json_response(StatusCode::OK, &used))
    };
    outcome
        .await
        .unwrap_or_else(|fault| told::<Chat>(&fault, &id))
}

/// The models that agents are, for whoever may ask the agent of the flow.
async fn agents_of(
    app: &App,
    identity: &Identity,
    headers: &HeaderMap,
    meta: &Meta,
) -> Result<Vec<String>, CompatError> {
    match let_in(app, identity, headers, "agent").await {
        Ok(()) => {}
        Err(fault) if fault.status == 403 => return Ok(Vec::new()),
        Err(fault) => return Err(fault),
    }
    let workspace = workspace_of(identity, headers)?;
    let rows = app.mesh.config().values(&workspace, agents::ROWS);
    let of_sessions = of_sessions(app, identity, headers, meta).await;
    let rows = rows.keys().map(String::as_str);
    Ok(agents::models(
        rows.chain(of_sessions.iter().map(String::as_str)),
    ))
}

/// The names of the agents of files and the ids of those of the workspace. A listing has none of those that the caller may not
/// list, and none while the sessions are away.
async fn of_sessions(
    app: &App,
    identity: &Identity,
    headers: &HeaderMap,
    meta: &Meta,
) -> Vec<String> {
    let ask = async |body: Value| {
        let body = body.as_object().cloned().unwrap_or_default();
        let meta = Meta {
            number: uuid::Uuid::new_v4().to_string().into(),
            ..meta.clone()
        };
        let call = operation(meta, headers, body, true)?;
        let running = app.start(identity, call, CancellationToken::new()).await;
        let (mut body, _) = part(running.map_err(refused)?.next().await)?;
        Ok::<_, CompatError>(body.remove("result").unwrap_or_default())
    };
    let mut names = Vec::new();
    let mut add = |listed: &Value, key: &str| {
        let listed = listed.as_array().into_iter().flatten();
        names.extend(listed.filter_map(|one| one[key].as_str().map(str::to_owned)));
    };
    match ask(json!({"operation": "list-named-agents"})).await {
        Ok(listed) => add(&listed["agents"], "name"),
        Err(fault) => {
            tracing::debug!(code = fault.code(), "no agents of files are listed");
            return names;
        }
    }
    let mut cursor = Value::Null;
    for _ in 0..PAGES {
        let page = json!({"operation": "list-agents", "limit": 200, "cursor": cursor});
        let Ok(listed) = ask(page).await else {
            break;
        };
        add(&listed["items"], "agentId");
        cursor = listed["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    names
}

/// What a question about models is answered.
async fn about(
    app: &App,
    meta: Meta,
    headers: &HeaderMap,
    operation: &str,
) -> Result<(Identity, Body), CompatError> {
    let identity = known(app, headers, &meta).await?;
    let mut body = Body::new();
    body.insert("operation".to_owned(), operation.into());
    if operation == "health" {
        let models = models::asked_about(&identity);
        body.insert("models".to_owned(), models.into());
    }
    let call = call(KIND, meta, headers, body, true)?;
    let running = app.start(&identity, call, CancellationToken::new()).await;
    let mut running = running.map_err(refused)?;
    let (body, _) = part(running.next().await)?;
    Ok((identity, body))
}
