//! Whoever may publish at the broker can nest headers as deep as a frame is long: that ends no process, and the message
//! does not come again and again.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;
use tg_testkit::process::{Launch, Server, root};
use tg_testkit::shared_node::VirtualHost;
use tokio::process::Command;

use crate::world::post;

/// Five bytes a level: the headers fit a frame that our processes agree at first, and one that they agree once a longer one came.
const DEPTHS: [&str; 2] = ["3900", "25000"];
const BOUND: Duration = Duration::from_secs(60);
/// Between two looks at the queues.
const PAUSE: Duration = Duration::from_millis(200);
/// A queue that is there while a system starts only is gone by then.
const SETTLES: Duration = Duration::from_secs(2);

/// Queues of requests and records, each with a reader.
async fn read_queues(node: &VirtualHost) -> Result<Vec<(String, u64)>> {
    let queues = node.queues().await?.into_iter();
    let read = queues.filter(|queue| queue.consumers > 0 && !queue.exclusive);
    Ok(read.map(|queue| (queue.name, queue.messages)).collect())
}

/// The same, once two looks find the same ones.
async fn settled(node: &VirtualHost) -> Result<Vec<(String, u64)>> {
    let end = Instant::now() + BOUND;
    let mut before = Vec::new();
    loop {
        let queues = read_queues(node).await?;
        let mut now: Vec<String> = queues.iter().map(|(name, _)| name.clone()).collect();
        now.sort();
        if !now.is_empty() && now == before {
            return Ok(queues);
        }
        ensure!(Instant::now() < end, "queues come and go: {now:?}");
        before = now;
        tokio::time::sleep(SETTLES).await;
    }
}

#[tokio::test]
async fn on_rabbitmq() -> Result<()> {
    let node = VirtualHost::new().await?;
    let mut server = Launch::up().over(Some(&node)).ready().await?;
    let queues = settled(&node).await?;
    ensure!(queues.len() > 20, "{queues:?}");
    let [shorter, longer] = DEPTHS;
    deep(&node, &mut server, &queues, shorter).await?;
    // Some are there while a system starts only.
    let queues = settled(&node).await?;
    // The first that is longer than a frame ends the connection, and with it queues that live as long; the next one takes such frames.
    deep(&node, &mut server, &queues[..1], longer).await?;
    // Before that the broker still lists the readers of the connection that ends.
    let end = Instant::now() + BOUND;
    while !server.log().contains("longer headers than are agreed") {
        ensure!(Instant::now() < end, "it goes on: {}", server.log());
        tokio::time::sleep(PAUSE).await;
    }
    let end = Instant::now() + BOUND;
    loop {
        let read = read_queues(&node).await?;
        let is_read = |name: &String| read.iter().any(|(other, _)| other == name);
        let missing: Vec<_> = queues
            .iter()
            .map(|(name, _)| name)
            .filter(|name| !is_read(name))
            .collect();
        if missing.is_empty() {
            break;
        }
        ensure!(Instant::now() < end, "{missing:?}: {}", server.log());
        tokio::time::sleep(PAUSE).await;
    }
    deep(&node, &mut server, &queues, longer).await?;
    let list = json!({"operation": "list-flows", "workspace": "default"});
    let (status, told) = post(&server.url(), "api/v1/flow", list).await?;
    ensure!(
        status == 200 && told["flow-ids"] == json!(["default"]),
        "{told}"
    );
    ensure!(server.alive());
    Ok(())
}

/// Sends headers of a depth to each queue, and waits until none has a message any more.
async fn deep(
    node: &VirtualHost,
    server: &mut Server,
    queues: &[(String, u64)],
    depth: &str,
) -> Result<()> {
    let output = Command::new(root().join(".cache/venv/bin/python3"))
        .arg(root().join("tests/integration/clients/deep_headers.py"))
        .args([node.url().as_str(), depth])
        .args(queues.iter().map(|(name, _)| name))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(BOUND, output).await??;
    let sent = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let all = queues.len().to_string();
    ensure!(sent.trim() == all, "{depth}: {errors}{}", server.log());
    let end = Instant::now() + BOUND;
    loop {
        ensure!(server.alive(), "it ended: {}", server.log());
        let waiting = read_queues(node).await?;
        if waiting.iter().all(|(_, messages)| *messages == 0) {
            break;
        }
        ensure!(Instant::now() < end, "still there: {waiting:?}");
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}
