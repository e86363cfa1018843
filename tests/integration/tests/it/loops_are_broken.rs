//! A model that makes the same call again and again is warned, told, blocked and stopped, with the best that there is; the
//! trace says why, also to the official command.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::model::{Reply, Rule, ScriptedModel, tool_call};
use tg_testkit::official::official;
use tg_testkit::process::tg;
use tg_testkit::socket::Socket;

use crate::world::{Bus, launch, post};

const WHY: &str = "Stopped by loop detection (generic_repeat): 'calculator' was called 20 times with the same arguments; \
                   the loop is broken";

/// An agent of a file that may take more steps than a guard lets it go in circles.
const AGENT: &str = "name: looper\nmodel: scripted\ntools: [calculator]\nmax_iterations: 40\n";

/// Everything is there by then.
const BOUND: Duration = Duration::from_secs(120);

fn looping() -> Vec<Rule> {
    let call = tool_call("Once more.", "calculator", &json!({"expression": "6*7"}));
    vec![Rule::always(Reply::text(call))]
}

async fn a_loop_is_stopped_and_explained(bus: Bus) -> Result<()> {
    let model = ScriptedModel::start(looping()).await?;
    let node = bus.broker().await?;
    let agents = tempfile::tempdir()?;
    std::fs::write(agents.path().join("looper.yaml"), AGENT)?;
    let server = launch(&model, node.as_ref())
        .env("THREADGRAPH_AGENT__MAX_ITERATIONS", "40")
        .env(
            "THREADGRAPH_SESSIONS__AGENTS_DIR",
            agents.path().to_string_lossy(),
        )
        .ready()
        .await?;
    let url = server.url();
    let path = "api/v1/flow/default/service/agent";
    let (status, answer) = post(&url, path, json!({"question": "How much is it?"})).await?;
    ensure!(status == 200, "{answer}");
    let text = answer["answer"].as_str().context("an answer")?;
    ensure!(text.lines().next() == Some(WHY), "{text}");
    ensure!(text.ends_with("returned:\n42"), "{text}");
    ensure!(
        answer["stopped"] == true && answer["finish_reason"] == "loop",
        "{answer}"
    );
    let prompts: Vec<String> = model
        .calls()
        .iter()
        .filter(|call| call.path.contains("chat"))
        .map(|call| call.body.to_string())
        .collect();
    ensure!(prompts.len() == 20, "{} calls", prompts.len());
    let told = "Warning: 'calculator' was called 10 times";
    let warned = |call: usize| prompts[call].matches(told).count();
    ensure!((warned(9), warned(10)) == (0, 1), "{}", prompts[10]);

    let trace = answer["trace"].as_str().context("a trace")?;
    let ours = tg(&url, &["show-explain-trace", trace]).await?;
    ensure!(ours.stdout.contains("Ended by: loop"), "{ours:?}");
    ensure!(ours.stdout.contains(&format!("Why: {WHY}")), "{ours:?}");
    ensure!(
        ours.stdout
            .contains("--- Guard ---\nDid: warn\nFound by: generic_repeat"),
        "{ours:?}"
    );
    let shown = tg(&url, &["show-explain-trace", trace, "--json"]).await?;
    let shown: Value = serde_json::from_str(&shown.stdout)?;
    let steps = shown["steps"].as_array().context("steps")?;
    let rungs: Vec<&str> = steps
        .iter()
        .filter_map(|step| step["rung"].as_str())
        .collect();
    let mut expected = vec!["warn", "tell"];
    expected.extend(["block"; 10]);
    expected.push("stop");
    ensure!(rungs == expected, "{rungs:?}");
    let last = steps.last().context("an end")?;
    ensure!(last["ended_by"] == "loop" && last["why"] == WHY, "{last}");
    let verified = tg(&url, &["verify-trace", trace, "--chain"]).await?;
    ensure!(verified.code == Some(0), "{verified:?}");
    let theirs = official(&url, "tg-show-explain-trace", &[trace]).await?;
    ensure!(theirs.code == Some(0), "{theirs:?}");
    ensure!(theirs.stdout.contains("calculator"), "{theirs:?}");

    let metrics = reqwest::get(format!("{url}metrics")).await?.text().await?;
    for rung in ["warn", "tell", "block", "stop"] {
        let labels = format!("detector=\"generic_repeat\",rung=\"{rung}\"");
        ensure!(metrics.contains(&labels), "{labels}");
    }
    line_093_an_agent_of_a_file_answers_so(&url).await?;
    why_names_it(&url).await
}

/// Over `/a1` a run that a guard stopped is an answer of status 200 that says so.
async fn line_093_an_agent_of_a_file_answers_so(url: &str) -> Result<()> {
    let chat = "a1/agents/looper/chat";
    let (status, told) = post(url, chat, json!({"message": "How much is it?"})).await?;
    ensure!(status == 200 && told["stopped"] == true, "{status}: {told}");
    let text = told["content"].as_str().context("an answer")?;
    ensure!(text.lines().next() == Some(WHY), "{text}");
    ensure!(told["finish_reason"] == "loop", "{told}");
    Ok(())
}

/// `tg why --run` says of a run that went in circles what the trace says.
async fn why_names_it(url: &str) -> Result<()> {
    let socket = Socket::connect(url, "").await?;
    let request = json!({"service": "agent", "flow": "default", "on-disconnect": "detach",
        "request": {"question": "And once more?", "streaming": true}});
    let frames = socket.send(request).await?.all(BOUND).await?;
    let run = frames.first().context("no part")?["run"].clone();
    let run = run.as_str().context("a run")?;
    let end = Instant::now() + BOUND;
    let line = loop {
        let told = tg(url, &["why", "--json", "--run", run]).await?;
        let lines: Vec<Value> = serde_json::from_str(&told.stdout).context(told.stderr)?;
        // What is left of its last step is done behind its last part.
        if let Some(line) = lines.into_iter().find(|line| line["state"] == "ended") {
            break line;
        }
        ensure!(Instant::now() < end, "{run} does not end");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    ensure!(line["detail"] == format!("it is over: {WHY}"), "{line}");
    Ok(())
}

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    a_loop_is_stopped_and_explained(Bus::Embedded).await
}

#[tokio::test]
async fn over_rabbitmq() -> Result<()> {
    a_loop_is_stopped_and_explained(Bus::Rabbit).await
}
