//! The official client of the LangGraph API, unmodified, against a system with users: assistants, threads with their state and history,
//! runs that are waited for, streamed, begun and joined, questions outside of threads, failures, and what another user sees.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::model::{Reply, Rule, ScriptedModel, cut, final_answer};
use tg_testkit::process::root;
use tokio::process::Command;

use crate::edge::first_key;
use crate::world::{Bus, launch, on_both_buses};

const BOUND: Duration = Duration::from_secs(120);

fn rules() -> Vec<Rule> {
    let slow = final_answer("slowly.", "It is done.");
    let answer = |text| Reply::text(final_answer("it is known.", text));
    vec![
        Rule::contains(
            "Fail now",
            Reply::status(400, r#"{"error":{"message":"no"}}"#),
        ),
        Rule::contains(
            "Tell me slowly",
            Reply::pieces(cut(&slow, 40)).delayed(Duration::from_millis(150)),
        ),
        Rule::contains("And then?", answer("Then it rained.")),
        Rule::contains("Who built the lamp?", answer("Ada Brisk built it.")),
        Rule::always(answer("Fine.")),
    ]
}

async fn a_client_of_the_api_is_a_client(bus: Bus) -> Result<()> {
    let model = ScriptedModel::start(rules()).await?;
    let node = bus.broker().await?;
    let launch = launch(&model, node.as_ref()).arg("--auth").arg("iam");
    let server = launch.ready().await?;
    let key = first_key(&server).await?;
    let work = Command::new(root().join(".cache/langgraph/bin/python3"))
        .arg(root().join("tests/integration/clients/langgraph_threads.py"))
        .args([format!("{}langgraph", server.url()), key])
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

on_both_buses!(a_client_of_the_api_is_a_client);
