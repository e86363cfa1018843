//! A workspace that gets the name of a deleted one begins empty, also where a store was down while that happened; and
//! until its data is purged, a deleted workspace can be brought back.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tg_testkit::process::{Launch, tg};
use tg_testkit::rabbitmq::RabbitNode;

use crate::workspaces::{add, documents, has, iam, literals, make, put, start};
use crate::world::{Bus, up};

const BOUND: Duration = Duration::from_secs(30);
/// No time to restore.
const NO_GRACE: (&str, &str) = ("THREADGRAPH_CONFIG__RESTORE_HOURS", "0");

/// Everything but the graph.
const OTHERS: [&str; 16] = [
    "gateway",
    "config",
    "iam",
    "flow",
    "librarian",
    "knowledge",
    "ingest",
    "rows",
    "vectors",
    "embeddings",
    "llm",
    "prompt",
    "agent",
    "extract",
    "rag",
    "tool",
];

#[tokio::test]
async fn when_the_graph_was_down_over_rabbitmq() -> Result<()> {
    let node = RabbitNode::start().await?;
    let scratch = tempfile::tempdir()?;
    let graph = || {
        let launch = Launch::serve(&["graph"], &node.url());
        launch.data(&scratch.path().join("graph")).spawn()
    };
    let first = graph().await?;
    let server = Launch::serve(&OTHERS, &node.url())
        .env(NO_GRACE.0, NO_GRACE.1)
        .ready()
        .await?;
    let url = server.url();
    make(&url, "acme").await?;
    put(&url, "acme", "secret-of-the-old").await?;
    has(&url, "acme", &["secret-of-the-old"]).await?;
    first.kill9().await?;
    iam(&url, "delete-workspace", "acme").await?;
    make(&url, "acme").await?;
    let second = graph().await?;
    assert_eq!(literals(&url, "acme").await?, [""; 0]);
    put(&url, "acme", "new").await?;
    has(&url, "acme", &["new"]).await?;
    // What the old one left is purged, though nobody told this process of the deletion.
    let end = Instant::now() + BOUND;
    while !second.log().contains("a deleted workspace was purged") {
        ensure!(Instant::now() < end, "not purged:\n{}", second.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    has(&url, "acme", &["new"]).await
}

#[tokio::test]
async fn when_everything_was_killed_embedded() -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let launch = || Launch::up().data(scratch.path()).ready();
    let server = launch().await?;
    make(&server.url(), "acme").await?;
    put(&server.url(), "acme", "secret-of-the-old").await?;
    has(&server.url(), "acme", &["secret-of-the-old"]).await?;
    add(&server.url(), "acme", "urn:d").await?;
    iam(&server.url(), "delete-workspace", "acme").await?;
    server.kill9().await?;
    let server = launch().await?;
    make(&server.url(), "acme").await?;
    assert_eq!(literals(&server.url(), "acme").await?, [""; 0]);
    assert_eq!(documents(&server.url(), "acme").await?, [""; 0]);
    Ok(())
}

async fn refused(url: &str, id: &str, why: &str) -> Result<()> {
    let told = tg(url, &["restore-workspace", "-w", id]).await?;
    ensure!(told.code != Some(0), "{id}: {}", told.stdout);
    ensure!(told.stderr.contains(why), "{id}: {}", told.stderr);
    Ok(())
}

async fn comes_back(bus: Bus) -> Result<()> {
    let (server, _node) = up(bus).await?;
    let url = server.url();
    make(&url, "acme").await?;
    put(&url, "acme", "mine").await?;
    has(&url, "acme", &["mine"]).await?;
    add(&url, "acme", "urn:d").await?;
    iam(&url, "delete-workspace", "acme").await?;
    tg(&url, &["restore-workspace", "-w", "acme"])
        .await?
        .expect("Workspace restored: acme")?;
    start(&url, "acme").await?;
    has(&url, "acme", &["mine"]).await?;
    assert_eq!(documents(&url, "acme").await?, ["urn:d"]);
    refused(&url, "acme", "the name is in use").await?;
    has(&url, "acme", &["mine"]).await?;
    refused(&url, "other", "was not deleted").await
}

#[tokio::test]
async fn and_the_old_one_comes_back_embedded() -> Result<()> {
    comes_back(Bus::Embedded).await
}

#[tokio::test]
async fn and_the_old_one_comes_back_over_rabbitmq() -> Result<()> {
    comes_back(Bus::Rabbit).await
}
