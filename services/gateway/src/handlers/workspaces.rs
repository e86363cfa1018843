//! `/api/v1/workspaces`: the operations of the iam service on workspaces, in the words of the agents of workspaces. A workspace that is
//! made at either door is there at both.

use axum::body::Body as HttpBody;
use axum::extract::{Path, RawQuery};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tg_schemas::limits::CHAT_BODY;
use tg_schemas::operations::{FailureCode, Object};
use tg_schemas::{Error, ErrorCode};
use tokio_util::sync::CancellationToken;

use super::asked::Asked;
use super::operations::{failed_with, refused, told};
use super::read;
use super::shape::object_of;
use super::shape::pairs;
use crate::ask::Part;
use crate::auth::Identity;
use crate::budget::Reading;
use crate::call::{Call, Leave, Meta, Target};
use crate::engine::translate::Body;
use crate::engine::workspaces;
use crate::error::json_written;
use crate::state::Shared;

/// What the id of a request is called in an error.
pub(crate) const ID: &str = "requestId";

/// Lists them.
pub(crate) async fn list(asked: Asked, RawQuery(query): RawQuery) -> Response {
    answered(asked, |asking| async move {
        let which = workspaces::which(pairs(query.as_deref().unwrap_or_default()));
        let which = which.map_err(|failure| object_of(&failure))?;
        let found = asking.ask("list-workspaces", None).await?;
        let all = found.get("workspaces").and_then(Value::as_array);
        let page = workspaces::page(all.map_or(&[][..], Vec::as_slice), &which);
        let page = page.map_err(|failure| object_of(&failure))?;
        Ok(asking.done(StatusCode::OK, &page).await)
    })
    .await
}

/// Makes one.
pub(crate) async fn create(asked: Asked, body: HttpBody) -> Response {
    answered(asked, |asking| async move {
        let (body, _held) = asking.read(body).await?;
        // A request that comes again under its id makes no second one.
        let own = uuid::Uuid::parse_str(&asking.meta.request_id);
        let own = own.unwrap_or_else(|_| uuid::Uuid::new_v4());
        let own = own.hyphenated().to_string();
        let wanted = workspaces::wanted(&body, &own);
        let id = match &wanted {
            Ok(wanted) => wanted["id"].clone(),
            Err(_) => own.into(),
        };
        // Who may not ask is refused before what does not fit is.
        let known = asking.ask("get-workspace", Some(json!({"id": id}))).await;
        let wanted = match (known, wanted) {
            (Err(failure), _) if !is_missing(&failure) => return Err(failure),
            (_, Err(failure)) => return Err(object_of(&failure)),
            (Ok(_), Ok(_)) => return Err(object_of(&workspaces::taken())),
            (Err(_), Ok(wanted)) => wanted,
        };
        let made = asking.ask("create-workspace", Some(wanted)).await?;
        Ok(asking.done(StatusCode::CREATED, &shown(&made)).await)
    })
    .await
}

/// Shows one.
pub(crate) async fn one(asked: Asked, Path(workspace): Path<String>) -> Response {
    answered(asked, |asking| async move {
        let which = json!({"id": workspace});
        let found = asking.ask("get-workspace", Some(which)).await?;
        Ok(asking.done(StatusCode::OK, &shown(&found)).await)
    })
    .await
}

/// Gives one another name.
pub(crate) async fn update(
    asked: Asked,
    Path(workspace): Path<String>,
    body: HttpBody,
) -> Response {
    answered(asked, |asking| async move {
        let (body, _held) = asking.read(body).await?;
        let changed = workspaces::changed(&body, &workspace);
        let changed = changed.map_err(|failure| object_of(&failure))?;
        let found = asking.ask("update-workspace", Some(changed)).await?;
        Ok(asking.done(StatusCode::OK, &shown(&found)).await)
    })
    .await
}

/// Deletes one with all that it has.
pub(crate) async fn remove(asked: Asked, Path(workspace): Path<String>) -> Response {
    answered(asked, |asking| async move {
        let which = json!({"id": workspace});
        asking.ask("delete-workspace", Some(which)).await?;
        Ok(StatusCode::NO_CONTENT.into_response())
    })
    .await
}

/// Answers a caller who is known, or says what failed.
async fn answered<W, F>(asked: Asked, work: W) -> Response
where
    W: FnOnce(Asking) -> F,
    F: Future<Output = Result<Response, Object>>,
{
    let id = asked.meta.request_id.clone();
    let outcome = async {
        let asking = Asking::of(asked).await?;
        work(asking).await
    };
    outcome
        .await
        .unwrap_or_else(|failure| told(&failure, None, (ID, &id)))
}

/// The workspace of an answer.
fn shown(answer: &Body) -> Value {
    answer
        .get("workspace")
        .map_or(Value::Null, workspaces::shown)
}

/// Whether a failure says that there is no such workspace.
fn is_missing(failure: &Object) -> bool {
    let code = failure.get("code").and_then(Value::as_str);
    code == Some(FailureCode::WorkspaceNotFound.as_str())
}

/// An error of the iam service as the surface reports it.
fn failed(error: &Error) -> Object {
    match workspaces::failure(error) {
        Some(failure) => object_of(&failure),
        None => failed_with(error),
    }
}

/// What somebody asks the iam service.
struct Asking {
    app: Shared,
    headers: HeaderMap,
    identity: Identity,
    meta: Meta,
}

impl Asking {
    /// Of a caller who is known.
    async fn of(asked: Asked) -> Result<Self, Object> {
        let Asked { app, meta, headers } = asked;
        let identity = app.known(read::bearer(&headers), &meta).await;
        let identity = identity.map_err(|error| refused(&error))?;
        Ok(Self {
            app,
            headers,
            identity,
            meta,
        })
    }

    /// The body of the request. It counts while what is returned beside it is held.
    async fn read(&self, body: HttpBody) -> Result<(Body, Reading), Object> {
        let known = Some(&self.identity);
        let read = read::body_of(&self.app, &self.headers, body, known, CHAT_BODY).await;
        read.map_err(|error| refused(&error))
    }

    /// An operation on a workspace, or on all.
    async fn ask(&self, operation: &str, record: Option<Value>) -> Result<Body, Object> {
        let mut body = Body::new();
        body.insert("operation".to_owned(), operation.into());
        if let Some(record) = record {
            body.insert("workspace_record".to_owned(), record);
        }
        let target = Target::service("iam", &body);
        let call = Call {
            target: target.map_err(|error| refused(&error))?,
            body,
            workspace: None,
            timeout: read::timeout(&self.headers).map_err(|error| refused(&error))?,
            leave: Leave::Cancel,
            whole: true,
            meta: self.meta.clone(),
        };
        let running = self
            .app
            .start(&self.identity, call, CancellationToken::new())
            .await;
        let mut running = running.map_err(|error| refused(&error))?;
        match running.next().await {
            Some(Part::Body {
                body,
                failed: false,
                ..
            }) => Ok(body.into_tree()),
            Some(Part::Body { body, .. }) => {
                let error = body.into_tree().remove("error").unwrap_or_default();
                let error: Error = serde_json::from_value(error).unwrap_or_default();
                Err(failed(&error))
            }
            Some(Part::Error(error)) => Err(failed(&error)),
            None => {
                let error = Error::new(ErrorCode::Interrupted, "the answer is incomplete");
                Err(failed(&error))
            }
        }
    }

    /// The response, once there is room for it.
    async fn done(&self, status: StatusCode, reply: &Value) -> Response {
        let outlet = self.app.sending.outlet(&self.identity);
        json_written(status, outlet.hold_whole(reply.to_string().into()).await)
    }
}
