//! The official clients of the OpenAI and Anthropic APIs, unmodified, against a system with users and two backends of a model: whole and
//! streamed answers, tools, answers of a schema, thoughts, the client for asyncio, the list of models, a key that is held to one, failures in the client's own classes, and a backend
//! that fails without anybody noticing. Afterwards `tg route --explain` says who is left out.
//!
//! 44, 45, 151

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::model::{End, Reply, Rule, ScriptedModel, cut};
use tg_testkit::process::{Launch, Server, root, tg_with};
use tokio::process::Command;

use crate::edge::first_key;
use crate::world::{Bus, on_both_buses};

const BOUND: Duration = Duration::from_secs(120);
const OTHER: &str = "scripted-large";
/// A call of a tool, as models write it that know no better.
const CALL: &str = r#"{"name": "weather", "arguments": {"city": "Oslo"}}"#;
const THINKS: &str = "<think>Shall I? </think>\n\nyes";

/// A key that may ask for one model.
async fn held(server: &Server, key: &str) -> Result<String> {
    let ask = async |body: Value| -> Result<Value> {
        let url = format!("{}api/v1/iam", server.url());
        let request = server.client()?.post(url).bearer_auth(key).json(&body);
        Ok(request.send().await?.json().await?)
    };
    let who = ask(json!({"operation": "whoami"})).await?;
    let user = who["user"]["id"].as_str();
    let user = user.with_context(|| who.to_string())?;
    let made = ask(json!({"operation": "create-api-key", "key": {
        "user_id": user, "name": "held", "scopes": ["llm", "model:scripted"],
    }}))
    .await?;
    let key = made["api_key_plaintext"].as_str();
    Ok(key.with_context(|| made.to_string())?.to_owned())
}

/// Runs a client, and looks at what it found wrong.
async fn runs(script: &str, arguments: [&str; 4], server: &Server) -> Result<()> {
    let work = Command::new(root().join(".cache/venv/bin/python3"))
        .arg(root().join("tests/integration/clients").join(script))
        .args(arguments)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(BOUND, work)
        .await
        .with_context(|| format!("{script} did not end\n{}", server.log()))?
        .context("cannot run Python: run the set-up first")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let told: Value = serde_json::from_str(&text)
        .with_context(|| format!("{text}\n{}", String::from_utf8_lossy(&output.stderr)))?;
    ensure!(
        told["wrong"] == json!([]),
        "{script}: {told:#}\n{}",
        server.log()
    );
    Ok(())
}

async fn a_client_of_the_api_is_a_client(bus: Bus) -> Result<()> {
    let near = ScriptedModel::start(vec![
        Rule::contains("fail near", Reply::status(500, "{}")),
        Rule::contains("cut", Reply::pieces(["half "]).ending(End::Disconnect)),
        Rule::contains("minus 3 degrees", Reply::text("It is cold.")),
        Rule::contains("weather of Oslo", Reply::pieces(cut(CALL, 5))),
        Rule::contains(
            "a town",
            Reply::text(r#"{"name": "Oslo", "people": 700000}"#),
        ),
        Rule::contains("think first", Reply::pieces(cut(THINKS, 8))),
        Rule::always(Reply::pieces(["hello ", "from ", "near"])),
    ])
    .await?;
    let far = ScriptedModel::start(vec![Rule::always(Reply::text("hello from far"))]).await?;
    let backends = json!([
        {"name": "near", "provider": "openai", "url": near.url(), "key": "sk-hidden",
         "supported_models": ["scripted", OTHER]},
        {"name": "far", "provider": "openai", "url": far.url(), "priority": 2, "supported_models": ["scripted"]},
    ]);
    let node = bus.broker().await?;
    let launch = Launch::up()
        .env("THREADGRAPH_LLM__BACKENDS", backends.to_string())
        .arg("--auth")
        .arg("iam")
        .over(node.as_ref());
    let server = launch.ready().await?;
    let key = first_key(&server).await?;
    let held = held(&server, &key).await?;

    // The second one first: the first one makes a backend rest.
    for (script, base) in [("anthropic_messages.py", ""), ("openai_chat.py", "v1")] {
        let base = format!("{}{base}", server.url());
        runs(script, [&base, &key, &held, OTHER], &server).await?;
    }

    let token = [("TRUSTGRAPH_TOKEN", key.as_str())];
    let route = tg_with(&server.url(), &token, &["route", "--explain"]).await?;
    route.expect("scripted: far (by failover)")?;
    route.expect("cooling, ")?;
    let health = tg_with(&server.url(), &token, &["route", "--health", "--json"]).await?;
    health.expect("near/scripted")?.refuse("127.0.0.1")?;
    ensure!(!server.log().contains("sk-hidden"), "the log has a key");
    Ok(())
}

on_both_buses!(a_client_of_the_api_is_a_client);
