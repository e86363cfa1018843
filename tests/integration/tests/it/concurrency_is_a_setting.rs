//! How many messages a processor works on at a time is what the setting says, by the processor's id; the others keep theirs.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use tg_testkit::model::{Reply, Rule, ScriptedModel};
use tg_testkit::process::Launch;

use crate::world::{Bus, launch, on_both_buses, post};

/// Longer than two questions take to come.
const THINKS: Duration = Duration::from_secs(3);
const COMPLETION: &str = "api/v1/flow/default/service/text-completion";

async fn what_is_set_is_what_is_done(bus: Bus) -> Result<()> {
    let reply = Reply::text("an answer").delayed(THINKS);
    let model = ScriptedModel::start(vec![Rule::always(reply)]).await?;
    let node = bus.broker().await?;
    let data = tempfile::tempdir()?;
    let set = |launch: Launch, to: &str| {
        let launch = launch.data(data.path());
        launch.env("THREADGRAPH_CONCURRENCY", to)
    };
    for (setting, both) in [("prompt=1", true), ("prompt=64, text-completion=1", false)] {
        let server = set(launch(&model, node.as_ref()), setting).ready().await?;
        let ask = || post_completion(server.url());
        let (one, other) = tokio::join!(ask(), ask());
        let busy = [one?, other?].map(|reply| reply["error"]["type"] == "busy");
        let refused = busy.iter().filter(|busy| **busy).count();
        ensure!(refused == usize::from(!both), "{setting}: {busy:?}");
        server.terminate().await?;
    }
    let wrong = set(launch(&model, node.as_ref()), "prompts=1")
        .spawn()
        .await?;
    let (status, log) = wrong.ended().await?;
    ensure!(status != Some(0), "{log}");
    ensure!(
        log.contains("concurrency") && log.contains("prompts"),
        "{log}"
    );
    Ok(())
}

async fn post_completion(url: String) -> Result<serde_json::Value> {
    let body = json!({"system": "s", "prompt": "p"});
    Ok(post(&url, COMPLETION, body).await?.1)
}

on_both_buses!(what_is_set_is_what_is_done);
