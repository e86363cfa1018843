//! `/api/v1/flow/{flow}/graph/{collection}`: the SPARQL 1.1 Graph Store HTTP Protocol, as far as graphs can be read and
//! added to. Reading is an export, adding an import. The store takes nothing out of a graph by its name alone, as facts
//! belong to where they come from: there is no PUT and no DELETE.

use axum::body::Body as HttpBody;
use axum::extract::{Extension, Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures::stream::{self, StreamExt};
use serde::Deserialize;
use serde_json::{Value, json};
use tg_schemas::Error;
use tg_schemas::msg::{Metadata, Triples};

use super::bulk::{self, Admitted, admit, refused};
use super::counts::{TOLD_SETTLED, part_fault, unconfirmed};
use super::export;
use super::ndjson::Sending;
use super::read;
use super::sparql::{accepted, not_acceptable, refused_part, respond, unsupported};
use super::stored::Filter;
use crate::budget::Reader;
use crate::call::Meta;
use crate::engine::rdf::media::GRAPHS;
use crate::engine::rdf::syntax;
use crate::engine::rdf::writer::Writer;
use crate::engine::scrub::scrub;
use crate::engine::translate::bulk::{BulkKind, Record};
use crate::engine::translate::fields::fault;
use crate::engine::translate::{Body, error_body, error_value};
use crate::error::{RequestError, json_response, refusal};
use crate::receipts::{Refused, Verdict};
use crate::state::{App, Shared};
use crate::turns::Lane;

/// The query string.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Wanted {
    workspace: Option<String>,
    /// The default graph, whatever its value.
    default: Option<String>,
    graph: Option<String>,
    /// Adding: waits until the store has them.
    settled: Option<String>,
}

impl Wanted {
    /// The graph; empty text is the default one.
    fn named(&self) -> Result<String, RequestError> {
        match (&self.default, self.graph.as_deref()) {
            (Some(_), None) => Ok(String::new()),
            // An asterisk means all graphs elsewhere.
            (None, Some("" | "*")) => Err(fault("graph", "must be the IRI of a graph").into()),
            (None, Some(graph)) => Ok(graph.to_owned()),
            _ => Err(fault("graph", "either this or default is required").into()),
        }
    }

    fn of_bulk(&self) -> bulk::Wanted {
        bulk::Wanted::of(self.workspace.clone(), self.settled.clone())
    }
}

/// A graph, streamed in the syntax that its reader wants.
pub(crate) async fn get(
    State(app): State<Shared>,
    Path(of): Path<(String, String)>,
    Query(wanted): Query<Wanted>,
    Extension(meta): Extension<Meta>,
    headers: HeaderMap,
) -> Response {
    let outcome = read_out(&app, of, wanted, meta, &headers).await;
    outcome.unwrap_or_else(refused)
}

async fn read_out(
    app: &App,
    (flow, collection): (String, String),
    wanted: Wanted,
    meta: Meta,
    headers: &HeaderMap,
) -> Result<Response, RequestError> {
    let admitted = admit(
        app,
        "triples:read",
        &flow,
        &wanted.of_bulk(),
        &meta,
        headers,
    )
    .await?;
    let Admitted {
        identity,
        flow,
        generation,
        lapse,
    } = admitted;
    let graph = wanted.named()?;
    let Some(mut writer) = Writer::of_graph(&accepted(headers)) else {
        return Ok(not_acceptable(GRAPHS));
    };
    let room = app.socket_room(&identity, meta.address)?;
    let filter = Filter {
        stored: true,
        collection: Some(collection),
        graph: Some(graph.clone()),
    };
    let from = export::Source {
        flow: flow.clone(),
        generation,
        identity,
    };
    let export = export::open(app, BulkKind::Triples, from, filter, &meta).await?;
    let outlet = export.outlet;
    let lane = app.turns.lane(flow.workspace.as_str());
    let mut sending = Sending::new(app, export.frames, flow, lapse, room);
    let media = writer.media;
    let mut begun = Bytes::new();
    match sending.next().await {
        Some(Ok(first)) => {
            let work = move || writer.written(&first, false);
            match lane.run(work).await.map_err(RequestError::Service)? {
                Ok(written) => (writer, begun) = written,
                Err(error) => return refused_part(error, media),
            }
        }
        Some(Err(error)) => return Err(RequestError::Service(error)),
        // A graph without triples is none, but for the default one.
        None if !graph.is_empty() => {
            return Ok(refusal(StatusCode::NOT_FOUND, "there is no such graph"));
        }
        None => {}
    }
    let begun = stream::iter((!begun.is_empty()).then_some(Ok(begun)));
    let pieces = begun.chain(stream::unfold(Some((sending, writer, lane)), next_piece));
    Ok(respond(media, outlet.body(pieces)))
}

type Rest = Option<(Sending, Writer, Lane)>;

/// The next piece. An error breaks the response off: what comes short never looks whole.
async fn next_piece(rest: Rest) -> Option<(std::io::Result<Bytes>, Rest)> {
    let (mut sending, writer, lane) = rest?;
    let (body, last) = match sending.next().await {
        Some(Ok(body)) => (body, false),
        Some(Err(error)) => return Some((Err(std::io::Error::other(error.message)), None)),
        None => (Body::new(), true),
    };
    let written = lane.run(move || writer.written(&body, last)).await;
    let written = written.unwrap_or_else(|fault| Err(std::io::Error::other(fault.message)));
    Some(match written {
        Ok((writer, piece)) => (Ok(piece), (!last).then_some((sending, writer, lane))),
        Err(error) => (Err(error), None),
    })
}

/// Adds triples to a graph, all of a body or none.
pub(crate) async fn post(
    State(app): State<Shared>,
    Path(of): Path<(String, String)>,
    Query(wanted): Query<Wanted>,
    Extension(meta): Extension<Meta>,
    headers: HeaderMap,
    body: HttpBody,
) -> Response {
    let outcome = add(&app, of, wanted, meta, &headers, body).await;
    outcome.unwrap_or_else(refused)
}

async fn add(
    app: &App,
    (flow, collection): (String, String),
    wanted: Wanted,
    meta: Meta,
    headers: &HeaderMap,
    body: HttpBody,
) -> Result<Response, RequestError> {
    let kind = BulkKind::Triples.name();
    let mut way = bulk::way(app, (&flow, kind), &wanted.of_bulk(), meta, headers).await?;
    let graph = wanted.named()?;
    let content_type = headers.get(header::CONTENT_TYPE);
    let content_type = content_type.and_then(|kind| kind.to_str().ok());
    let Some(format) = syntax::of_body(content_type.unwrap_or_default()) else {
        return Ok(unsupported(&["text/turtle", "application/n-triples"]));
    };
    let read = read::known_bytes(app, headers, body, &way.identity, usize::MAX);
    let (bytes, _received) = read.await?;
    let reader = Reader::known(&way.identity);
    let of = graph.clone();
    let weigh = move |bytes: &[u8], most| syntax::weight(bytes, format, &of, most);
    let parse = move |bytes: &[u8]| syntax::triples(bytes, format, &graph);
    let read = app.budget.read_weighed(&reader, bytes, weigh, parse);
    let (triples, _share) = read.await?;
    let record = Triples {
        metadata: Some(Metadata {
            collection,
            ..Metadata::default()
        }),
        triples: triples?,
    };
    let count = record.triples.len();
    let mut lapse = way.lapse.take();
    let written = tokio::select! {
        biased;
        () = way.flow.stopped.cancelled() => Err(crate::flows::stopped()),
        error = &mut lapse => Err(error),
        written = way.write(app, Record::Triples(record), app.closing.clone()) => written,
    };
    let service = |error: Error| RequestError::Service(scrub(error));
    let Some(unsettled) = written.map_err(service)? else {
        // It is safe, and the store will have it; when, the store decides.
        let told = json!({"triples": count});
        return Ok(json_response(StatusCode::ACCEPTED, &told));
    };
    match unsettled.verdict(app.closing.child_token()).await {
        Verdict::Stored => {
            let told = json!({"triples": count, "stored": true});
            Ok(json_response(StatusCode::OK, &told))
        }
        Verdict::Refused(parts) => Ok(not_stored(parts)),
        // As without being waited for.
        Verdict::Unconfirmed(why) => {
            let error = error_value(&unconfirmed(why));
            let told = json!({"triples": count, "stored": false, "unconfirmed": error});
            Ok(json_response(StatusCode::ACCEPTED, &told))
        }
    }
}

/// The parts of a graph that the store refused. The status and `error` are those of the first.
fn not_stored(parts: Vec<Refused>) -> Response {
    let parts = parts.into_iter().map(|part| (part.from, scrub(part.error)));
    let parts: Vec<(Option<usize>, Error)> = parts.collect();
    let first = parts.first().map(|(_, error)| error.clone());
    let first = first.unwrap_or_else(|| unconfirmed(None));
    let errors = parts.iter().take(TOLD_SETTLED);
    let errors = errors.map(|(from, error)| part_fault(*from, error));
    let errors: Vec<Value> = errors.collect();
    let mut body = error_body(&first);
    body.insert("errors".to_owned(), errors.into());
    let status = StatusCode::from_u16(first.code().status());
    json_response(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_is_named_in_exactly_one_way() {
        let named = |default: Option<&str>, graph: Option<&str>| {
            let wanted = Wanted {
                default: default.map(str::to_owned),
                graph: graph.map(str::to_owned),
                workspace: None,
                settled: None,
            };
            wanted.named().map_err(|fault| fault.error().message)
        };
        assert_eq!(named(Some(""), None), Ok(String::new()));
        assert_eq!(named(None, Some("urn:g")), Ok("urn:g".to_owned()));
        for (default, graph) in [(None, None), (Some(""), Some("urn:g")), (None, Some("*"))] {
            assert!(named(default, graph).unwrap_err().starts_with("graph: "));
        }
    }
}
