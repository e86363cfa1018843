//! Readers that take their results slowly, or not at all, keep nobody else from asking: neither another workspace nor
//! their own, whatever they read and however it comes to them.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::process::Server;

use crate::bulk_streams::{Reader, Stream};
use crate::workspaces::{add, iam, patiently, start};
use crate::world::{Bus, post, up};

/// Of each of the two ways to ask the graph: more than it works at at once.
const QUERIES: usize = 4;
/// Pieces of what no buffer on the way holds.
const CHUNKS: usize = 6;
/// Megabytes of triples.
const STORED: usize = 16;
/// All buffers on the way are full by then.
const FULL: Duration = Duration::from_secs(3);
/// Who is of another workspace is answered soon, on any machine: it would wait for such readers for ten minutes.
const SOON: Duration = Duration::from_secs(60);
/// Their own workspace computes for them first; it would wait for readers as slow as these for ten minutes.
const BOUND: Duration = Duration::from_secs(60);

fn reader(server: &Server) -> Reader<'_> {
    Reader {
        server,
        key: "",
        workspace: "default",
    }
}

/// Readers of every kind that have begun, and read no more.
async fn slow(server: &Server) -> Result<Vec<Stream>> {
    let (reader, mut all) = (reader(server), Vec::new());
    for _ in 0..QUERIES {
        all.push(reader.query_events().await?);
        all.push(reader.query_socket().await?);
    }
    all.push(reader.stored_lines().await?);
    all.push(reader.stored_socket().await?);
    all.push(reader.document().await?);
    all.push(reader.core().await?);
    all.push(reader.core_socket().await?);
    Ok(all)
}

/// What they read.
async fn fill(server: &Server) -> Result<()> {
    reader(server).keep_big(CHUNKS).await?;
    reader(server).keep_triples(STORED).await
}

/// Everybody is answered, in a workspace.
async fn answered(url: &str, workspace: &str) -> Result<()> {
    let flow = "api/v1/flow/default/service";
    let content = json!({"operation": "get-document-content", "document-id": "urn:small"});
    for (path, mut ask) in [
        (format!("{flow}/sparql"), json!({"query": "ASK {}"})),
        (
            format!("{flow}/triples"),
            json!({"p": {"t": "i", "i": "urn:q"}, "limit": 1}),
        ),
        ("api/v1/librarian".into(), content),
        (
            "api/v1/knowledge".into(),
            json!({"operation": "list-kg-cores"}),
        ),
    ] {
        ask["workspace"] = json!(workspace);
        let asked = tokio::time::timeout(BOUND, post(url, &path, ask)).await;
        let asked = asked.with_context(|| format!("{path} in {workspace} waits"))?;
        let (status, told) = asked?;
        ensure!(
            status == 200 && told.get("error").is_none_or(Value::is_null),
            "{path}: {told}"
        );
    }
    Ok(())
}

async fn slow_readers(bus: Bus) -> Result<()> {
    let (server, _node) = up(bus).await?;
    let url = server.url();
    fill(&server).await?;
    iam(&url, "create-workspace", "other").await?;
    start(&url, "other").await?;
    for workspace in ["default", "other"] {
        add(&url, workspace, "urn:small").await?;
        ready(&url, workspace).await?;
    }
    let readers = slow(&server).await?;
    tokio::time::sleep(FULL).await;
    let asked = Instant::now();
    ready(&url, "other").await?;
    ensure!(asked.elapsed() < SOON, "{:?}", asked.elapsed());
    for workspace in ["default", "other"] {
        answered(&url, workspace).await?;
    }
    // Another of the same kind begins as well.
    let another = reader(&server).query_socket().await?;
    drop((readers, another));
    Ok(())
}

/// The flow answers.
async fn ready(url: &str, workspace: &str) -> Result<()> {
    let ask = json!({"workspace": workspace, "query": "ASK {}"});
    let path = "api/v1/flow/default/service/sparql";
    patiently(url, path, ask).await.map(|_| ())
}

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    slow_readers(Bus::Embedded).await
}

#[tokio::test]
async fn on_rabbitmq() -> Result<()> {
    slow_readers(Bus::Rabbit).await
}
