//! `kill -9` of one process of many: what it was doing ends, in an answer or in a clear error; its successor
//! goes on where it stopped, and no trace holds anything twice. A run whose answer is not streamed is answered when the model
//! service is killed.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::join_all;
use serde_json::json;
use tg_testkit::model::ScriptedModel;
use tg_testkit::process::Server;
use tg_testkit::services::{ANSWERING, without};
use tg_testkit::shared_node::VirtualHost;
use tg_testkit::socket::{Frames, Socket};

use crate::traces::{Ended, begin, check, end, end_after, end_detached, slow};
use crate::world::serving;

/// Runs at a time: every other is detached, the first shows when to kill.
const RUNS: usize = 6;
/// Pause of the model before each of the 16 pieces of a run.
const PAUSE: Duration = Duration::from_millis(20);
/// A run has at least so many frames: two steps of thought, action, observation and what explains them.
const STEPS: usize = 8;
/// A run ends by then in any case.
const BOUND: Duration = Duration::from_secs(60);

async fn kill(victim: &str) -> Result<()> {
    let node = VirtualHost::new().await?;
    let model = ScriptedModel::start(slow(PAUSE)).await?;
    let others = without(&ANSWERING, &[victim]);
    let mut rest = serving(&others, &model, &node).spawn().await?;
    let launch = serving(&[victim], &model, &node).data(&rest.data().join("killed"));
    let mut process = launch.clone().spawn().await?;
    rest.wait_ready().await?;
    let socket = Socket::connect(&rest.url(), "").await?;

    let (mut answered, mut failed) = (Vec::new(), Vec::new());
    // Once before the first frame of a run, once after each of its frames, until it ends before the kill.
    for step in 0.. {
        let nonce = |n: usize| format!("nonce-{victim}-{step}-{n}-x");
        let calls = model.count();
        let mut shown = ask(&socket, &nonce(0), false, false).await?;
        let mut runs = Vec::new();
        for n in 1..RUNS {
            let (nonce, detach) = (nonce(n), n % 2 == 1);
            let frames = ask(&socket, &nonce, detach, is_streamed(n)).await?;
            // An asker hears that the answer was interrupted if the agent's successor takes its time; the run goes on.
            let forgets = victim == "agent" && detach;
            runs.push(async move {
                let ended = if forgets {
                    let session = end_detached(frames, &nonce, BOUND).await;
                    session.map(Ended::Answered)
                } else {
                    end(frames, &nonce, BOUND).await
                };
                (n, ended)
            });
        }
        let again = async {
            let came = model.wait_calls(calls + 1, BOUND).await;
            ensure!(came, "the model was not called");
            if victim == "agent" {
                // What no process had yet is answered at once, detached or not: nobody serves it.
                let detached = (1..RUNS).step_by(2).map(nonce);
                all_begun(&model, &detached.collect::<Vec<_>>()).await?;
            }
            let mut seen = Vec::new();
            while seen.len() < step
                && let Some(frame) = shown.next().await
            {
                seen.push(frame);
            }
            let over = seen.last().is_some_and(|frame| frame["complete"] == true);
            process.kill9().await?;
            let process = launch.clone().spawn().await?;
            anyhow::Ok((process, seen, over))
        };
        let (ends, restarted) = tokio::join!(join_all(runs), again);
        let (successor, seen, over) = restarted?;
        process = successor;
        let first = end_after(seen, shown, &nonce(0), BOUND).await;
        for (n, ended) in ends.into_iter().chain([(0, first)]) {
            let ended = ended.with_context(|| {
                format!(
                    "run {n}, killed after frame {step}\n{}\n{}",
                    process.log(),
                    rest.log()
                )
            });
            match ended? {
                Ended::Answered(session) => answered.push(session),
                Ended::Failed(error) => failed.push((step, n, error)),
            }
        }
        if over {
            ensure!(step >= STEPS, "a run of {step} frames");
            break;
        }
    }
    let detached: Vec<_> = failed.iter().filter(|(_, n, _)| n % 2 == 1).collect();
    ensure!(
        detached.is_empty(),
        "detached runs go on: {detached:#?}\n{}\n{}",
        process.log(),
        rest.log()
    );
    // Of an answer that was begun nothing is said twice; one that was not is asked for again.
    let whole: Vec<_> = failed.iter().filter(|(_, n, _)| !is_streamed(*n)).collect();
    ensure!(
        victim != "llm" || whole.is_empty(),
        "{whole:#?}\n{}\n{}",
        process.log(),
        rest.log()
    );
    answered.push(fresh(&socket, &mut rest).await?);
    check(&socket, &answered).await
}

/// Waits until the model was asked in each of these runs: the agent has them.
async fn all_begun(model: &ScriptedModel, nonces: &[String]) -> Result<()> {
    loop {
        let count = model.count();
        let prompts: Vec<String> = model
            .calls()
            .iter()
            .map(|call| call.body.to_string())
            .collect();
        let is_begun = |nonce: &String| prompts.iter().any(|prompt| prompt.contains(nonce));
        if nonces.iter().all(is_begun) {
            return Ok(());
        }
        let more = model.wait_calls(count + 1, BOUND).await;
        ensure!(more, "the model was not asked in all of {nonces:?}");
    }
}

/// Whether a run's answer comes in pieces.
fn is_streamed(n: usize) -> bool {
    !n.is_multiple_of(3)
}

/// Starts a run.
async fn ask(socket: &Socket, nonce: &str, detach: bool, streaming: bool) -> Result<Frames> {
    let mut envelope = json!({
        "service": "agent", "flow": "default",
        "request": {"question": format!("What is it? {nonce}"), "streaming": streaming},
    });
    if detach {
        envelope["detach"] = json!(true);
    }
    socket.send(envelope).await
}

/// The successor serves.
async fn fresh(socket: &Socket, rest: &mut Server) -> Result<String> {
    rest.wait_ready().await?;
    let frames = begin(socket, "default", "nonce-fresh-x", false).await?;
    match end(frames, "nonce-fresh-x", BOUND).await? {
        Ended::Answered(session) => Ok(session),
        Ended::Failed(error) => anyhow::bail!("{error}"),
    }
}

#[tokio::test]
async fn the_agent() -> Result<()> {
    kill("agent").await
}

#[tokio::test]
async fn the_model_service() -> Result<()> {
    kill("llm").await
}

#[tokio::test]
async fn the_graph() -> Result<()> {
    kill("graph").await
}

#[tokio::test]
async fn the_config_service() -> Result<()> {
    kill("config").await
}
