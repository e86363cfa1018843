//! `kill -9` of the sessions service, of the agent and of the gateway after each event of a turn: a client that asks again under the
//! same `X-Request-Id` gets the answer, and the session has one message of the user and one answer.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use tg_testkit::model::ScriptedModel;
use tg_testkit::process::{Launch, Server, client, free_port};
use tg_testkit::services::{ANSWERING, without};
use tg_testkit::shared_node::VirtualHost;
use tokio::time::Instant;

use crate::traces::{expected, slow};

/// Pause of the model before each of the 16 pieces of a turn.
const PAUSE: Duration = Duration::from_millis(20);
/// A turn has at least so many events before its last one: the message, the call, its result, a piece of the answer.
const STEPS: usize = 4;
/// What these tests wait for comes within this.
const BOUND: Duration = Duration::from_secs(120);
/// An agent with a tool.
const AGENT: &str = "name: worker\nmodel: scripted\ntools: [calculator]\n";
const SESSIONS: &str = "a1/agents/worker/sessions";

/// Asks until the status is the wanted one; a process that was killed is not back at once.
async fn patiently(ask: impl Fn() -> RequestBuilder, wanted: u16) -> Result<Value> {
    let end = Instant::now() + BOUND;
    loop {
        let told = match ask().header("SPASS-User-Id", "ann").send().await {
            Ok(response) if response.status().as_u16() == wanted => {
                return Ok(response.json().await?);
            }
            Ok(response) => format!("{} {:?}", response.status(), response.text().await),
            Err(error) => format!("{error:?}"),
        };
        ensure!(Instant::now() < end, "{told}");
        tokio::time::sleep(PAUSE).await;
    }
}

/// Reads so many events of a turn. Returns whether the turn ended with them, and the rest of them.
async fn seen(ask: RequestBuilder, step: usize) -> Result<(bool, reqwest::Response)> {
    let mut shown = ask.header("SPASS-User-Id", "ann").send().await?;
    let status = shown.status();
    let (mut text, mut over) = (String::new(), false);
    while text.matches("event: ").count() < step && !over {
        let piece = tokio::time::timeout(BOUND, shown.chunk()).await;
        let piece = piece.with_context(|| format!("nothing is told: {text}"))??;
        let piece = piece.with_context(|| format!("{status}: no end: {text}"))?;
        text.push_str(&String::from_utf8_lossy(&piece));
        over = text.contains("event: done");
    }
    ensure!(!text.contains("event: error"), "{text}");
    Ok((over, shown))
}

/// The session has one message of the user and one answer.
fn is_one_turn(told: &Value) -> Result<()> {
    let messages = told["messages"].as_array().context("no messages")?;
    let of = |role: &'static str| messages.iter().filter(move |one| one["role"] == role);
    let answers = of("assistant").filter(|one| one["tool_calls"].is_null());
    ensure!(of("user").count() == 1 && answers.count() == 1, "{told}");
    Ok(())
}

async fn ready(victim: &str, rest: &mut Server, process: &mut Server) -> Result<()> {
    match victim {
        "gateway" => process.wait_ready().await,
        _ => rest.wait_ready().await,
    }
}

async fn kill(victim: &'static str) -> Result<()> {
    let node = VirtualHost::new().await?;
    let model = ScriptedModel::start(slow(PAUSE)).await?;
    let agents = tempfile::tempdir()?;
    std::fs::write(agents.path().join("worker.yaml"), AGENT)?;
    // Clients find the gateway there after each kill.
    let port = free_port()?;
    let serve = |services: &[&str]| {
        let launch = Launch::serve(services, &node.url())
            .env("OPENAI_BASE_URL", model.url())
            .env("OPENAI_API_KEY", "sk-test-secret-4711")
            .env("OPENAI_MODEL", "scripted")
            .env(
                "THREADGRAPH_SESSIONS__AGENTS_DIR",
                agents.path().to_string_lossy(),
            );
        match services.contains(&"gateway") {
            true => launch.port(port),
            false => launch,
        }
    };
    let all = [&ANSWERING[..], &["sessions"][..]].concat();
    let mut rest = serve(&without(&all, &[victim])).spawn().await?;
    let launch = serve(&[victim]).data(&rest.data().join("killed"));
    let mut process = launch.clone().spawn().await?;
    ready(victim, &mut rest, &mut process).await?;

    let client = client()?;
    let sessions = format!("http://127.0.0.1:{port}/{SESSIONS}");
    let mut turns = Vec::new();
    // Once before the first event of a turn, once after each of its events, until it ends before the kill.
    for step in 0.. {
        let nonce = format!("nonce-{victim}-{step}-x");
        let begin = || client.post(&sessions).json(&json!({}));
        let made = patiently(begin, 201).await?;
        let session = made["id"].as_str().context("an id")?;
        let path = format!("{sessions}/{session}/messages");
        let ask = |path: &str| {
            let asked = client.post(path).header("X-Request-Id", &nonce);
            asked.json(&json!({"message": format!("What is it? {nonce}")}))
        };
        let mut asking = tokio::spawn(seen(ask(&format!("{path}/stream")), step));
        let shown = match step {
            0 => None,
            _ => Some((&mut asking).await??),
        };
        process.kill9().await?;
        process = launch.clone().spawn().await?;
        ready(victim, &mut rest, &mut process).await?;
        asking.abort();
        let log = || {
            let (killed, rest) = (process.log(), rest.log());
            format!("killed after event {step}\n{killed}\n{rest}")
        };
        let told = patiently(|| ask(&path), 200).await.with_context(log)?;
        let content = told["content"].as_str().unwrap_or_default();
        ensure!(content.trim() == expected(&nonce), "{told}\n{}", log());
        let listed = patiently(|| client.get(&path), 200).await?;
        is_one_turn(&listed).with_context(log)?;
        turns.push(path);
        if shown.is_some_and(|(over, _)| over) {
            ensure!(step > STEPS, "a turn of {step} events");
            break;
        }
    }
    // Nothing came to any of them later.
    for path in &turns {
        is_one_turn(&patiently(|| client.get(path), 200).await?)?;
    }
    Ok(())
}

mod alone {
    #[tokio::test]
    async fn the_sessions_service() -> anyhow::Result<()> {
        super::kill("sessions").await
    }

    #[tokio::test]
    async fn the_agent() -> anyhow::Result<()> {
        super::kill("agent").await
    }

    #[tokio::test]
    async fn the_gateway() -> anyhow::Result<()> {
        super::kill("gateway").await
    }
}
