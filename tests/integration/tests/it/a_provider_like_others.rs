//! `/v1` as a provider: the released checker of a marketplace of models (`trustedrouter-provider-check`), unmodified, finds nothing to
//! say against it, through all its tiers that need no certain model: catalog, calls of each listed model, chats and streams.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::model::{Reply, Rule, ScriptedModel, cut, final_answer};
use tg_testkit::process::root;
use tokio::process::Command;

use crate::world::{Bus, launch, on_both_buses};

const BOUND: Duration = Duration::from_secs(240);

/// Between two pieces of the model.
const PAUSE: Duration = Duration::from_millis(30);

/// Checks of the tiers 1 to 4.
const CHECKS: usize = 18;

async fn the_checker_finds_nothing(bus: Bus) -> Result<()> {
    // Plain models are asked the same as agents, whose model has to say that it is done.
    let says = final_answer("easy.", "PONG");
    // One piece after the other, as a model writes them: the checker looks at when they come.
    let paced = Reply::pieces(cut(&says, 8)).delayed(PAUSE);
    let rules = vec![Rule::always(paced)];
    let model = ScriptedModel::start(rules).await?;
    let node = bus.broker().await?;
    let server = launch(&model, node.as_ref()).ready().await?;
    let base = format!("{}v1", server.url());
    let work = Command::new(root().join(".cache/checker/bin/python3"))
        .arg(root().join("tests/integration/clients/provider_check.py"))
        .args([base.as_str(), "", "scripted"])
        // It would ask the marketplace for its newest schema; without it, it has its own.
        .env("HTTPS_PROXY", "http://127.0.0.1:9")
        .env("NO_PROXY", "127.0.0.1")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(BOUND, work)
        .await
        .with_context(|| format!("the checker did not end\n{}", server.log()))?
        .context("cannot run Python: run the set-up first")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let told: Value = serde_json::from_str(&text)
        .with_context(|| format!("{text}\n{}", String::from_utf8_lossy(&output.stderr)))?;
    ensure!(told["wrong"] == json!([]), "{told:#}\n{}", server.log());
    let checks = told["checks"].as_object().context("checks")?;
    ensure!(checks.len() == CHECKS, "{told:#}");
    Ok(())
}

on_both_buses!(the_checker_finds_nothing);
