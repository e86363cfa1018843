//! The official Python SDK, unmodified, asks two hundred things side by side on one socket, three times as many as a
//! socket has under way at once: each gets its own answer, and nobody is told that the system is busy.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::model::{Reply, Rule, nonce_of, two_step_react};
use tg_testkit::process::root;
use tokio::process::Command;

use crate::shared::Workspace;
use crate::world::Bus;

const REQUESTS: usize = 200;
const BOUND: Duration = Duration::from_secs(110);
/// A model that takes its time, so that the requests pile up.
const PAUSE: Duration = Duration::from_millis(50);

fn rules() -> Vec<Rule> {
    let plain = Rule::computed(
        |prompt| prompt.contains("Say nonce"),
        |prompt| Reply::text(nonce_of(prompt).unwrap_or("no-nonce")),
    );
    let react = two_step_react("calculator", json!({"expression": "6*7"}), 2);
    let all = [plain].into_iter().chain(react);
    all.map(|rule| rule.delayed(PAUSE)).collect()
}

async fn in_parallel(bus: Bus) -> Result<()> {
    let (place, _model) = Workspace::scripted(bus, rules()).await?;
    let work = Command::new(root().join(".cache/venv/bin/python3"))
        .arg(root().join("tests/integration/clients/sdk_parallel.py"))
        .args([&place.url, &place.id, &REQUESTS.to_string()])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(BOUND, work)
        .await
        .with_context(|| format!("the client did not end\n{}", place.log()))?
        .context("cannot run Python: run the set-up first")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let told: Value = serde_json::from_str(&text).with_context(|| {
        let errors = String::from_utf8_lossy(&output.stderr);
        format!("{text}\n{errors}")
    })?;
    ensure!(told["wrong"] == json!([]), "{told}");
    let kinds = told["answered"].as_object().context("no counts")?;
    let answered: u64 = kinds.values().filter_map(Value::as_u64).sum();
    ensure!(kinds.len() == 4 && answered == REQUESTS as u64, "{told}");
    Ok(())
}

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    in_parallel(Bus::Embedded).await
}

#[tokio::test]
async fn on_rabbitmq() -> Result<()> {
    in_parallel(Bus::Rabbit).await
}
