//! What a deleted workspace had in its library is off the disk once nobody can restore it, and stays there until then.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;
use tg_testkit::process::{Launch, tg};
use tg_testkit::shared_node::VirtualHost;

use crate::workspaces::{add, closed, documents, files, iam, make, patiently, start};
use crate::world::Bus;

const BOUND: Duration = Duration::from_secs(60);
/// Long enough for a purge, were there one.
const A_WHILE: Duration = Duration::from_secs(3);

/// A system of every service, on a bus.
async fn launch(bus: Bus) -> Result<(Launch, Option<VirtualHost>)> {
    Ok(match bus {
        Bus::Embedded => (Launch::up(), None),
        Bus::Rabbit => {
            let node = VirtualHost::new().await?;
            (Launch::up().arg("--bus").arg(node.url()), Some(node))
        }
    })
}

async fn has_files(data: &Path, wanted: usize) -> Result<()> {
    let end = Instant::now() + BOUND;
    loop {
        let count = files(data);
        if count == wanted {
            return Ok(());
        }
        ensure!(Instant::now() < end, "{count} files instead of {wanted}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn at_once_without_grace(bus: Bus) -> Result<()> {
    let (launch, _node) = launch(bus).await?;
    let server = launch
        .env("THREADGRAPH_CONFIG__RESTORE_HOURS", "0")
        .ready()
        .await?;
    let url = server.url();
    // Of other content: files are named by it, so equal ones may be one file.
    let other = json!({"operation": "add-document", "workspace": "default",
        "document-metadata": {"id": "urn:other", "kind": "text/plain", "title": "t"},
        "content": "YmJi".repeat(100_000)});
    patiently(&url, "api/v1/librarian", other).await?;
    let others = files(server.data());
    make(&url, "acme").await?;
    add(&url, "acme", "urn:d").await?;
    ensure!(files(server.data()) > others, "it has files of its own");
    iam(&url, "delete-workspace", "acme").await?;
    closed(&url, "acme").await?;
    has_files(server.data(), others).await?;
    ensure!(documents(&url, "default").await? == ["urn:other"]);
    let told = tg(&url, &["restore-workspace", "-w", "acme"]).await?;
    ensure!(told.code != Some(0), "restored: {}", told.stdout);
    Ok(())
}

async fn and_not_before_with_it(bus: Bus) -> Result<()> {
    let (launch, _node) = launch(bus).await?;
    let server = launch.ready().await?;
    let url = server.url();
    make(&url, "acme").await?;
    add(&url, "acme", "urn:d").await?;
    let before = files(server.data());
    ensure!(before > 0, "it has files");
    iam(&url, "delete-workspace", "acme").await?;
    closed(&url, "acme").await?;
    tokio::time::sleep(A_WHILE).await;
    ensure!(files(server.data()) == before, "they are gone");
    tg(&url, &["restore-workspace", "-w", "acme"])
        .await?
        .expect("Workspace restored: acme")?;
    start(&url, "acme").await?;
    ensure!(documents(&url, "acme").await? == ["urn:d"]);
    let content = tg(&url, &["get-document-content", "-w", "acme", "urn:d"]).await?;
    content.expect("aaa")?;
    Ok(())
}

/// What of a workspace is on a broker.
async fn on_the_broker(node: &VirtualHost, workspace: &str) -> Result<Vec<String>> {
    let names = node.names().await?.into_iter();
    let part = |name: &String| name.split(['.', ':']).any(|part| part == workspace);
    Ok(names.filter(part).collect())
}

/// The same, once nothing is added to it.
async fn settled(node: &VirtualHost, workspace: &str) -> Result<Vec<String>> {
    let end = Instant::now() + BOUND;
    let mut before = Vec::new();
    loop {
        let mut now = on_the_broker(node, workspace).await?;
        now.sort();
        if now.len() > 20 && now == before {
            return Ok(now);
        }
        ensure!(Instant::now() < end, "{workspace}: {now:?}");
        before = now;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// The queues and exchanges of its flows, too, and of nobody else.
#[tokio::test]
async fn and_nothing_of_it_is_left_on_the_broker() -> Result<()> {
    let node = VirtualHost::new().await?;
    let server = Launch::up().over(Some(&node)).ready().await?;
    let url = server.url();
    for workspace in ["acme", "kept"] {
        make(&url, workspace).await?;
        settled(&node, workspace).await?;
    }
    let kept = settled(&node, "kept").await?;
    iam(&url, "delete-workspace", "acme").await?;
    closed(&url, "acme").await?;
    let end = Instant::now() + BOUND;
    loop {
        let left = on_the_broker(&node, "acme").await?;
        if left.is_empty() {
            break;
        }
        ensure!(Instant::now() < end, "left on the broker: {left:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let still = on_the_broker(&node, "kept").await?;
    let gone: Vec<_> = kept.iter().filter(|name| !still.contains(name)).collect();
    ensure!(gone.is_empty(), "of another workspace: {gone:?}");
    Ok(())
}

#[tokio::test]
async fn at_once_without_grace_embedded() -> Result<()> {
    at_once_without_grace(Bus::Embedded).await
}

#[tokio::test]
async fn at_once_without_grace_over_rabbitmq() -> Result<()> {
    at_once_without_grace(Bus::Rabbit).await
}

#[tokio::test]
async fn and_not_before_with_it_embedded() -> Result<()> {
    and_not_before_with_it(Bus::Embedded).await
}

#[tokio::test]
async fn and_not_before_with_it_over_rabbitmq() -> Result<()> {
    and_not_before_with_it(Bus::Rabbit).await
}
