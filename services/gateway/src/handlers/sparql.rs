//! `/api/v1/flow/{flow}/sparql/{collection}`: the SPARQL 1.1 Protocol over the service `sparql`, which answers as it
//! answers everybody; only the words are the standard's.

use axum::body::Body as HttpBody;
use axum::extract::{Extension, OriginalUri, Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream;
use percent_encoding::percent_decode_str;
use serde_json::json;
use tg_schemas::limits::MESSAGE;
use tg_schemas::{Error, ErrorCode};
use tokio_util::sync::CancellationToken;

use super::bulk::refused;
use super::{forwarded, read};
use crate::ask::Part;
use crate::auth::Identity;
use crate::call::{Call, Leave, Meta, Target};
use crate::engine::rdf::description;
use crate::engine::rdf::media::{self, Accept, BOOLEANS, GRAPHS, RESULTS};
use crate::engine::rdf::writer::Writer;
use crate::engine::translate::fields::fault;
use crate::engine::translate::{PartBody, error_body};
use crate::error::{RequestError, json_response};
use crate::registry::Gate;
use crate::running::Running;
use crate::state::{App, Shared};
use crate::turns::Lane;

/// Most results of a part of an answer: few messages for large answers, little memory for each.
const BATCH: i64 = 1000;
/// Largest body: of a longer query no message could be made. A form writes one byte as three.
const LARGEST: usize = 3 * MESSAGE;
const FORM: &str = "application/x-www-form-urlencoded";
const QUERY: &str = "application/sparql-query";
const UPDATE: &str = "application/sparql-update";

/// A query in the query string; with none, what the endpoint is.
pub(crate) async fn get(
    State(app): State<Shared>,
    Path(of): Path<(String, String)>,
    RawQuery(query): RawQuery,
    OriginalUri(uri): OriginalUri,
    Extension(meta): Extension<Meta>,
    headers: HeaderMap,
) -> Response {
    let outcome = async {
        let asked = Asked::default().with(query.as_deref().unwrap_or_default())?;
        let identity = app.known(read::bearer(&headers), &meta).await?;
        match &asked.query {
            Some(_) => answer(&app, &identity, of, asked, meta, &headers).await,
            None => described(&app, &identity, of, &asked, &uri, &headers).await,
        }
    };
    outcome.await.unwrap_or_else(refused)
}

/// A query in the body: by itself, or as a field of a form.
pub(crate) async fn post(
    State(app): State<Shared>,
    Path(of): Path<(String, String)>,
    RawQuery(query): RawQuery,
    Extension(meta): Extension<Meta>,
    headers: HeaderMap,
    body: HttpBody,
) -> Response {
    let outcome = async {
        let identity = app.known(read::bearer(&headers), &meta).await?;
        let kind = headers.get(header::CONTENT_TYPE);
        let kind = media::essence(kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default());
        match kind.as_str() {
            FORM | QUERY => {}
            UPDATE => return Err(no_updates()),
            _ => return Ok(unsupported(&[FORM, QUERY])),
        }
        let read = read::known_bytes(&app, &headers, body, &identity, LARGEST);
        let (bytes, _received) = read.await?;
        let text = std::str::from_utf8(&bytes).map_err(|_| fault("query", "is not UTF-8"))?;
        let asked = Asked::default().with(query.as_deref().unwrap_or_default())?;
        let asked = match kind.as_str() {
            FORM => asked.with(text)?,
            _ => asked.put("query", text.to_owned())?,
        };
        answer(&app, &identity, of, asked, meta, &headers).await
    };
    outcome.await.unwrap_or_else(refused)
}

/// The operation's parameters.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Asked {
    query: Option<String>,
    workspace: Option<String>,
    default: Vec<String>,
    named: Vec<String>,
}

impl Asked {
    /// Adds those of a query string or a form. Others are of other implementations, and mean nothing here.
    pub(super) fn with(self, text: &str) -> Result<Self, RequestError> {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        pairs.into_iter().try_fold(self, |asked, pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name =
                decoded(name).ok_or_else(|| fault("query", "has a name that is not UTF-8"))?;
            let value = decoded(value).ok_or_else(|| fault(&name, "is not UTF-8"))?;
            asked.put(&name, value)
        })
    }

    fn put(mut self, name: &str, value: String) -> Result<Self, RequestError> {
        let once = |place: &mut Option<String>| match place.replace(value.clone()) {
            None => Ok(()),
            Some(_) => Err(fault(name, "occurs more than once")),
        };
        match name {
            "query" => once(&mut self.query)?,
            "workspace" => once(&mut self.workspace)?,
            // Forms send fields that nobody filled in.
            "default-graph-uri" | "named-graph-uri" if value.is_empty() => {}
            "default-graph-uri" => self.default.push(value),
            "named-graph-uri" => self.named.push(value),
            "update" => return Err(no_updates()),
            _ => {}
        }
        Ok(self)
    }
}

/// A name or value of a query string or a form; `None`: it is not UTF-8.
pub(super) fn decoded(text: &str) -> Option<String> {
    let text = text.replace('+', " ");
    let decoded = percent_decode_str(&text).decode_utf8().ok()?;
    Some(decoded.into_owned())
}

fn no_updates() -> RequestError {
    let text =
        "updates are refused here: graphs are written through the import and graph store endpoints";
    RequestError::Service(Error::new(ErrorCode::Forbidden, text))
}

/// What the reader of an answer accepts.
pub(super) fn accepted(headers: &HeaderMap) -> Accept {
    let values = headers.get_all(header::ACCEPT).into_iter();
    Accept::read(values.filter_map(|value| value.to_str().ok()))
}

/// No syntax of such an answer is one that its reader accepts.
pub(super) fn not_acceptable<F>(offers: &[media::Offer<F>]) -> Response {
    let kinds: Vec<&str> = offers.iter().map(|offer| offer.0).collect();
    told(
        StatusCode::NOT_ACCEPTABLE,
        format!("accept: the answer comes as {}", kinds.join(", ")),
    )
}

/// The body is of a kind that is not read.
pub(super) fn unsupported(kinds: &[&str]) -> Response {
    told(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        format!("content-type: must be {}", kinds.join(" or ")),
    )
}

fn told(status: StatusCode, text: String) -> Response {
    json_response(
        status,
        &error_body(&Error::new(ErrorCode::BadRequest, text)),
    )
}

async fn answer(
    app: &App,
    identity: &Identity,
    (flow, collection): (String, String),
    asked: Asked,
    meta: Meta,
    headers: &HeaderMap,
) -> Result<Response, RequestError> {
    let accept = accepted(headers);
    if accept.best(RESULTS).is_none() && accept.best(GRAPHS).is_none() {
        // Whatever the answer will be.
        return Ok(not_acceptable(RESULTS));
    }
    let body = json!({
        "query": asked.query.unwrap_or_default(),
        "collection": collection,
        "default-graph-uri": asked.default,
        "named-graph-uri": asked.named,
        "streaming": true,
        "limit": 0,
        "batch-size": BATCH,
    });
    let call = Call {
        target: Target::kind("sparql", &flow)?,
        body: body.as_object().cloned().unwrap_or_default(),
        workspace: asked.workspace,
        timeout: read::timeout(headers)?,
        leave: Leave::Cancel,
        whole: false,
        meta,
    };
    let mut running = app.start(identity, call, CancellationToken::new()).await?;
    // Nothing is sent before the first part is there: what fails at once has a status that says so.
    let (first, last) = part(running.next().await)?;
    let lane = running.lane.clone();
    let begun = lane.run(move || begin(&accept, first, last)).await;
    let (writer, first) = match begun.map_err(RequestError::Service)?? {
        Begun::Answer(writer, first) => (writer, first),
        Begun::Refusal(response) => return Ok(response),
    };
    let (media, outlet) = (writer.media, app.sending.outlet(identity));
    if last {
        return Ok(respond(media, outlet.hold(first).await.into()));
    }
    let state = Sending {
        first: Some(first),
        rest: Some((running, writer)),
        lane,
    };
    let pieces = stream::unfold(state, Sending::next);
    Ok(respond(media, outlet.body(pieces)))
}

/// What comes of the first part.
enum Begun {
    Answer(Writer, Bytes),
    Refusal(Response),
}

/// Writes the first part of an answer.
fn begin(accept: &Accept, first: PartBody, last: bool) -> Result<Begun, RequestError> {
    let first = first.into_tree();
    let Some(writer) = Writer::of_answer(accept, &first) else {
        return Ok(Begun::Refusal(match first["query-type"].as_str() {
            Some("construct" | "describe") => not_acceptable(GRAPHS),
            Some("ask") => not_acceptable(BOOLEANS),
            _ => not_acceptable(RESULTS),
        }));
    };
    let mut writer = writer.map_err(unwritable)?;
    if let Err(error) = writer.part(&first) {
        return refused_part(error, writer.media).map(Begun::Refusal);
    }
    if last {
        writer.finish().map_err(unwritable)?;
    }
    let piece = writer.take();
    Ok(Begun::Answer(writer, piece))
}

/// An answer on its way. Dropping it cancels the query.
struct Sending {
    first: Option<Bytes>,
    rest: Option<(Running, Writer)>,
    lane: Lane,
}

impl Sending {
    /// The next piece. An error breaks the response off: what comes short never looks whole.
    async fn next(mut self) -> Option<(std::io::Result<Bytes>, Self)> {
        if let Some(first) = self.first.take() {
            return Some((Ok(first), self));
        }
        let (mut running, writer) = self.rest.take()?;
        let (body, last) = match part(running.next().await) {
            Ok(part) => part,
            Err(fault) => {
                let error = std::io::Error::other(fault.error().message);
                return Some((Err(error), self));
            }
        };
        let work = move || writer.written(&body.into_tree(), last);
        let piece = match self.lane.run(work).await {
            Ok(Ok((writer, piece))) => {
                if !last {
                    self.rest = Some((running, writer));
                }
                Ok(piece)
            }
            Ok(Err(error)) => Err(error),
            Err(fault) => Err(std::io::Error::other(fault.message)),
        };
        Some((piece, self))
    }
}

/// A part of an answer, and whether it is the last.
fn part(part: Option<Part>) -> Result<(PartBody, bool), RequestError> {
    match part {
        Some(Part::Body {
            body,
            last,
            failed: false,
        }) => Ok((body, last)),
        Some(Part::Body { body, .. }) => {
            let error = body.into_tree().remove("error").unwrap_or_default();
            Err(RequestError::Service(
                serde_json::from_value(error).unwrap_or_default(),
            ))
        }
        Some(Part::Error(error)) => Err(RequestError::Service(error)),
        None => Err(RequestError::Service(Error::new(
            ErrorCode::Interrupted,
            "the answer is incomplete",
        ))),
    }
}

/// The first part cannot be written: in this syntax, which another one can, or at all.
pub(super) fn refused_part(
    error: std::io::Error,
    media: &'static str,
) -> Result<Response, RequestError> {
    match error.kind() {
        std::io::ErrorKind::Unsupported => Ok(told(
            StatusCode::NOT_ACCEPTABLE,
            format!("accept: the answer cannot be written as {media}, but as others: {error}"),
        )),
        _ => Err(unwritable(error)),
    }
}

/// The syntax asked for cannot say what is in the answer.
pub(super) fn unwritable(error: std::io::Error) -> RequestError {
    let text = format!("the answer cannot be written in this syntax: {error}");
    RequestError::Service(Error::new(ErrorCode::Internal, text))
}

pub(super) fn respond(media: &'static str, body: HttpBody) -> Response {
    // Syntaxes of texts have a character set.
    let media = match media.starts_with("text/") {
        true => format!("{media}; charset=utf-8"),
        false => media.to_owned(),
    };
    // What is acceptable differs, and who may see it.
    let headers = [
        (header::CONTENT_TYPE, media),
        (header::VARY, "accept, authorization".to_owned()),
    ];
    (headers, body).into_response()
}

async fn described(
    app: &App,
    identity: &Identity,
    (flow, _): (String, String),
    asked: &Asked,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Response, RequestError> {
    let gate = Gate::Needs("sparql:read");
    let (flow, _) = app
        .flow(identity, asked.workspace.as_deref(), &flow, gate)
        .await?;
    flow.request("sparql")?;
    let host = forwarded::host(headers, uri);
    let host = host.as_ref().map_or("", |host| host.as_str());
    let secure = app.options.settings.certificate().is_some() || forwarded::is_secure(headers);
    let scheme = if secure { "https" } else { "http" };
    let endpoint = format!("{scheme}://{host}{}", uri.path());
    match description::describe(&accepted(headers), &endpoint) {
        None => Ok(not_acceptable(GRAPHS)),
        Some(described) => {
            let (media, bytes) = described.map_err(unwritable)?;
            Ok(forwarded::kept_nowhere(respond(media, bytes.into())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> String {
        Asked::default().with(text).unwrap_err().error().message
    }

    #[test]
    fn parameters_are_read_as_forms_write_them() {
        let asked = Asked::default()
            .with("query=ASK+%7B%7D&default-graph-uri=urn%3Aa&default-graph-uri=urn:b&format=xml")
            .unwrap()
            .with("named-graph-uri=urn:c&workspace=acme")
            .unwrap();
        assert_eq!(asked.query.as_deref(), Some("ASK {}"));
        assert_eq!(asked.default, ["urn:a", "urn:b"]);
        assert_eq!(asked.named, ["urn:c"]);
        assert_eq!(asked.workspace.as_deref(), Some("acme"));
        assert_eq!(Asked::default().with("").unwrap(), Asked::default());
        let unfilled = "default-graph-uri=&named-graph-uri=&maxrows=&format=json";
        assert_eq!(Asked::default().with(unfilled).unwrap(), Asked::default());
    }

    #[test]
    fn what_cannot_be_meant_is_refused_by_its_field() {
        assert_eq!(told("query=a&query=b"), "query: occurs more than once");
        assert_eq!(told("query=%FF"), "query: is not UTF-8");
        assert!(told("update=DROP+ALL").starts_with("updates are refused"));
    }
}
