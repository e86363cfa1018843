//! What a user said of himself or herself is remembered although the process was killed while it was searched: after the next turn of
//! the session the facts are there, each once, with the message that says it.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};
use tg_testkit::model::{Reply, Rule, ScriptedModel, final_answer};
use tg_testkit::process::{Launch, client};
use tokio::time::Instant;

use crate::world::{Bus, on_both_buses, wired};

/// An agent that remembers.
const AGENT: &str = "name: rex\nmodel: scripted\nmemory: true\n";
const SESSIONS: &str = "a1/agents/rex/sessions";
/// The model is asked this for facts, and for nothing else.
const SEARCH: &str = "Write down what the user states";
/// The model takes so long for facts that the process is killed before.
const LONG: Duration = Duration::from_secs(3_600);
/// What this test waits for comes within this.
const BOUND: Duration = Duration::from_secs(120);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// A model that finds a town in one message after a pause, and answers everything at once.
fn rules(pause: Duration) -> Vec<Rule> {
    let found = move |prompt: &str| {
        let text = match prompt.contains("I live in Kassel") {
            true => "Ann | lives in | Kassel",
            false => "NONE",
        };
        Reply::text(text).delayed(pause)
    };
    vec![
        Rule::computed(|prompt| prompt.contains(SEARCH), found),
        Rule::always(Reply::text(final_answer("It is known.", "Noted."))),
    ]
}

/// A request of the user; what it is answered.
async fn asked(url: &str, method: Method, path: &str, body: Option<Value>) -> Result<Value> {
    let request = client()?.request(method, format!("{url}{path}"));
    let request = request.header("SPASS-User-Id", "ann");
    let request = match &body {
        Some(body) => request.json(body),
        None => request,
    };
    let response = request.send().await?;
    let status = response.status();
    let told: Value = response.json().await?;
    ensure!(status.is_success(), "{path}: {status} {told}");
    Ok(told)
}

/// How often the model was asked for facts.
fn searches(model: &ScriptedModel) -> usize {
    let calls = model.calls();
    let calls = calls.iter();
    calls
        .filter(|call| call.body.to_string().contains(SEARCH))
        .count()
}

async fn a_search_that_was_killed_is_made_again(bus: Bus) -> Result<()> {
    let node = bus.broker().await?;
    let model = ScriptedModel::start(rules(LONG)).await?;
    let folder = tempfile::tempdir()?;
    let agents = folder.path().join("agents");
    std::fs::create_dir(&agents)?;
    std::fs::write(agents.join("rex.yaml"), AGENT)?;
    let launch = || {
        wired(Launch::up(), &model)
            .env("THREADGRAPH_SESSIONS__AGENTS_DIR", agents.to_string_lossy())
            .data(&folder.path().join("data"))
            .over(node.as_ref())
    };
    let says = |text: &str| Some(json!({"message": text}));

    let server = launch().ready().await?;
    let url = server.url();
    let made = asked(&url, Method::POST, SESSIONS, Some(json!({}))).await?;
    let path = format!(
        "{SESSIONS}/{}/messages",
        made["id"].as_str().context("an id")?
    );
    let told = asked(&url, Method::POST, &path, says("I live in Kassel")).await?;
    ensure!(told["content"] == "Noted.", "{told}");
    let end = Instant::now() + BOUND;
    while searches(&model) == 0 {
        ensure!(Instant::now() < end, "no search\n{}", server.log());
        tokio::time::sleep(LOOK).await;
    }
    server.kill9().await?;

    model.set_rules(rules(Duration::ZERO));
    let server = launch().ready().await?;
    let url = server.url();
    asked(&url, Method::POST, &path, says("And you?")).await?;
    let end = Instant::now() + BOUND;
    let facts = loop {
        let told = asked(&url, Method::GET, "a1/memories", None).await?;
        let facts = told["memories"].as_array().context("no list")?.clone();
        if !facts.is_empty() {
            break facts;
        }
        ensure!(Instant::now() < end, "no fact\n{}", server.log());
        tokio::time::sleep(LOOK).await;
    };
    let said = asked(&url, Method::GET, &path, None).await?;
    let first = &said["messages"][0];
    ensure!(first["content"] == "I live in Kassel", "{said}");
    ensure!(facts.len() == 1, "{facts:?}");
    ensure!(facts[0]["object"] == "Kassel", "{facts:?}");
    ensure!(facts[0]["message_id"] == first["id"], "{facts:?} {first}");
    Ok(())
}

on_both_buses!(a_search_that_was_killed_is_made_again);
