//! The client from npm, unmodified: its socket form (`/api/socket`, token in the query, `chunk_type`), with
//! and without keys.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::model::{Reply, Rule, ScriptedModel, cut, two_step_react};
use tg_testkit::process::root;
use tokio::process::Command;

use crate::traces::expected;
use crate::world::{Bus, World, launch, post};

/// How long the whole story may take.
const BOUND: Duration = Duration::from_secs(90);

/// What the model says outside the agent.
const PLAIN: &str = "In plain words, yes.";

/// The agent's model, and one that answers plain questions slowly enough for its pieces to stay apart.
fn rules() -> Vec<Rule> {
    let plain = Rule::contains("Say it in plain words.", Reply::pieces(cut(PLAIN, 4)))
        .delayed(Duration::from_millis(30));
    let react = two_step_react("calculator", json!({"expression": "6*7"}), 8);
    [plain].into_iter().chain(react).collect()
}

/// What the client's callers saw, by step.
async fn story(url: &str, token: &str, nonce: &str) -> Result<Value> {
    let socket = format!("{}api/socket", url.replacen("http", "ws", 1));
    let work = Command::new(root().join(".cache/npm/node"))
        .arg(root().join("tests/integration/clients/npm_story.mjs"))
        .arg(root().join(".cache/npm/node_modules"))
        .args([socket.as_str(), token, nonce])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(BOUND, work)
        .await
        .context("the client did not end")?
        .context("cannot run Node.js: run the set-up first")?;
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).with_context(|| {
        let errors = String::from_utf8_lossy(&output.stderr);
        format!("{text}\n{errors}")
    })
}

fn check(seen: &Value, nonce: &str) -> Result<()> {
    let holds = |step: &str, text: &str| {
        let got = seen[step].to_string();
        ensure!(got.contains(text), "{step}: {got} lacks {text}");
        Ok(())
    };
    holds("flows", "default")?;
    holds("blueprints", "everything")?;
    holds("blueprint", "interfaces")?;
    holds("prompts", "agent-react")?;
    ensure!(
        seen["system prompt"].is_string(),
        "{}",
        seen["system prompt"]
    );
    holds("get", nonce)?;
    holds("values", nonce)?;
    holds("flow", "by the npm client")?;
    ensure!(seen["stopped"]["failed"].is_null(), "{}", seen["stopped"]);
    ensure!(seen["refused"]["failed"].is_string(), "{}", seen["refused"]);
    for step in ["completion", "completion stream", "prompt stream"] {
        holds(step, PLAIN)?;
    }
    let pieces = seen["completion stream"]["count"].as_u64();
    ensure!(
        pieces > Some(2),
        "not streamed: {}",
        seen["completion stream"]
    );
    let agent = &seen["agent"];
    ensure!(
        agent["answer"].as_str().map(str::trim) == Some(expected(nonce).as_str())
            && agent["observation"] == "42"
            && agent["explains"].as_u64() > Some(3)
            && agent["thought"]
                .as_str()
                .is_some_and(|text| !text.is_empty()),
        "{agent}"
    );
    holds("documents", &format!("title {nonce}"))?;
    ensure!(
        seen["streamed document"] == format!("text of {nonce}"),
        "{}",
        seen["streamed document"]
    );
    holds("collection", "npm")?;
    holds("collections", "by the client")?;
    holds("triples", nonce)
}

async fn open(bus: Bus) -> Result<()> {
    let world = World::with(bus, rules()).await?;
    let nonce = "nonce-npm-x";
    let seen = story(&world.server.url(), "", nonce).await?;
    check(&seen, nonce)
}

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    open(Bus::Embedded).await
}

#[tokio::test]
async fn on_rabbitmq() -> Result<()> {
    open(Bus::Rabbit).await
}

#[tokio::test]
async fn with_a_key() -> Result<()> {
    let model = ScriptedModel::start(rules()).await?;
    let server = launch(&model, None)
        .arg("--auth")
        .arg("iam")
        .ready()
        .await?;
    let (status, first) = post(&server.url(), "api/v1/auth/bootstrap", json!({})).await?;
    ensure!(status == 200, "{first}");
    let key = first["bootstrap_admin_api_key"].as_str().context("a key")?;
    let nonce = "nonce-npm-key-x";
    check(&story(&server.url(), key, nonce).await?, nonce)?;
    let refused = story(&server.url(), "tg_wrong", nonce).await?;
    ensure!(
        refused["flows"]["failed"].is_string() && refused["agent"]["failed"].is_string(),
        "{refused}"
    );
    Ok(())
}
