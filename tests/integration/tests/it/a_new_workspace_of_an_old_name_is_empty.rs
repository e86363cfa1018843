//! A workspace that gets the name of a deleted one begins empty, in every store, also where the stores were down while
//! that happened, and pays for its replies itself; and until its data is purged, a deleted workspace can be brought back, of several of one name the last.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;
use tg_testkit::process::{Launch, tg};
use tg_testkit::shared_node::VirtualHost;

use crate::disabling_keeps_everything::replies;
use crate::holdings::{Tenant, is_like};
use crate::poison_is_dead_lettered_once::{listed, poison, until};
use crate::shared::{another_id, system};
use crate::workspaces::{add, documents, files, has, iam, make, put, start};
use crate::world::{Bus, post, up};

const BOUND: Duration = Duration::from_secs(60);
/// No time to restore.
const NO_GRACE: (&str, &str) = ("THREADGRAPH_CONFIG__RESTORE_HOURS", "0");

/// What the stores are not.
const OTHERS: [&str; 10] = [
    "gateway",
    "config",
    "iam",
    "flow",
    "ingest",
    "embeddings",
    "llm",
    "prompt",
    "rag",
    "tool",
];
/// Whoever keeps something for workspaces, but those without whom none is deleted: its flows are stopped then.
const STORES: [&str; 8] = [
    "sessions",
    "graph",
    "vectors",
    "rows",
    "knowledge",
    "librarian",
    "extract",
    "agent",
];
/// What those, and the flow service, say that they purged.
const PURGED: [&str; 10] = [
    "sessions",
    "graph",
    "vectors",
    "keywords",
    "rows",
    "knowledge",
    "librarian",
    "extract",
    "agent-manager",
    "flow-svc",
];
const OLD: &str = "Quillfern";
const NEW: &str = "Quillmoss";

/// What the old one paid for is of no use to the new one: for the same text the model is asked again. Counters are
/// those of the process with the extractors.
async fn pays_itself(acme: &Tenant<'_>, counters: &str) -> Result<()> {
    let (paid, free) = replies(counters).await?;
    acme.add(OLD).await?;
    acme.process("again", OLD, "default").await?;
    let (asked, kept) = replies(counters).await?;
    ensure!(kept == free, "{} replies of the old one's", kept - free);
    ensure!(asked > paid, "no reply was asked for");
    Ok(())
}

#[tokio::test]
async fn when_the_stores_were_down_over_rabbitmq() -> Result<()> {
    let node = VirtualHost::new().await?;
    let scratch = tempfile::tempdir()?;
    let stores = || {
        let launch = Launch::serve(&STORES, &node.url());
        launch
            .data(&scratch.path().join("stores"))
            .env("THREADGRAPH_METRICS__LISTEN", "127.0.0.1:0")
            .spawn()
    };
    let first = stores().await?;
    let server = Launch::serve(&OTHERS, &node.url())
        .env(NO_GRACE.0, NO_GRACE.1)
        .ready()
        .await?;
    let (url, workspace) = (server.url(), "acme");
    let acme = Tenant {
        url: &url,
        workspace,
    };
    make(&url, "acme").await?;
    acme.prepare().await?;
    let old = acme.fill(OLD).await?;
    // A run of the agent, and a dead letter.
    let ask = json!({"workspace": "acme", "question": "What is 6 * 7?"});
    let (status, told) = post(&url, "api/v1/flow/default/service/agent", ask).await?;
    ensure!(status == 200, "{told}");
    poison(&server, "acme", 10).await?;
    until(&server, "acme", |all| all.len() == 1).await?;
    first.kill9().await?;
    iam(&url, "delete-workspace", "acme").await?;
    iam(&url, "create-workspace", "acme").await?;
    let second = stores().await?;
    start(&url, "acme").await?;
    acme.prepare().await?;
    acme.is_empty().await?;
    ensure!(listed(&server, "acme").await?.is_empty(), "a dead letter");
    let new = acme.fill(NEW).await?;
    is_like(&new, &old, OLD)?;
    // What the old one left is purged, though nobody told this process of the deletion.
    let purged = |log: &str, store: &str| {
        let mut lines = log.lines();
        lines.any(|line| {
            line.contains("a deleted workspace was purged")
                && line.contains(&format!("store=\"{store}\""))
        })
    };
    let end = Instant::now() + BOUND;
    let logs = || second.log() + &server.log();
    while !PURGED.iter().all(|store| purged(&logs(), store)) {
        ensure!(Instant::now() < end, "not purged:\n{}", logs());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    acme.holds(&new).await?;
    let counters = format!("http://127.0.0.1:{}/", second.report_port()?);
    pays_itself(&acme, &counters).await
}

#[tokio::test]
async fn when_everything_was_killed_embedded() -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let launch = || Launch::up().data(scratch.path()).ready();
    let server = launch().await?;
    let (url, workspace) = (server.url(), "acme");
    let acme = Tenant {
        url: &url,
        workspace,
    };
    make(&url, "acme").await?;
    acme.prepare().await?;
    let old = acme.fill(OLD).await?;
    iam(&url, "delete-workspace", "acme").await?;
    server.kill9().await?;
    let server = launch().await?;
    let url = server.url();
    let acme = Tenant {
        url: &url,
        workspace,
    };
    make(&url, "acme").await?;
    acme.prepare().await?;
    acme.is_empty().await?;
    is_like(&acme.fill(NEW).await?, &old, OLD)?;
    pays_itself(&acme, &url).await
}

/// Deleted and made again in one breath, while everything runs.
async fn at_once(bus: Bus) -> Result<()> {
    let (server, _node) = up(bus).await?;
    let (url, workspace) = (server.url(), "acme");
    let acme = Tenant {
        url: &url,
        workspace,
    };
    make(&url, "acme").await?;
    acme.prepare().await?;
    let old = acme.fill(OLD).await?;
    iam(&url, "delete-workspace", "acme").await?;
    make(&url, "acme").await?;
    acme.prepare().await?;
    acme.is_empty().await?;
    is_like(&acme.fill(NEW).await?, &old, OLD)?;
    pays_itself(&acme, &url).await
}

#[tokio::test]
async fn line_082_at_once_embedded() -> Result<()> {
    at_once(Bus::Embedded).await
}

#[tokio::test]
async fn line_082_at_once_over_rabbitmq() -> Result<()> {
    at_once(Bus::Rabbit).await
}

async fn refused(url: &str, id: &str, why: &str) -> Result<()> {
    let told = tg(url, &["restore-workspace", "-w", id]).await?;
    ensure!(told.code != Some(0), "{id}: {}", told.stdout);
    ensure!(told.stderr.contains(why), "{id}: {}", told.stderr);
    Ok(())
}

async fn comes_back(bus: Bus) -> Result<()> {
    let url = system(bus).await?.url();
    let (acme, other) = (another_id(), another_id());
    let acme = acme.as_str();
    make(&url, acme).await?;
    put(&url, acme, "mine").await?;
    has(&url, acme, &["mine"]).await?;
    add(&url, acme, "urn:d").await?;
    iam(&url, "delete-workspace", acme).await?;
    tg(&url, &["restore-workspace", "-w", acme])
        .await?
        .expect(&format!("Workspace restored: {acme}"))?;
    start(&url, acme).await?;
    has(&url, acme, &["mine"]).await?;
    assert_eq!(documents(&url, acme).await?, ["urn:d"]);
    refused(&url, acme, "the name is in use").await?;
    has(&url, acme, &["mine"]).await?;
    refused(&url, &other, "there is no deleted workspace").await?;
    iam(&url, "delete-workspace", acme).await
}

#[tokio::test]
async fn and_the_old_one_comes_back_embedded() -> Result<()> {
    comes_back(Bus::Embedded).await
}

#[tokio::test]
async fn and_the_old_one_comes_back_over_rabbitmq() -> Result<()> {
    comes_back(Bus::Rabbit).await
}

/// Deleted twice within the time in which it can be brought back: each of the two lies for itself.
async fn the_last_one_comes_back(bus: Bus) -> Result<()> {
    let (server, _node) = up(bus).await?;
    let (url, workspace) = (server.url(), "acme");
    let acme = Tenant {
        url: &url,
        workspace,
    };
    make(&url, "acme").await?;
    acme.prepare().await?;
    let old = acme.fill(OLD).await?;
    add(&url, "acme", "urn:large").await?;
    let files_of_old = files(server.data());
    ensure!(files_of_old > 0, "a document has a file");
    iam(&url, "delete-workspace", "acme").await?;
    make(&url, "acme").await?;
    acme.prepare().await?;
    acme.is_empty().await?;
    let new = acme.fill(NEW).await?;
    is_like(&new, &old, OLD)?;
    iam(&url, "delete-workspace", "acme").await?;
    for _ in 0..2 {
        tg(&url, &["restore-workspace", "-w", "acme"])
            .await?
            .expect("Workspace restored: acme")?;
        start(&url, "acme").await?;
        acme.holds(&new).await?;
        // What the first one left is neither there nor gone before its time.
        ensure!(files(server.data()) >= files_of_old, "a file is gone");
        iam(&url, "delete-workspace", "acme").await?;
    }
    // A third one has nothing of either.
    make(&url, "acme").await?;
    acme.prepare().await?;
    acme.is_empty().await
}

#[tokio::test]
async fn of_two_old_ones_the_last_comes_back_embedded() -> Result<()> {
    the_last_one_comes_back(Bus::Embedded).await
}

#[tokio::test]
async fn of_two_old_ones_the_last_comes_back_over_rabbitmq() -> Result<()> {
    the_last_one_comes_back(Bus::Rabbit).await
}
