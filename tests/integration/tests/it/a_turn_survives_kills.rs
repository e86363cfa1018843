//! `kill -9` of the sessions service, of the agent, of the gateway and of the whole system on the embedded bus after each event of a
//! turn: a client that asks again under the same `X-Request-Id` gets the answer, and the session has one message of the user and one
//! answer.

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
use crate::world::wired;

/// Pause of the model before each of the 16 pieces of a turn.
const PAUSE: Duration = Duration::from_millis(20);
/// The same beside other tests: the turn must not end before the kill.
const LONG: Duration = Duration::from_millis(250);
/// A turn has at least so many events before its last one: the message, the call, its result, a piece of the answer.
const STEPS: usize = 4;
/// What these tests wait for comes within this.
const BOUND: Duration = Duration::from_secs(120);
/// The victim that is all services in one process, over the embedded bus.
const ALL: &str = "up";
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

async fn ready(victim: &str, rest: Option<&mut Server>, process: &mut Server) -> Result<()> {
    match rest {
        Some(rest) if victim != "gateway" => rest.wait_ready().await,
        _ => process.wait_ready().await,
    }
}

/// Kills it in turns, each after as many events as `steps` says, until a turn ends before the kill.
async fn kill(
    victim: &'static str,
    pause: Duration,
    steps: impl Iterator<Item = usize>,
) -> Result<()> {
    let node = match victim {
        ALL => None,
        _ => Some(VirtualHost::new().await?),
    };
    let model = ScriptedModel::start(slow(pause)).await?;
    let folder = tempfile::tempdir()?;
    let agents = folder.path().join("agents");
    std::fs::create_dir(&agents)?;
    std::fs::write(agents.join("worker.yaml"), AGENT)?;
    // Clients find the gateway there after each kill.
    let port = free_port()?;
    let set = |launch: Launch| {
        wired(launch, &model).env("THREADGRAPH_SESSIONS__AGENTS_DIR", agents.to_string_lossy())
    };
    let (mut rest, launch) = match &node {
        None => (None, set(Launch::up()).port(port)),
        Some(node) => {
            let serve = |services: &[&str]| {
                let launch = set(Launch::serve(services, &node.url()));
                match services.contains(&"gateway") {
                    true => launch.port(port),
                    false => launch,
                }
            };
            let all = [&ANSWERING[..], &["sessions"][..]].concat();
            let rest = serve(&without(&all, &[victim])).spawn().await?;
            (Some(rest), serve(&[victim]))
        }
    };
    let launch = launch.data(&folder.path().join("killed"));
    let mut process = launch.clone().spawn().await?;
    ready(victim, rest.as_mut(), &mut process).await?;

    let client = client()?;
    let sessions = format!("http://127.0.0.1:{port}/{SESSIONS}");
    let mut turns = Vec::new();
    for step in steps {
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
        ready(victim, rest.as_mut(), &mut process).await?;
        asking.abort();
        let log = || {
            let rest = rest.as_ref().map(Server::log).unwrap_or_default();
            let killed = process.log();
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

/// Once, after three events: the tool was called. On a very slow machine the turn may be over by then.
#[tokio::test]
async fn line_130_the_whole_system_within_a_turn() -> Result<()> {
    kill(ALL, LONG, std::iter::once(3)).await
}

/// Once before the first event of a turn, and once after each of its events.
mod alone {
    #[tokio::test]
    async fn line_130_the_sessions_service() -> anyhow::Result<()> {
        super::kill("sessions", super::PAUSE, 0..).await
    }

    #[tokio::test]
    async fn line_130_the_agent() -> anyhow::Result<()> {
        super::kill("agent", super::PAUSE, 0..).await
    }

    #[tokio::test]
    async fn line_130_the_gateway() -> anyhow::Result<()> {
        super::kill("gateway", super::PAUSE, 0..).await
    }

    #[tokio::test]
    async fn line_130_the_whole_system() -> anyhow::Result<()> {
        super::kill(super::ALL, super::PAUSE, 0..).await
    }
}
