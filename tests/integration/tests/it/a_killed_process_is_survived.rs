//! `kill -9` of one process of many: what it was doing ends, in an answer or in a clear error; its successor
//! goes on where it stopped, and no trace holds anything twice.

use std::time::Duration;

use anyhow::{Result, ensure};
use futures::future::join_all;
use tg_testkit::model::ScriptedModel;
use tg_testkit::process::{Launch, Server};
use tg_testkit::rabbitmq::RabbitNode;
use tg_testkit::socket::Socket;

use crate::traces::{Ended, begin, check, end, end_detached, slow};

const ALL: &[&str] = &[
    "config",
    "iam",
    "flow",
    "librarian",
    "graph",
    "llm",
    "prompt",
    "tool",
    "agent",
    "gateway",
];
/// Runs at a time; every other is detached.
const RUNS: usize = 12;
/// The process is killed when the model was called so many times in a wave: early, between the steps, late.
const KILLS: &[usize] = &[1, 6, 15, 22];
/// Pause of the model before each of the 16 pieces of a run.
const PAUSE: Duration = Duration::from_millis(20);
/// A run ends by then in any case.
const BOUND: Duration = Duration::from_secs(30);

fn serve(services: &[&str], model: &ScriptedModel, node: &RabbitNode) -> Launch {
    Launch::serve(services, &node.url())
        .env("OPENAI_BASE_URL", model.url())
        .env("OPENAI_API_KEY", "sk-test-secret-4711")
        .env("OPENAI_MODEL", "scripted")
}

async fn kill(victim: &str) -> Result<()> {
    let node = RabbitNode::start().await?;
    let model = ScriptedModel::start(slow(PAUSE)).await?;
    let others: Vec<&str> = ALL.iter().copied().filter(|name| *name != victim).collect();
    let mut rest = serve(&others, &model, &node).spawn().await?;
    let launch = serve(&[victim], &model, &node).data(&rest.data().join("killed"));
    let mut process = launch.clone().spawn().await?;
    rest.wait_ready().await?;
    let socket = Socket::connect(&rest.url(), "").await?;

    let (mut answered, mut failed) = (Vec::new(), Vec::new());
    for (wave, calls) in KILLS.iter().enumerate() {
        let nonce = |n: usize| format!("nonce-{victim}-{wave}-{n}-x");
        let before = model.count();
        let mut runs = Vec::new();
        for n in 0..RUNS {
            let nonce = nonce(n);
            let frames = begin(&socket, "default", &nonce, n % 2 == 1).await?;
            // An agent that is killed has forgotten what a detached run's asker heard of a text.
            let forgets = victim == "agent" && n % 2 == 1;
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
            let came = model.wait_calls(before + calls, BOUND).await;
            ensure!(came, "the model was not called");
            process.kill9().await?;
            launch.clone().spawn().await
        };
        let (ends, restarted) = tokio::join!(join_all(runs), again);
        process = restarted?;
        for (n, ended) in ends {
            match ended? {
                Ended::Answered(session) => answered.push(session),
                Ended::Failed(error) => failed.push((wave, n, error)),
            }
        }
    }
    let detached: Vec<_> = failed.iter().filter(|(_, n, _)| n % 2 == 1).collect();
    ensure!(
        detached.is_empty(),
        "detached runs go on: {detached:#?}\n{}\n{}",
        process.log(),
        rest.log()
    );
    answered.push(fresh(&socket, &mut rest).await?);
    check(&socket, &answered).await
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
