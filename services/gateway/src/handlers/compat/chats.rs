//! Chats in the words of several APIs: `POST /v1/chat/completions`, `POST /v1/completions`, `POST /v1/messages` and
//! `POST /v1/responses`. Each is read, asked and answered alike, by a model or by an agent.

use axum::body::Body as HttpBody;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde_json::json;
use tg_mesh::clock;
use tg_schemas::Error;
use tg_schemas::limits::CHAT_BODY;
use tokio_util::sync::CancellationToken;

use super::answer::{Answer, Source};
use super::kept::{self, Begun};
use super::{call, known, let_in, operation, part, refused, told, workspace_of};
use crate::auth::{Identity, models};
use crate::call::{Call, Meta};
use crate::engine::compat::agents::{self, Definition};
use crate::engine::compat::augment;
use crate::engine::compat::chat::reply::Chat;
use crate::engine::compat::completions::reply::Completions;
use crate::engine::compat::dialect::{Dialect, Head};
use crate::engine::compat::errors::CompatError;
use crate::engine::compat::messages::reply::Messages;
use crate::engine::compat::messages::request;
use crate::engine::compat::responses::kept::Wish;
use crate::engine::compat::responses::reply::Responses;
use crate::engine::translate::Body;
use crate::error::json_response;
use crate::handlers::caller::Caller;
use crate::handlers::read;
use crate::state::{App, Shared};

/// The kind of flow service that answers.
const KIND: &str = "chat-completion";
/// The one that answers for models that are agents.
const AGENT: &str = "agent";

/// `POST /v1/chat/completions`.
pub(crate) async fn chat(
    State(app): State<Shared>,
    Extension(meta): Extension<Meta>,
    headers: HeaderMap,
    body: HttpBody,
) -> Response {
    answered::<Chat>(app, meta, headers, body).await
}

/// `POST /v1/completions`.
pub(crate) async fn completions(
    State(app): State<Shared>,
    Extension(meta): Extension<Meta>,
    headers: HeaderMap,
    body: HttpBody,
) -> Response {
    answered::<Completions>(app, meta, headers, body).await
}

/// `POST /v1/messages`.
pub(crate) async fn messages(
    State(app): State<Shared>,
    Extension(meta): Extension<Meta>,
    headers: HeaderMap,
    body: HttpBody,
) -> Response {
    answered::<Messages>(app, meta, headers, body).await
}

/// `POST /v1/responses`.
pub(crate) async fn responses(
    State(app): State<Shared>,
    Extension(meta): Extension<Meta>,
    headers: HeaderMap,
    body: HttpBody,
) -> Response {
    answered::<Responses>(app, meta, headers, body).await
}

/// `POST /v1/messages/count_tokens`: about how many tokens a request has. No model is asked; whoever may ask one may count.
pub(crate) async fn count_tokens(
    State(app): State<Shared>,
    Extension(meta): Extension<Meta>,
    headers: HeaderMap,
    body: HttpBody,
) -> Response {
    let id = meta.request_id.clone();
    let counted = counted(&app, &meta, &headers, body).await;
    counted.unwrap_or_else(|fault| told::<Messages>(&fault, &id))
}

async fn counted(
    app: &App,
    meta: &Meta,
    headers: &HeaderMap,
    body: HttpBody,
) -> Result<Response, CompatError> {
    let identity = known(app, headers, meta).await?;
    let_in(app, &identity, headers, KIND).await?;
    let read = read::body_of(app, headers, body, Some(&identity), CHAT_BODY).await;
    let (body, _question) = read.map_err(refused)?;
    let (model, tokens) =
        request::tokens(&body).map_err(|error| CompatError::of(&error, None, None))?;
    match models::may(&identity, &model) {
        true => Ok(json_response(
            StatusCode::OK,
            &json!({"input_tokens": tokens}),
        )),
        false => Err(CompatError::not_allowed()),
    }
}

async fn answered<D: Dialect>(
    app: Shared,
    meta: Meta,
    headers: HeaderMap,
    body: HttpBody,
) -> Response {
    let id = meta.request_id.clone();
    let answered = completed::<D>(app, meta, &headers, body).await;
    answered.unwrap_or_else(|fault| told::<D>(&fault, &id))
}

async fn completed<D: Dialect>(
    app: Shared,
    meta: Meta,
    headers: &HeaderMap,
    body: HttpBody,
) -> Result<Response, CompatError> {
    let identity = known(&app, headers, &meta).await?;
    let wishes = super::text(headers, augment::HEADER)?.unwrap_or_default();
    let augment = augment::read(wishes)
        .map_err(|fault| CompatError::new(400, "invalid_header", fault.message))?;
    let read = read::body_of(&app, headers, body, Some(&identity), CHAT_BODY).await;
    let (body, reading) = read.map_err(refused)?;
    let (asked, mut dialect) = D::read(&body).map_err(invalid)?;
    drop(body);
    if !models::may(&identity, &asked.model) {
        return Err(CompatError::not_allowed());
    }
    let mut head = Head {
        id: uuid::Uuid::new_v4().simple().to_string(),
        created: clock::now().timestamp(),
        model: asked.model,
    };
    let request_id = meta.request_id.to_string();
    let workspace = workspace_of(&identity, headers)?;
    let whole = !asked.streaming;
    let keeps = dialect.wish().is_some();
    let wish = dialect.wish().cloned().unwrap_or_default();
    let asks = match agents::named(&head.model) {
        None if augment.offers_tools(&asked.body) => {
            wish.kept_nowhere().map_err(invalid)?;
            let_in(&app, &identity, headers, AGENT).await?;
            let body = with_tools(&app, &workspace, &asked.body)?;
            Asks::New(call(AGENT, meta, headers, body, whole)?, Source::agent())
        }
        None => {
            wish.kept_nowhere().map_err(invalid)?;
            Asks::New(call(KIND, meta, headers, asked.body, whole)?, Source::Model)
        }
        Some(name) => {
            let_in(&app, &identity, headers, AGENT).await?;
            match question(&app, &workspace, name, &asked.body)? {
                Asked::Flow(body) => {
                    wish.kept_nowhere().map_err(invalid)?;
                    Asks::New(call(AGENT, meta, headers, body, whole)?, Source::agent())
                }
                Asked::Session(body) => {
                    let caller = (&app, &identity, &meta, headers);
                    let said = match keeps {
                        true => wish.turn(&asked.body).map_err(invalid)?,
                        false => None,
                    };
                    match turn(caller, name, &wish, (said, whole)).await? {
                        Some(begun) => Asks::Kept(begun),
                        None => Asks::New(operation(meta, headers, body, whole)?, Source::Session),
                    }
                }
            }
        }
    };
    let (running, source, first) = match asks {
        Asks::New(call, source) => {
            let running = app.start(&identity, call, CancellationToken::new()).await;
            (running.map_err(refused)?, source, None)
        }
        Asks::Kept(begun) => {
            head.id = begun.id;
            head.created = begun.created.unwrap_or(head.created);
            dialect.keep(begun.place);
            // Whoever reads events learns the id at once, by which the turn can be cancelled.
            let first = asked.streaming.then(|| (Body::new(), false));
            (begun.running, Source::Session, first)
        }
    };
    let mut running = running.holding(reading);
    let outlet = app.sending.outlet(&identity);
    // Nothing is sent before the first part is there: what fails at once has a status that says so.
    let first = match first {
        Some(first) => first,
        None => part(running.next().await)?,
    };
    let answer = Answer::new(app, workspace, (head, dialect), source, request_id);
    match asked.streaming {
        true => Ok(answer.stream(running, first, outlet)),
        false => answer.whole(running, first, &outlet).await,
    }
}

/// What the agent of the flow is asked in the place of a model, so that this uses the tools of the workspace.
fn with_tools(app: &App, workspace: &str, chat: &Body) -> Result<Body, CompatError> {
    let row = app.mesh.config().get(workspace, agents::ROWS, agents::OWN);
    let definition = Definition::find(agents::OWN, row.as_deref()).ok_or_else(|| {
        let text = "the row of the agent of the flow cannot be read";
        CompatError::new(503, "agent_unavailable", text)
    })?;
    let body = definition.in_place_of_model(chat);
    let mut body = body.map_err(|error| CompatError::of(&error, None, None))?;
    if row.is_some() {
        body.insert("agent".to_owned(), agents::OWN.into());
    }
    Ok(body)
}

/// What answers.
enum Asks {
    /// A question that is to be asked.
    New(Call, Source),
    /// A turn of a session that has begun.
    Kept(Begun),
}

fn invalid(error: Error) -> CompatError {
    CompatError::of(&error, None, None)
}

/// Begins the turn of a session that the answer is to be. The turn is heard in parts also where its client waits for the `whole`
/// response. `None`: the answer is not kept.
async fn turn(
    (app, identity, meta, headers): (&Shared, &Identity, &Meta, &HeaderMap),
    agent: &str,
    wish: &Wish,
    (said, whole): (Option<&str>, bool),
) -> Result<Option<Begun>, CompatError> {
    let Some(said) = said else {
        return Ok(None);
    };
    let caller = Caller::of(app.clone(), identity.clone(), meta.clone(), headers.clone());
    let mut caller = caller.map_err(|failure| kept::failed(&failure))?;
    kept::goes_on(&caller, agent, wish).await?;
    if whole {
        caller = caller.bounded();
    }
    kept::begun(&caller, agent, wish, said).await
}

/// Who is asked for a model that is an agent.
enum Asked {
    /// The agent of the flow, as a row describes it.
    Flow(Body),
    /// The sessions, which have agents of files and of the workspace.
    Session(Body),
}

/// What an agent is asked: by the row of its name, else by the sessions.
fn question(app: &App, workspace: &str, name: &str, chat: &Body) -> Result<Asked, CompatError> {
    let refused = |error| CompatError::of(&error, None, None);
    let row = app.mesh.config().get(workspace, agents::ROWS, name);
    let Some(definition) = Definition::find(name, row.as_deref()) else {
        if row.is_none() {
            let body = agents::session_question(name, chat).map_err(refused)?;
            return Ok(Asked::Session(body));
        }
        let text = "model: the agent of this name cannot be read";
        return Err(CompatError::new(404, "model_not_found", text));
    };
    let mut body = definition.question(chat).map_err(refused)?;
    if row.is_some() {
        body.insert("agent".to_owned(), name.into());
    }
    Ok(Asked::Flow(body))
}
