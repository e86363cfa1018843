//! `GET /metrics`, `/api/metrics` and `/api/metrics/{path}`: the process's own numbers as text, and the
//! queries of the official commands answered from the live state of the mesh. There is no Prometheus
//! behind this endpoint.
use axum::extract::{Extension, Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use tg_mesh::clock;
use tg_schemas::msg::Presence;

use super::read;
use crate::auth::Resource;
use crate::call::Meta;
use crate::engine::promql::{Sample, Selector, parse_text};
use crate::error::{RequestError, json_response};
use crate::exposition::Exposition;
use crate::registry::Gate;
use crate::state::{App, Shared};

/// The query string of the query API.
#[derive(Debug, Deserialize)]
pub(crate) struct Wanted {
    query: Option<String>,
}

/// The exposition format.
pub(crate) async fn text(
    State(app): State<Shared>,
    Extension(meta): Extension<Meta>,
    headers: HeaderMap,
) -> Response {
    if let Err(fault) = admit(&app, &meta, &headers).await {
        return fault.into_response();
    }
    Exposition::response(own(&app).await)
}

/// Instant queries.
pub(crate) async fn query(
    State(app): State<Shared>,
    Path(path): Path<String>,
    Query(wanted): Query<Wanted>,
    Extension(meta): Extension<Meta>,
    headers: HeaderMap,
) -> Response {
    if let Err(fault) = admit(&app, &meta, &headers).await {
        return fault.into_response();
    }
    if path.trim_matches('/') != "query" {
        return refused(StatusCode::NOT_FOUND, "only instant queries are answered");
    }
    let query = wanted.query.unwrap_or_default();
    match Selector::parse(&query) {
        Some(selector) => json_response(StatusCode::OK, &vector(&app, &selector).await),
        None => refused(
            StatusCode::BAD_REQUEST,
            "query: must be a metric name, with label matchers or without",
        ),
    }
}

async fn admit(app: &App, meta: &Meta, headers: &HeaderMap) -> Result<(), RequestError> {
    const CAPABILITY: &str = "metrics:read";
    let identity = app.known(read::bearer(headers), meta).await?;
    let asked = app.asked_for(&identity, (CAPABILITY, "metrics".to_owned()), "", meta);
    let gate = Gate::Needs(CAPABILITY);
    let resource = Resource::default();
    let decided = app.auth.authorise(&identity, gate, &resource).await;
    app.decided(asked, decided.as_ref().err());
    decided
}

async fn own(app: &App) -> String {
    match &app.options.metrics {
        Some(metrics) => metrics.text().await,
        None => String::new(),
    }
}

fn refused(status: StatusCode, why: &str) -> Response {
    json_response(
        status,
        &json!({"status": "error", "errorType": "bad_data", "error": why}),
    )
}

async fn vector(app: &App, selector: &Selector) -> Value {
    let now = clock::millis() as f64 / 1_000.0;
    let processes = app.mesh.presence().snapshot();
    let mut samples = match selector.name() {
        "processor_info" => processor_info(&processes),
        "consumer_state" => consumer_state(&processes),
        name => parse_text(&own(app).await, name),
    };
    samples.retain(|sample| selector.matches(sample));
    let result: Vec<Value> = samples
        .into_iter()
        .map(|sample| json!({"metric": sample.labels, "value": [now, sample.value.to_string()]}))
        .collect();
    json!({"status": "success", "data": {"resultType": "vector", "result": result}})
}

/// One sample per processor that some process hosts.
fn processor_info(processes: &[Presence]) -> Vec<Sample> {
    let mut names: Vec<(&str, &str)> = processes
        .iter()
        .flat_map(|process| &process.processors)
        .map(|processor| (processor.id.as_str(), processor.state.as_str()))
        .collect();
    // `serving` sorts before `standby`: a processor that anybody serves is served.
    names.sort();
    names.dedup_by_key(|name| name.0);
    names
        .into_iter()
        .map(|(id, state)| {
            Sample::new(
                "processor_info",
                &[("processor", id), ("job", id), ("state", state)],
                1.0,
            )
        })
        .collect()
}

/// One sample per processor and flow.
fn consumer_state(processes: &[Presence]) -> Vec<Sample> {
    let mut samples = Vec::new();
    for process in processes {
        for processor in &process.processors {
            for flow in &processor.flows {
                let running = processor.state == "serving";
                samples.push(Sample::new(
                    "consumer_state",
                    &[
                        ("processor", &processor.id),
                        ("job", &processor.id),
                        ("workspace", &flow.workspace),
                        ("flow", &flow.flow),
                        ("consumer_state", "running"),
                    ],
                    f64::from(u8::from(running)),
                ));
            }
        }
    }
    samples.sort_by(|a, b| a.labels.iter().cmp(b.labels.iter()));
    samples.dedup_by(|a, b| a.labels == b.labels);
    samples
}
