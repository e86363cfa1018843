//! The flow that answers a session is stopped: what was said stays, the next turn says why it is not answered, and of the queues only
//! those of the flow go. Once the flow runs again, so does the session.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::process::{Launch, Server, client};
use tg_testkit::rabbitmq::RabbitNode;

use crate::workspaces::{patiently, start};

const SESSIONS: &str = "a1/agents/concise-de/sessions";

async fn asked(
    url: &str,
    method: reqwest::Method,
    path: &str,
    body: Value,
) -> Result<(u16, Value)> {
    let request = client()?
        .request(method, format!("{url}{path}"))
        .header("SPASS-User-Id", "ann")
        .json(&body);
    let response = request.send().await?;
    let status = response.status().as_u16();
    Ok((status, response.json().await.unwrap_or_default()))
}

async fn said(url: &str, session: &str) -> Result<usize> {
    let path = format!("{SESSIONS}/{session}/messages");
    let (status, told) = asked(url, reqwest::Method::GET, &path, json!({})).await?;
    ensure!(status == 200, "{status} {told}");
    Ok(told["messages"].as_array().map_or(0, Vec::len))
}

/// Names of queues that hold one of these, the flow's first.
async fn queues(node: &RabbitNode) -> Result<[usize; 2]> {
    let names: Vec<String> = node
        .queues()
        .await?
        .into_iter()
        .map(|one| one.name)
        .collect();
    Ok(["chat-completion:default", ":sessions"].map(|part| {
        let named = names.iter().filter(|name| name.contains(part));
        named.count()
    }))
}

async fn line_127(server: &Server, node: Option<&RabbitNode>) -> Result<()> {
    let url = server.url();
    let (status, made) = asked(&url, reqwest::Method::POST, SESSIONS, json!({})).await?;
    ensure!(status == 201, "{status} {made}");
    let session = made["id"].as_str().context("an id")?.to_owned();
    let path = format!("{SESSIONS}/{session}/messages");
    let turn = json!({"message": "Was ist eine Laterne?"});
    let (status, told) = asked(&url, reqwest::Method::POST, &path, turn.clone()).await?;
    ensure!(status == 200, "{status} {told}");
    if let Some(node) = node {
        let [flows, sessions] = queues(node).await?;
        ensure!(flows > 0 && sessions > 0, "{flows} {sessions}");
    }
    let stop = json!({"operation": "stop-flow", "flow-id": "default"});
    patiently(&url, "api/v1/flow", stop).await?;
    let (status, told) = asked(&url, reqwest::Method::POST, &path, turn.clone()).await?;
    ensure!(status == 503, "{status} {told}");
    ensure!(told["error"]["code"] == "agent_unavailable", "{told}");
    ensure!(said(&url, &session).await? == 2);
    let agent = "a1/agents/concise-de";
    let (status, told) = asked(&url, reqwest::Method::GET, agent, json!({})).await?;
    ensure!(status == 200, "{status} {told}");
    if let Some(node) = node {
        let [flows, sessions] = queues(node).await?;
        ensure!(flows == 0 && sessions > 0, "{flows} {sessions}");
    }
    start(&url, "default").await?;
    let (status, told) = asked(&url, reqwest::Method::POST, &path, turn).await?;
    ensure!(status == 200, "{status} {told}");
    ensure!(said(&url, &session).await? == 4);
    Ok(())
}

#[tokio::test]
async fn line_127_on_the_embedded_bus() -> Result<()> {
    line_127(&Launch::up().ready().await?, None).await
}

#[tokio::test]
async fn line_127_over_rabbitmq() -> Result<()> {
    let node = RabbitNode::start().await?;
    let server = Launch::up().arg("--bus").arg(node.url()).ready().await?;
    line_127(&server, Some(&node)).await
}
