//! A receiver of traces over OTLP/HTTP with JSON that reads as strictly as the protocol says: known fields only, ids of 16
//! and 8 bytes as digits, times and whole numbers as texts, enumerations as numbers. What it cannot read is a fault.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// A span as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct Received {
    /// `service.name` of its resource.
    pub service: String,
    /// `service.instance.id` of its resource.
    pub instance: String,
    /// Id of its trace.
    pub trace: String,
    /// Its id.
    pub span: String,
    /// Id of the span that it belongs to.
    pub parent: Option<String>,
    /// Its name.
    pub name: String,
    /// Its kind: 1 internal, 2 server, 3 client, 4 producer, 5 consumer.
    pub kind: u8,
    /// When it began, in nanoseconds since 1970.
    pub began: u64,
    /// When it ended.
    pub ended: u64,
    /// Its attributes, numbers as texts.
    pub attributes: BTreeMap<String, String>,
    /// Whether its status is an error.
    pub failed: bool,
}

#[derive(Default)]
struct Shared {
    spans: Mutex<Vec<Received>>,
    faults: Mutex<Vec<String>>,
    headers: Mutex<Vec<HeaderMap>>,
    refuses: Mutex<Option<(u16, Option<u64>)>>,
    requests: watch::Sender<usize>,
}

/// The running receiver. Dropping it stops it.
pub struct Receiver {
    shared: Arc<Shared>,
    port: u16,
    stop: CancellationToken,
}

impl Receiver {
    /// Starts on a free port.
    ///
    /// # Errors
    /// No port can be listened on.
    pub async fn start() -> std::io::Result<Self> {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let shared: Arc<Shared> = Arc::default();
        let stop = CancellationToken::new();
        let router = Router::new()
            .route("/v1/traces", post(take))
            .with_state(shared.clone());
        let stopped = stop.clone();
        tokio::spawn(async move {
            let serving = async { axum::serve(listener, router).await };
            tokio::select! {
                () = stopped.cancelled() => {}
                _ = serving => {}
            }
        });
        Ok(Self { shared, port, stop })
    }

    /// Its base address.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// From now on it refuses with this status, and says how many seconds to wait; `None`: it takes what comes.
    pub fn refuse(&self, with: Option<(u16, Option<u64>)>) {
        *self.shared.refuses.lock() = with;
    }

    /// What came so far.
    pub fn spans(&self) -> Vec<Received> {
        self.shared.spans.lock().clone()
    }

    /// What could not be read.
    pub fn faults(&self) -> Vec<String> {
        self.shared.faults.lock().clone()
    }

    /// How many requests came, refused ones among them.
    pub fn requests(&self) -> usize {
        *self.shared.requests.borrow()
    }

    /// A header of all requests so far.
    pub fn header(&self, name: &str) -> Vec<Option<String>> {
        let all = self.shared.headers.lock();
        let text = |headers: &HeaderMap| Some(headers.get(name)?.to_str().ok()?.to_owned());
        all.iter().map(text).collect()
    }

    /// Waits until what came is as wanted; `false` when the bound passes first.
    pub async fn until(&self, bound: Duration, wanted: impl Fn(&[Received]) -> bool) -> bool {
        let mut requests = self.shared.requests.subscribe();
        let come = requests.wait_for(|_| wanted(&self.shared.spans.lock()));
        tokio::time::timeout(bound, come).await.is_ok()
    }

    /// Waits for so many requests; `false` when the bound passes first.
    pub async fn asked(&self, times: usize, bound: Duration) -> bool {
        let mut requests = self.shared.requests.subscribe();
        let come = requests.wait_for(|came| *came >= times);
        tokio::time::timeout(bound, come).await.is_ok()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn take(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    let kind = headers.get("content-type").cloned();
    shared.headers.lock().push(headers);
    let refusal = *shared.refuses.lock();
    let answer = match (refusal, kind) {
        (Some((status, wait)), _) => {
            let status = StatusCode::from_u16(status).expect("a status");
            let mut answer = (status, "this is not shown to anybody").into_response();
            if let Some(seconds) = wait {
                answer.headers_mut().insert("retry-after", seconds.into());
            }
            answer
        }
        (None, Some(kind)) if kind == "application/json" => match read(&body) {
            Ok(spans) => {
                shared.spans.lock().extend(spans);
                axum::Json(json!({"partialSuccess": {}})).into_response()
            }
            Err(fault) => {
                shared.faults.lock().push(fault);
                StatusCode::BAD_REQUEST.into_response()
            }
        },
        _ => StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response(),
    };
    shared.requests.send_modify(|requests| *requests += 1);
    answer
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Request {
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ResourceSpans {
    resource: Resource,
    scope_spans: Vec<ScopeSpans>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Resource {
    attributes: Vec<Attribute>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ScopeSpans {
    scope: Scope,
    spans: Vec<Span>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scope {
    name: String,
    #[serde(rename = "version")]
    _version: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Span {
    trace_id: String,
    span_id: String,
    parent_span_id: Option<String>,
    flags: u32,
    name: String,
    kind: u8,
    start_time_unix_nano: String,
    end_time_unix_nano: String,
    attributes: Vec<Attribute>,
    status: Option<Status>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Status {
    code: u8,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Attribute {
    key: String,
    value: BTreeMap<String, Value>,
}

fn read(body: &[u8]) -> Result<Vec<Received>, String> {
    let request: Request = serde_json::from_slice(body).map_err(|fault| fault.to_string())?;
    let mut all = Vec::new();
    for group in request.resource_spans {
        let about = attributes(group.resource.attributes)?;
        let of = |key: &str| about.get(key).cloned().ok_or(format!("no {key}"));
        let (service, instance) = (of("service.name")?, of("service.instance.id")?);
        for scoped in group.scope_spans {
            if scoped.scope.name.is_empty() || scoped.spans.is_empty() {
                return Err("a scope without a name or spans".to_owned());
            }
            for span in scoped.spans {
                all.push(checked(span, &service, &instance)?);
            }
        }
    }
    Ok(all)
}

fn checked(span: Span, service: &str, instance: &str) -> Result<Received, String> {
    let (began, ended) = (
        nanos(&span.start_time_unix_nano)?,
        nanos(&span.end_time_unix_nano)?,
    );
    let recorded = span.flags & 1 == 1 && span.flags < 0x400;
    let well = recorded && (1..=5).contains(&span.kind) && began <= ended && !span.name.is_empty();
    if !well {
        return Err(format!("{}: flags, kind, name or times", span.name));
    }
    Ok(Received {
        service: service.to_owned(),
        instance: instance.to_owned(),
        trace: id(span.trace_id, 32)?,
        span: id(span.span_id, 16)?,
        parent: span
            .parent_span_id
            .map(|parent| id(parent, 16))
            .transpose()?,
        name: span.name,
        kind: span.kind,
        began,
        ended,
        attributes: attributes(span.attributes)?,
        failed: match span.status.map(|status| status.code) {
            None | Some(0 | 1) => false,
            Some(2) => true,
            Some(_) => return Err("a status that is none".to_owned()),
        },
    })
}

fn id(text: String, length: usize) -> Result<String, String> {
    let digits = text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match digits && text.bytes().any(|byte| byte != b'0') {
        true => Ok(text.to_lowercase()),
        false => Err(format!("'{text}' is no id of {length} digits")),
    }
}

/// A time of this century, in nanoseconds.
fn nanos(text: &str) -> Result<u64, String> {
    let number = text.parse().ok();
    let number = number.filter(|at: &u64| *at > 946_684_800_000_000_000 && *at < 1 << 62);
    number.ok_or(format!("'{text}' is no time"))
}

fn attributes(all: Vec<Attribute>) -> Result<BTreeMap<String, String>, String> {
    let mut read = BTreeMap::new();
    for one in all {
        let [(kind, value)]: [_; 1] = Vec::from_iter(&one.value)
            .try_into()
            .map_err(|_| format!("{} has not one value", one.key))?;
        let text = match (kind.as_str(), value.as_str()) {
            ("stringValue", Some(text)) => text,
            ("intValue", Some(text)) if text.parse::<i64>().is_ok() => text,
            _ => return Err(format!("{}: {kind}", one.key)),
        };
        if one.key.is_empty() || read.insert(one.key.clone(), text.to_owned()).is_some() {
            return Err(format!("'{}' is said twice, or has no name", one.key));
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(change: impl Fn(&mut Value)) -> Vec<u8> {
        let attribute = |key: &str| json!({"key": key, "value": {"stringValue": "a"}});
        let mut span = json!({
            "traceId": "4bf92f3577b34da6a3ce929d0e0e4736", "spanId": "00f067aa0ba902b7",
            "flags": 1, "name": "a", "kind": 2, "startTimeUnixNano": "1700000000000000000",
            "endTimeUnixNano": "1700000000000000001",
            "attributes": [{"key": "n", "value": {"intValue": "7"}}],
        });
        change(&mut span);
        let resource =
            json!({"attributes": [attribute("service.name"), attribute("service.instance.id")]});
        let scope = json!({"name": "s", "version": "1"});
        let scoped = json!([{"scope": scope, "spans": [span]}]);
        let groups = json!([{"resource": resource, "scopeSpans": scoped}]);
        serde_json::to_vec(&json!({"resourceSpans": groups})).unwrap()
    }

    #[test]
    fn only_what_the_protocol_says_is_read() {
        let read_with = |key: &'static str, value: Value| {
            read(&body(|span| span[key] = value.clone())).map(|all| all.len())
        };
        assert_eq!(read(&body(|_| {})).unwrap()[0].attributes["n"], "7");
        assert_eq!(read_with("parentSpanId", json!("00f067aa0ba902b8")), Ok(1));
        for (key, value) in [
            ("trace_id", json!("a")),
            ("traceId", json!("S/kvNXezTaajzpKdDg5HNg==")),
            ("spanId", json!("0000000000000000")),
            ("parentSpanId", json!("")),
            ("kind", json!("SPAN_KIND_SERVER")),
            ("kind", json!(0)),
            ("flags", json!(0)),
            ("startTimeUnixNano", json!(1_700_000_000_000_000_000_u64)),
            ("startTimeUnixNano", json!("1700000000")),
            ("endTimeUnixNano", json!("1600000000000000000")),
            ("status", json!({"code": 3})),
            (
                "attributes",
                json!([{"key": "n", "value": {"intValue": 7}}]),
            ),
            ("attributes", json!([{"key": "n", "value": {}}])),
            ("attributes", json!([{"key": "n", "value": {"text": "a"}}])),
        ] {
            assert!(read_with(key, value.clone()).is_err(), "{key}: {value}");
        }
    }
}
