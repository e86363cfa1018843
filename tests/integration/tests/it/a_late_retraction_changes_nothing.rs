//! What was on the way for a workspace when it was deleted, and comes after another of its name was made, changes
//! nothing in any store: neither a retraction, nor a write, nor a text for the library. The same records of the
//! workspace that is there do what they say.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_schemas::Headers;
use tg_schemas::msg::{LibraryTexts, Retract, Triples};
use tg_testkit::outside::{Sent, config_row, publish, record};
use tg_testkit::process::{Launch, Server, client};
use tg_testkit::rabbitmq::RabbitNode;

use crate::workspaces::{iam, literals, make, patiently, put};
use crate::world::{Bus, busy, post};

const BOUND: Duration = Duration::from_secs(30);
const CHUNK: &str = "urn:chunk:1";
const TEXT: &str = "urn:text:late";
const VECTOR: [f64; 3] = [0.5, -0.25, 1.0];
const SCHEMA: &str = r#"{"name": "lamps", "description": "Lamps", "fields": [
    {"name": "id", "type": "integer", "primary_key": true}, {"name": "maker", "type": "string"}]}"#;

/// How much each store has of what came from the chunk.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    literals: Vec<String>,
    entities: usize,
    chunks: usize,
    rows: usize,
    text: bool,
}

async fn count(url: &str, service: &str, mut ask: Value, at: &str) -> Result<usize> {
    ask["workspace"] = json!("acme");
    let path = format!("api/v1/flow/default/service/{service}");
    let told = patiently(url, &path, ask).await?;
    let all = told.pointer(at).and_then(Value::as_array);
    Ok(all.with_context(|| format!("{service}: {told}"))?.len())
}

async fn seen(url: &str) -> Result<Seen> {
    let near = json!({"vector": VECTOR, "collection": "default", "limit": 5});
    let query = json!({"query": "{ lamps { id } }", "collection": "default"});
    Ok(Seen {
        literals: literals(url, "acme").await?,
        entities: count(url, "graph-embeddings", near.clone(), "/entities").await?,
        chunks: count(url, "document-embeddings", near, "/chunks").await?,
        rows: count(url, "rows", query, "/data/lamps").await?,
        text: has_text(url).await?,
    })
}

/// Whether the library has the text that came late.
async fn has_text(url: &str) -> Result<bool> {
    let ask =
        json!({"operation": "get-document-metadata", "workspace": "acme", "document-id": TEXT});
    let (_, told) = post(url, "api/v1/librarian", ask).await?;
    let text = told["document-metadata"]["id"] == TEXT;
    ensure!(text || told["error"]["type"] == "not-found", "{told}");
    Ok(text)
}

async fn until(server: &Server, wanted: &Seen) -> Result<()> {
    let end = Instant::now() + BOUND;
    loop {
        let seen = seen(&server.url()).await?;
        if seen == *wanted {
            return Ok(());
        }
        ensure!(
            Instant::now() < end,
            "{seen:?} instead of {wanted:?}\n{}",
            server.log()
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Something of the chunk in every store.
async fn fill(url: &str) -> Result<()> {
    let schema = json!({"operation": "put", "workspace": "acme",
        "values": [{"type": "schema", "key": "lamps", "value": SCHEMA}]});
    let (status, told) = post(url, "api/v1/config", schema).await?;
    ensure!(status == 200, "{told}");
    let query = json!({"workspace": "acme", "query": "{ lamps { id } }", "collection": "default"});
    let end = Instant::now() + BOUND;
    loop {
        let told = patiently(url, "api/v1/flow/default/service/rows", query.clone()).await?;
        if told["data"]["lamps"].is_array() {
            break;
        }
        ensure!(Instant::now() < end, "{told}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    put(url, "acme", "mine").await?;
    let metadata = json!({"id": CHUNK, "collection": "default"});
    let entity = json!({"entity": {"t": "i", "i": "urn:a"}, "vector": VECTOR, "chunk_id": CHUNK});
    let chunk = json!({"chunk_id": CHUNK, "vector": VECTOR});
    let rows = json!({"id": format!("{CHUNK}:lamps"), "collection": "default"});
    for (kind, frame) in [
        (
            "graph-embeddings",
            json!({"metadata": metadata, "entities": [entity]}),
        ),
        (
            "document-embeddings",
            json!({"metadata": metadata, "chunks": [chunk]}),
        ),
        (
            "rows",
            json!({"metadata": rows, "schema_name": "lamps", "values": [{"id": "1", "maker": "frask"}]}),
        ),
    ] {
        let url = format!("{url}api/v1/flow/default/import/{kind}?workspace=acme");
        let sent = client()?.post(url).body(format!("{frame}\n")).send();
        let told: Value = sent.await?.json().await?;
        ensure!(told["stored"] == 1, "{kind}: {told}");
    }
    Ok(())
}

/// A retraction of all of it, in a generation of the workspace.
fn retraction(generation: i64) -> Result<Sent> {
    let iri = |text: &str| json!({"type": "i", "iri": text});
    let triple = json!({"s": iri("urn:a"), "p": iri("urn:b"), "o": {"type": "l", "value": "mine"}});
    let what: Retract = serde_json::from_value(json!({
        "metadata": {"id": CHUNK, "root": "", "collection": "default"},
        "chunks": [CHUNK], "triples": [triple],
    }))?;
    record("flow:tg:retract:acme:default", of(generation), &what)
}

/// A triple and a text, in a generation of the workspace.
fn writes(generation: i64) -> Result<Vec<Sent>> {
    let iri = |text: &str| json!({"type": "i", "iri": text});
    let triple = json!({"s": iri("urn:a"), "p": iri("urn:b"), "o": {"type": "l", "value": "late"}});
    let triples: Triples = serde_json::from_value(json!({
        "metadata": {"id": "x", "root": "", "collection": "default"}, "triples": [triple],
    }))?;
    let texts: LibraryTexts = serde_json::from_value(json!({
        "workspace": "acme", "texts": [{"id": TEXT, "title": "t", "time": 1, "text": "x"}],
    }))?;
    Ok(vec![
        record(
            "flow:tg:triples-store:acme:default",
            of(generation),
            &triples,
        )?,
        record("flow:tg:library-texts", of(generation), &texts)?,
    ])
}

fn of(generation: i64) -> Headers {
    Headers {
        workspace: Some("acme".to_owned()),
        generation: Some(generation),
        ..Headers::default()
    }
}

/// The generation of the workspace of a stopped system.
fn generation(data: &Path) -> Result<i64> {
    let row = config_row(data, "__workspaces__", "workspace", "acme")?;
    let row: Value = serde_json::from_str(&row.context("no such workspace")?)?;
    row["generation"].as_i64().with_context(|| row.to_string())
}

/// Records that were dropped because their workspace has ended.
async fn dropped(server: &Server) -> Result<u64> {
    let url = format!("{}metrics", server.url());
    let text = client()?.get(url).send().await?.text().await?;
    let mut lines = text.lines();
    let line = lines.find(|line| line.starts_with("tg_records_of_ended_workspaces_total"));
    let count = line.and_then(|line| line.rsplit(' ').next());
    Ok(count.map_or(Ok(0), str::parse)?)
}

async fn late(bus: Bus) -> Result<()> {
    let _busy = busy().await;
    let node = match bus {
        Bus::Embedded => None,
        Bus::Rabbit => Some(RabbitNode::start().await?),
    };
    let broker = node.as_ref().map(RabbitNode::url);
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    let start = || {
        let launch = Launch::up().data(&data);
        match &broker {
            Some(url) => launch.arg("--bus").arg(url),
            None => launch,
        }
        .ready()
    };
    let server = start().await?;
    make(&server.url(), "acme").await?;
    server.terminate().await?;
    let old = generation(&data)?;

    let server = start().await?;
    iam(&server.url(), "delete-workspace", "acme").await?;
    make(&server.url(), "acme").await?;
    fill(&server.url()).await?;
    let all = Seen {
        literals: vec!["mine".to_owned()],
        entities: 1,
        chunks: 1,
        rows: 1,
        text: false,
    };
    until(&server, &all).await?;
    server.terminate().await?;
    let new = generation(&data)?;
    ensure!(old < new, "{old}, {new}");

    let mut records = writes(old)?;
    records.push(retraction(old)?);
    publish(broker.as_deref(), &data, records).await?;
    let server = start().await?;
    // The graph, three kinds of vectors, words, rows, and whoever writes triples.
    let end = Instant::now() + BOUND;
    while dropped(&server).await? < 7 {
        ensure!(Instant::now() < end, "{}", dropped(&server).await?);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let now = seen(&server.url()).await?;
    ensure!(now == all, "{now:?} instead of {all:?}");
    server.terminate().await?;

    publish(broker.as_deref(), &data, vec![retraction(new)?]).await?;
    let server = start().await?;
    let gone = Seen {
        literals: Vec::new(),
        entities: 0,
        chunks: 0,
        rows: 0,
        text: false,
    };
    until(&server, &gone).await?;
    server.terminate().await?;
    publish(broker.as_deref(), &data, writes(new)?).await?;
    let server = start().await?;
    let written = Seen {
        literals: vec!["late".to_owned()],
        text: true,
        ..gone
    };
    until(&server, &written).await
}

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    late(Bus::Embedded).await
}

#[tokio::test]
async fn on_rabbitmq() -> Result<()> {
    late(Bus::Rabbit).await
}
