//! The official client of the OpenAI API, unmodified, with responses of agents that are stored: they are followed, read, cancelled and
//! deleted by their user, and another user finds none of them.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::model::{Reply, Rule, ScriptedModel, final_answer};
use tg_testkit::process::root;
use tokio::process::Command;

use crate::edge::first_key;
use crate::world::{Bus, launch, on_both_buses};

const BOUND: Duration = Duration::from_secs(120);

fn rules() -> Vec<Rule> {
    let answer = |text| Reply::text(final_answer("it is known.", text));
    vec![
        Rule::contains("Say nothing", Reply::Silence),
        Rule::contains("Good night", answer("Fine.")),
        Rule::contains("And then?", answer("Then it rained.")),
        Rule::contains("Who built the lamp?", answer("Ada Brisk built it.")),
        Rule::always(answer("Fine.")),
    ]
}

async fn the_official_client_follows_reads_cancels_and_deletes(bus: Bus) -> Result<()> {
    let model = ScriptedModel::start(rules()).await?;
    let node = bus.broker().await?;
    let launch = launch(&model, node.as_ref()).arg("--auth").arg("iam");
    let server = launch.ready().await?;
    let key = first_key(&server).await?;
    let work = Command::new(root().join(".cache/venv/bin/python3"))
        .arg(root().join("tests/integration/clients/openai_stored.py"))
        .args([format!("{}v1", server.url()), key])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(BOUND, work)
        .await
        .with_context(|| format!("the client did not end\n{}", server.log()))?
        .context("cannot run Python: run the set-up first")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let told: Value = serde_json::from_str(&text)
        .with_context(|| format!("{text}\n{}", String::from_utf8_lossy(&output.stderr)))?;
    ensure!(told["wrong"] == json!([]), "{told:#}\n{}", server.log());
    Ok(())
}

on_both_buses!(the_official_client_follows_reads_cancels_and_deletes);
