//! A flow is a row of tables, not a process: a thousand of them in one process (a hundred over RabbitMQ)
//! need no more threads and connections than the first, and each answers for itself.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use tg_integration_tests::part_of;
use tg_testkit::process::Server;
use tg_testkit::socket::Socket;

use crate::traces::{Ended, begin, end};
use crate::world::{Bus, World};

/// The blueprint of the flows, and what it is made of.
const AGENT: &str = "agent-only";
const PROCESSORS: &[&str] = &[
    "agent-manager",
    "mcp-tool",
    "prompt-rag",
    "text-completion",
    "text-completion-rag",
    "triples-query",
    "triples-write",
];
/// Flows that are started or stopped at a time.
const AT_ONCE: usize = 8;
/// How far pools of threads and connections to the model may sway by themselves.
const SWAY: usize = 6;
/// Questions at a time.
const QUESTIONS: usize = 20;
/// A question ends by then.
const BOUND: Duration = Duration::from_secs(60);

/// Threads and TCP connections of a process.
fn held(server: &Server) -> Result<(usize, usize)> {
    let proc = format!("/proc/{}", server.pid().context("it runs")?);
    let threads = std::fs::read_dir(format!("{proc}/task"))?.count();
    let tcp = std::fs::read_to_string(format!("{proc}/net/tcp"))?;
    let ours: Vec<String> = std::fs::read_dir(format!("{proc}/fd"))?
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .filter_map(|link| {
            let inode = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
            Some(inode.to_owned())
        })
        .collect();
    // Field 3 is the state, 01 an established connection; field 9 the socket's inode.
    let established = tcp
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|fields| fields.get(3) == Some(&"01"))
        .filter(|fields| {
            fields
                .get(9)
                .is_some_and(|inode| ours.iter().any(|own| own == inode))
        })
        .count();
    Ok((threads, established))
}

/// Whether a frame carries no error.
fn fine(frame: &Value) -> bool {
    frame["error"].is_null() && frame["response"]["error"].is_null()
}

async fn flow(socket: &Socket, operation: &str, id: &str) -> Result<()> {
    let request = json!({
        "operation": operation, "flow-id": id, "blueprint-name": AGENT, "description": id,
    });
    let reply = socket.ask_service("flow", request).await?;
    ensure!(fine(&reply), "{operation} {id}: {reply}");
    Ok(())
}

/// The agent's part of the shipped blueprint, as one of its own.
async fn put_blueprint(socket: &Socket) -> Result<()> {
    let request = json!({"operation": "get-blueprint", "blueprint-name": "everything"});
    let reply = socket.ask_service("flow", request).await?;
    let text = reply["response"]["blueprint-definition"].as_str();
    let blueprint = part_of(text.context("a definition")?, PROCESSORS)?;
    let request = json!({
        "operation": "put-blueprint", "blueprint-name": AGENT,
        "blueprint-definition": blueprint.to_string(),
    });
    let reply = socket.ask_service("flow", request).await?;
    ensure!(fine(&reply), "{reply}");
    Ok(())
}

/// Questions to these flows in turn, all at once on one socket: so many each time, as each needs a connection
/// to the model.
async fn ask(socket: &Socket, flows: &[String]) -> Result<()> {
    let asks = flows.iter().cycle().take(QUESTIONS).enumerate();
    let asks = asks.map(|(n, flow)| async move {
        let nonce = format!("nonce-{flow}-{n}-x");
        let frames = begin(socket, flow, &nonce, false).await?;
        match end(frames, &nonce, BOUND).await? {
            Ended::Answered(_) => anyhow::Ok(()),
            Ended::Failed(error) => anyhow::bail!("{flow}: {error}"),
        }
    });
    futures::future::try_join_all(asks).await.map(|_| ())
}

async fn many(bus: Bus, flows: usize) -> Result<()> {
    let world = World::two_step(bus).await?;
    let socket = world.socket().await?;
    put_blueprint(&socket).await?;
    let ids: Vec<String> = (0..flows).map(|n| format!("many-{n}")).collect();
    let sample: Vec<String> = ids.iter().step_by(flows / QUESTIONS).cloned().collect();
    let start = |id: String| {
        let socket = &socket;
        async move { flow(socket, "start-flow", &id).await }
    };

    // The first ones bring every pool and channel to its size.
    let (first, rest) = ids.split_at(flows / 10);
    stream::iter(first.to_vec())
        .map(start)
        .buffer_unordered(AT_ONCE)
        .try_collect::<Vec<_>>()
        .await?;
    ask(&socket, first).await?;
    let before = held(&world.server)?;
    stream::iter(rest.to_vec())
        .map(start)
        .buffer_unordered(AT_ONCE)
        .try_collect::<Vec<_>>()
        .await?;
    ask(&socket, &sample).await?;
    // A thread for what blocks leaves when it had nothing to do for ten seconds.
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let after = held(&world.server)?;
        if after.0 <= before.0 + SWAY && after.1 <= before.1 + SWAY {
            break;
        }
        ensure!(
            Instant::now() < end,
            "threads and connections grew with the flows: {before:?} to {after:?}"
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }

    let stop = |id: String| {
        let socket = &socket;
        async move { flow(socket, "stop-flow", &id).await }
    };
    stream::iter(rest.to_vec())
        .map(stop)
        .buffer_unordered(AT_ONCE)
        .try_collect::<Vec<_>>()
        .await?;
    ask(&socket, first).await
}

#[tokio::test]
async fn a_thousand_on_the_embedded_bus() -> Result<()> {
    many(Bus::Embedded, 1_000).await
}

#[tokio::test]
async fn a_hundred_on_rabbitmq() -> Result<()> {
    many(Bus::Rabbit, 100).await
}
