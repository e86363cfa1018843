//! More configuration than a message holds stops nobody: new workspaces work, changes arrive, a restart is ready.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;
use tg_testkit::process::{Launch, Server};
use tg_testkit::rabbitmq::RabbitNode;

use crate::large_answers_are_told::fill;
use crate::world::{Bus, post};

/// A type that every system watches.
const WATCHED: &str = "collection";
/// A megabyte each: more than a message holds.
const ROWS: usize = 18;

/// A workspace that is made now can be used soon.
async fn a_new_workspace_works(server: &Server, name: &str) -> Result<()> {
    let create = json!({"operation": "create-workspace", "workspace_record": {"id": name}});
    let (status, told) = post(&server.url(), "api/v1/iam", create).await?;
    ensure!(status == 200, "{told}");
    let began = Instant::now();
    loop {
        let list = json!({"operation": "list-flows", "workspace": name});
        let (status, told) = post(&server.url(), "api/v1/flow", list).await?;
        if status == 200 && told.get("error").is_none_or(serde_json::Value::is_null) {
            return Ok(());
        }
        ensure!(
            began.elapsed() < Duration::from_secs(20),
            "{name}: {status} {told}"
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn stops_nobody(bus: Bus) -> Result<()> {
    let _busy = crate::world::busy().await;
    let node = match bus {
        Bus::Embedded => None,
        Bus::Rabbit => Some(RabbitNode::start().await?),
    };
    let data = tempfile::tempdir()?;
    let launch = || {
        let launch = Launch::up().data(data.path());
        match &node {
            Some(node) => launch.arg("--bus").arg(node.url()),
            None => launch,
        }
    };
    let server = launch().ready().await?;
    fill(&server, WATCHED, ROWS).await?;
    a_new_workspace_works(&server, "late").await?;
    server.terminate().await?;

    // Who starts reads everything.
    let server = launch().ready().await?;
    a_new_workspace_works(&server, "later").await?;
    server.terminate().await?;
    Ok(())
}

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    stops_nobody(Bus::Embedded).await
}

#[tokio::test]
async fn over_a_broker() -> Result<()> {
    stops_nobody(Bus::Rabbit).await
}
