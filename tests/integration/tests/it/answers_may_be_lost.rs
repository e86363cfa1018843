//! A request that adds, puts or imports something succeeds when it comes again under its id with the same content, also where the
//! first connection was cut before the answer, and where the answer itself was lost. It adds nothing twice.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::process::{Server, client};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::world::{Bus, on_both_buses, post, up};

const BOUND: Duration = Duration::from_secs(60);
/// Before a request that was asked to come again later comes again.
const PAUSE: Duration = Duration::from_millis(100);
const JSON: &str = "application/json";
/// The id of the document, and the name of all else.
const DOCUMENT: &str = "urn:doc:lost";
const NAME: &str = "lost";

/// A request: its path, and its body with the type of that.
struct Request {
    path: &'static str,
    kind: &'static str,
    body: String,
}

fn asks(path: &'static str, body: &Value) -> Request {
    Request {
        path,
        kind: JSON,
        body: body.to_string(),
    }
}

/// One of each that adds something.
fn requests(blueprint: &Value) -> Vec<Request> {
    let iri = |text: &str| json!({"t": "i", "i": text});
    let triple = json!({"s": iri("urn:a"), "p": iri("urn:b"), "o": iri("urn:c")});
    let about = json!({"id": "urn:core:lost", "collection": "default"});
    let triples = json!({"metadata": about, "triples": [triple]});
    let document = json!({"id": DOCUMENT, "kind": "text/plain", "title": NAME});
    let processing = json!({"id": NAME, "document-id": DOCUMENT, "flow": "default",
        "collection": "default", "tags": []});
    vec![
        asks(
            "api/v1/iam",
            &json!({"operation": "create-workspace", "workspace_record": {"id": NAME, "enabled": true}}),
        ),
        asks(
            "api/v1/config",
            &json!({"operation": "put", "values": [{"type": "notes", "key": NAME, "value": "\"mine\""}]}),
        ),
        asks(
            "api/v1/collection-management",
            &json!({"operation": "update-collection", "workspace": "default", "collection": NAME}),
        ),
        asks(
            "api/v1/librarian",
            &json!({"operation": "add-document", "workspace": "default", "document-metadata": document,
                "content": "TG9zdCBhbnN3ZXJzIGFyZSBmb3VuZC4="}),
        ),
        asks(
            "api/v1/librarian",
            &json!({"operation": "add-processing", "workspace": "default", "processing-metadata": processing}),
        ),
        asks(
            "api/v1/flow",
            &json!({"operation": "put-blueprint", "workspace": "default", "blueprint-name": NAME,
                "blueprint-definition": blueprint}),
        ),
        asks(
            "api/v1/flow",
            &json!({"operation": "start-flow", "workspace": "default", "flow-id": NAME,
                "blueprint-name": "everything", "description": "d"}),
        ),
        asks(
            "api/v1/knowledge",
            &json!({"operation": "put-kg-core", "workspace": "default", "triples": triples}),
        ),
        asks("api/v1/flow/default/import/triples?settled=true", &triples),
        Request {
            path: "api/v1/flow/default/graph/default?default&settled=true",
            kind: "text/turtle",
            body: "<urn:a> <urn:b> \"lost\" .".to_owned(),
        },
        asks("api/v1/workspaces/default/agents", &json!({"name": NAME})),
        asks(
            "api/v1/workspaces/default/llm-services",
            &json!({"name": NAME, "provider": "ollama", "modelName": "m"}),
        ),
        asks("a1/agents/concise-de/sessions", &json!({})),
    ]
}

/// Sends a request and leaves before it is answered.
async fn cut(server: &Server, request: &Request, id: &str) -> Result<()> {
    let Request { path, kind, body } = request;
    let (port, length) = (server.port(), body.len());
    let head = format!(
        "POST /{path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         X-Request-Id: {id}\r\nSPASS-User-Id: ann\r\n\r\n"
    );
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    Ok(stream.shutdown().await?)
}

/// Sends a request until the system has room for it; its answer, which is a success.
async fn succeeds(url: &str, request: &Request, id: &str) -> Result<Value> {
    let end = Instant::now() + BOUND;
    loop {
        let sent = client()?
            .post(format!("{url}{}", request.path))
            .header("content-type", request.kind)
            .header("x-request-id", id)
            .header("SPASS-User-Id", "ann")
            .body(request.body.clone())
            .timeout(2 * BOUND);
        let answer = sent.send().await?;
        let status = answer.status();
        let text = answer.text().await?;
        let told: Value = serde_json::from_str(&text).unwrap_or(Value::String(text));
        let is_busy = matches!(status.as_u16(), 429 | 503) || told["error"]["type"] == "busy";
        if is_busy && Instant::now() < end {
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        let is_stored = told["stored"].is_null() || told["stored"] == 1 || told["stored"] == true;
        let is_done = status.is_success() && told["error"].is_null() && is_stored;
        ensure!(
            is_done,
            "{} {}: {status} {told}",
            request.path,
            request.body
        );
        return Ok(told);
    }
}

async fn requests_that_come_again_succeed(bus: Bus) -> Result<()> {
    let (server, _node) = up(bus).await?;
    let url = server.url();
    let get = json!({"operation": "get-blueprint", "workspace": "default", "blueprint-name": "everything"});
    let (_, got) = post(&url, "api/v1/flow", get).await?;
    let blueprint = &got["blueprint-definition"];
    ensure!(!blueprint.is_null(), "{got}");
    for (at, request) in requests(blueprint).iter().enumerate() {
        let id = format!("6f1f6a52-6f0c-4d3e-9a53-3a1c4b1e{at:04}");
        cut(&server, request, &id).await?;
        let first = succeeds(&url, request, &id).await;
        let first = first.context("its first connection was cut")?;
        let again = succeeds(&url, request, &id).await;
        let again = again.context("its first answer was lost")?;
        // What gets its id from the request is there once.
        if request.path.starts_with("a1/") || request.path.starts_with("api/v1/workspaces/") {
            ensure!(first == again, "{}: {first} and {again}", request.path);
        }
    }
    let agents = client()?.get(format!("{url}api/v1/workspaces/default/agents"));
    let agents: Value = agents.send().await?.json().await?;
    let items = agents["items"].as_array().context(agents.to_string())?;
    let count = items.iter().filter(|one| one["name"] == NAME).count();
    ensure!(count == 1, "{agents}");
    Ok(())
}

on_both_buses!(requests_that_come_again_succeed);
