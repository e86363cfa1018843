//! How many messages a processor works on at a time is what the setting says, by the processor's id; the others keep theirs.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use tg_testkit::model::{Reply, Rule, ScriptedModel};
use tg_testkit::process::Launch;

use crate::world::{Bus, launch, on_both_buses, post};

/// How long the model holds a question, unless it is told to answer.
const HOLDS: Duration = Duration::from_secs(120);
const TIMEOUT: Duration = Duration::from_secs(60);
const COMPLETION: &str = "api/v1/flow/default/service/text-completion";

async fn what_is_set_is_what_is_done(bus: Bus) -> Result<()> {
    let node = bus.broker().await?;
    let data = tempfile::tempdir()?;
    let set = |launch: Launch, to: &str| {
        let launch = launch.data(data.path());
        launch.env("THREADGRAPH_CONCURRENCY", to)
    };
    for (setting, both) in [("prompt=1", true), ("prompt=64, text-completion=1", false)] {
        let reply = Reply::text("an answer").delayed(HOLDS);
        let model = ScriptedModel::start(vec![Rule::always(reply)]).await?;
        let server = set(launch(&model, node.as_ref()), setting).ready().await?;
        let ask = || post_completion(server.url());
        // The model answers when it holds both questions, or when the second has been refused.
        let decided = async {
            let came = model.wait_calls(2, TIMEOUT).await;
            model.hurry();
            came
        };
        let refused = async |reply: Result<serde_json::Value>| {
            let refused = reply?["error"]["type"] == "busy";
            if refused {
                model.hurry();
            }
            anyhow::Ok(refused)
        };
        let one = async { refused(ask().await).await };
        let other = async { refused(ask().await).await };
        if both {
            let (one, other, came) = tokio::join!(one, other, decided);
            ensure!(came && !one? && !other?, "{setting}: one was refused");
        } else {
            let (one, other) = tokio::join!(one, other);
            ensure!(one? != other?, "{setting}: not exactly one was refused");
            ensure!(model.count() == 1, "{setting}: the model was asked twice");
        }
        server.terminate().await?;
    }
    let model = ScriptedModel::start(vec![]).await?;
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
