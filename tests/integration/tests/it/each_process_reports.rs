//! Each process reports its own health and metrics at an address of its own: that it lives from the start on, that it is ready
//! while everything that it hosts serves and takes what waits for it, and what is missing where not.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::model::{Reply, Rule, ScriptedModel};
use tg_testkit::process::{Launch, Server, client};
use tg_testkit::rabbitmq::RabbitNode;
use tg_testkit::shared_node::VirtualHost;
use tokio::time::Instant;

use crate::small_disk::SmallDisk;
use crate::world::{Bus, launch, on_both_buses, post};

/// A report changes by then, also on a busy machine.
const BOUND: Duration = Duration::from_secs(90);
/// How long the model holds what it is asked, unless it is to answer.
const HOLDS: Duration = Duration::from_secs(600);

/// A process that reports.
struct Reporting {
    server: Server,
}

impl Reporting {
    async fn start(launch: Launch) -> Result<Self> {
        let launch = launch.env("THREADGRAPH_REPORT__LISTEN", "127.0.0.1:0");
        let server = launch.spawn().await?;
        Ok(Self { server })
    }

    fn url(&self, path: &str) -> Result<String> {
        let port = self.server.report_port()?;
        Ok(format!("http://127.0.0.1:{port}{path}"))
    }

    async fn get(&self, path: &str) -> Result<(u16, String)> {
        let answer = client()?.get(self.url(path)?).send().await?;
        Ok((answer.status().as_u16(), answer.text().await?))
    }

    /// Waits until the process is ready, or says that this is missing.
    async fn until(&mut self, missing: Option<&str>) -> Result<()> {
        let end = Instant::now() + BOUND;
        loop {
            let told = self.get("/health/ready").await;
            if let Ok((status, body)) = &told {
                let body: Value = serde_json::from_str(body)?;
                let said = body["missing"].to_string();
                let as_wanted = match missing {
                    None => *status == 200 && body["ready"] == true && said == "[]",
                    Some(missing) => {
                        *status == 503 && body["ready"] == false && said.contains(missing)
                    }
                };
                if as_wanted {
                    return Ok(());
                }
            }
            ensure!(
                self.server.alive() && Instant::now() < end,
                "{missing:?}: {told:?}\n{}",
                self.server.log()
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until so many consumers are counted that take nothing.
    async fn until_idle(&self, wanted: impl Fn(f64) -> bool) -> Result<()> {
        let end = Instant::now() + BOUND;
        loop {
            let (_, page) = self.get("/metrics").await?;
            let mut lines = page.lines();
            let idle = lines.find_map(|line| line.strip_prefix("tg_idle_consumers "));
            let idle = idle.and_then(|count| count.parse::<f64>().ok());
            if idle.is_some_and(&wanted) {
                return Ok(());
            }
            ensure!(Instant::now() < end, "{idle:?} of {page}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

#[tokio::test]
async fn a_process_is_ready_while_its_bus_and_its_stores_serve() -> Result<()> {
    let mut node = RabbitNode::start().await?;
    let folder = tempfile::tempdir()?;
    let config = Launch::serve(&["config"], &node.url()).data(&folder.path().join("config"));
    let mut config = Reporting::start(config).await?;
    config.until(None).await?;
    let graph = || Launch::serve(&["graph"], &node.url());
    let mut owner = Reporting::start(graph().data(&folder.path().join("graph"))).await?;
    owner.until(None).await?;
    // A second process of a store only stands by.
    let mut standby = Reporting::start(graph()).await?;
    standby.until(Some("triples-write does not serve")).await?;
    let (status, body) = standby.get("/health/live").await?;
    ensure!(status == 200 && body.contains("true"), "{status} {body}");

    let (status, page) = owner.get("/metrics").await?;
    ensure!(
        status == 200 && page.contains("tg_build_info"),
        "{status} {page}"
    );
    ensure!(owner.get("/api/v1/flow").await?.0 == 404);
    let posted = client()?.post(owner.url("/health/live")?).send().await?;
    ensure!(posted.status() == 405, "{}", posted.status());

    node.stop().await?;
    owner
        .until(Some("the message bus is not connected"))
        .await?;
    ensure!(owner.get("/health/live").await?.0 == 200);
    node.restart().await?;
    config.until(None).await?;
    owner.until(None).await?;
    Ok(())
}

#[tokio::test]
async fn a_process_with_everything_is_not_ready_while_its_disk_is_full() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let disk = SmallDisk::mount(&folder.path().join("disk"), "256m").await?;
    let data = folder.path().join("disk/data");
    let mut all = Reporting::start(Launch::up().data(&data)).await?;
    all.until(None).await?;
    let (status, body) = all.get("/health/ready").await.context("the report")?;
    ensure!(
        status == 200 && body == r#"{"ready":true,"missing":[]}"#,
        "{body}"
    );
    disk.fill().await?;
    all.until(Some("the disk is full")).await?;
    disk.resize("256m").await?;
    all.until(None).await
}

/// A disk counts for the processes that need it: the owner of a store on a full one is not ready, and the others are.
#[tokio::test]
async fn the_owner_of_a_store_is_not_ready_while_its_disk_is_full() -> Result<()> {
    let node = VirtualHost::new().await?;
    let folder = tempfile::tempdir()?;
    let config = Launch::serve(&["config"], &node.url()).data(&folder.path().join("config"));
    let mut config = Reporting::start(config).await?;
    let disk = SmallDisk::mount(&folder.path().join("disk"), "256m").await?;
    let data = folder.path().join("disk/graph");
    let mut owner = Reporting::start(Launch::serve(&["graph"], &node.url()).data(&data)).await?;
    owner.until(None).await?;
    disk.fill().await?;
    owner.until(Some("the disk is full")).await?;
    config.until(None).await?;
    disk.resize("256m").await?;
    owner.until(None).await
}

/// The model holds what the extractor asks about the first chunk, so the extractor takes none of the others.
async fn a_consumer_that_takes_nothing_is_reported(bus: Bus) -> Result<()> {
    let reply = Reply::text("[]").delayed(HOLDS);
    let model = ScriptedModel::start(vec![Rule::always(reply)]).await?;
    let node = bus.broker().await?;
    let launch = launch(&model, node.as_ref())
        .env("THREADGRAPH_CONCURRENCY", "kg-extract-definitions=1")
        .env("THREADGRAPH_REPORT__IDLE_CONSUMER_SECONDS", "3");
    let mut all = Reporting::start(launch).await?;
    all.server.wait_ready().await?;
    all.until(None).await?;
    let sentences = (0..1_000).map(|n| format!("Lamp number {n} hangs in the hall. "));
    let load = json!({"id": "urn:lamps", "text": sentences.collect::<String>()});
    let path = "api/v1/flow/default/service/text-load";
    let (status, body) = post(&all.server.url(), path, load).await?;
    ensure!(status == 200, "{status} {body}");
    let told = "kg-extract-definitions takes none of the messages that wait for it: it has as many in hand";
    all.until(Some(told)).await?;
    all.until_idle(|count| count > 0.0).await?;
    model.hurry();
    all.until(None).await?;
    all.until_idle(|count| count == 0.0).await
}

on_both_buses!(a_consumer_that_takes_nothing_is_reported);
