//! `POST /v1/embeddings`: vectors of texts.

use axum::body::Body as HttpBody;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use tg_schemas::limits::CHAT_BODY;
use tg_schemas::{Error, ErrorCode};
use tokio_util::sync::CancellationToken;

use super::{call, known, part, refused, told};
use crate::call::Meta;
use crate::engine::compat::chat::reply::Chat;
use crate::engine::compat::embeddings::{self, Asked};
use crate::engine::compat::errors::CompatError;
use crate::error::json_written;
use crate::handlers::read;
use crate::state::Shared;

/// The kind of flow service that answers.
const KIND: &str = "embeddings";

/// `POST /v1/embeddings`.
pub(crate) async fn embed(
    State(app): State<Shared>,
    Extension(meta): Extension<Meta>,
    headers: HeaderMap,
    body: HttpBody,
) -> Response {
    let id = meta.request_id.clone();
    let embedded = embedded(app, meta, &headers, body).await;
    embedded.unwrap_or_else(|fault| told::<Chat>(&fault, &id))
}

async fn embedded(
    app: Shared,
    meta: Meta,
    headers: &HeaderMap,
    body: HttpBody,
) -> Result<Response, CompatError> {
    let identity = known(&app, headers, &meta).await?;
    let read = read::body_of(&app, headers, body, Some(&identity), CHAT_BODY).await;
    let (body, question) = read.map_err(refused)?;
    let asked = match embeddings::has_tokens(&body) {
        false => {
            let read = Asked::read(&body);
            drop(body);
            read
        }
        // The table of tokens is read once, which takes time.
        true => tokio::task::spawn_blocking(move || Asked::read(&body))
            .await
            .unwrap_or_else(|_| {
                let text = "the request could not be read";
                Err(Error::new(ErrorCode::Internal, text))
            }),
    };
    let asked = asked.map_err(|error| CompatError::of(&error, None, None))?;
    let call = call(KIND, meta, headers, asked.question(), true)?;
    let running = app.start(&identity, call, CancellationToken::new()).await;
    let mut running = running.map_err(refused)?.holding(question);
    let (body, _) = part(running.next().await).map_err(embeddings::failed)?;
    let answer = asked.answer(&body)?.to_string();
    let outlet = app.sending.outlet(&identity);
    Ok(json_written(
        StatusCode::OK,
        outlet.hold_whole(answer.into()).await,
    ))
}
