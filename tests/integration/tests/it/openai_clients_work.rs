//! The official clients of the OpenAI and Anthropic APIs from PyPI and npm, and frameworks that ask these APIs (langchain-openai,
//! openai-agents), all unmodified, against a system with users and two backends of a model: whole and
//! streamed answers of a model and of an agent, tools, answers of a schema, thoughts, the client for asyncio, the list of models, a key that is held to one, failures in the client's own classes, and a backend
//! that fails without anybody noticing. Afterwards `tg route --explain` says who is left out.
//!
//! 44, 45, 151

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::model::{End, Reply, Rule, ScriptedModel, cut, final_answer, tool_call};
use tg_testkit::process::{Launch, Server, root, tg_with};
use tokio::process::Command;

use crate::edge::first_key;
use crate::world::{Bus, on_both_buses};

const BOUND: Duration = Duration::from_secs(120);
const OTHER: &str = "scripted-large";
/// A call of a tool, as models write it that know no better.
const CALL: &str = r#"{"name": "weather", "arguments": {"city": "Oslo"}}"#;
const THINKS: &str = "<think>Shall I? </think>\n\nyes";

/// The question of an agent. The agent's model calls the calculator and then answers by its result.
const OF_AGENT: &str = "ask the calculator";

/// The rules of an agent's model.
fn agent_rules() -> [Rule; 2] {
    let has_result = |prompt: &str| {
        let mut lines = prompt.lines();
        prompt.contains(OF_AGENT) && lines.any(|line| line.starts_with("Observation:"))
    };
    // Slowly enough for its pieces to stay apart.
    let answer = Reply::pieces(cut(&final_answer("I know it now.", "It is 42."), 12))
        .delayed(Duration::from_millis(20));
    let count = tool_call("I count.", "calculator", &json!({"expression": "6*7"}));
    [
        Rule::computed(has_result, move |_| answer.clone()),
        Rule::contains(OF_AGENT, Reply::pieces(cut(&count, 4))),
    ]
}

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

/// Runs a client with its interpreter, and looks at what it found wrong.
async fn runs(
    (program, script): (&str, &str),
    arguments: [&str; 4],
    server: &Server,
) -> Result<()> {
    let work = Command::new(root().join(".cache").join(program))
        .arg(root().join("tests/integration/clients").join(script))
        .env("MODULES", root().join(".cache/models"))
        .args(arguments)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(BOUND, work)
        .await
        .with_context(|| format!("{script} did not end\n{}", server.log()))?
        .context("cannot run the client: run the set-up first")?;
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
    // The rules of the agent come first: its prompts have words of the other rules.
    let mut rules = Vec::from(agent_rules());
    rules.extend([
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
    ]);
    let near = ScriptedModel::start(rules).await?;
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

    // That one last: it makes a backend rest.
    let (python, frameworks, npm) = (
        "venv/bin/python3",
        "frameworks/bin/python3",
        "node/bin/node",
    );
    for (program, script, base) in [
        (npm, "npm_models.mjs", ""),
        (frameworks, "frameworks.py", "v1"),
        (python, "anthropic_messages.py", ""),
        (python, "openai_chat.py", "v1"),
    ] {
        let base = format!("{}{base}", server.url());
        let arguments = [base.as_str(), &key, &held, OTHER];
        runs((program, script), arguments, &server).await?;
    }

    let pictures = near.calls().into_iter().filter(|call| {
        let picture = &call.body["messages"][0]["content"][1]["image_url"]["url"];
        *picture == "data:image/png;base64,iVBORw0KGgo="
    });
    ensure!(pictures.count() == 1, "the picture did not come once");
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
