//! The broker is away for some seconds while many runs are under way: they answer, whole and in order, and
//! what was promised to be kept is kept.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::join_all;
use serde_json::json;
use tg_testkit::machine::Machine;
use tg_testkit::model::ScriptedModel;
use tg_testkit::process::client;
use tg_testkit::rabbitmq::RabbitNode;
use tg_testkit::socket::Socket;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::confirmed::{confirm, found};
use crate::traces::{Ended, begin, begin_within, check, end, end_after, slow};
use crate::world::launch;
use tg_testkit::topology;

const RUNS: usize = 200;
const SOCKETS: usize = 4;
/// How long the broker is away at least.
const AWAY: Duration = Duration::from_secs(3);
/// Pause of the model before each of the 16 pieces of a run.
const PAUSE: Duration = Duration::from_millis(100);
/// A run is to be over by then, with the broker's start between and two hundred at once: with its answer, or told.
const DEADLINE: Duration = Duration::from_secs(90);
/// How much later than its deadline the end of a run may come to its asker.
const LATE: Duration = Duration::from_secs(5);
/// Nothing takes longer, in any case.
const BOUND: Duration = Duration::from_secs(150);
/// Imports under way at a time, each with a batch that is not confirmed yet.
const IMPORTS: usize = 8;
/// After this long a fresh question is taken up again; on a slower machine more by as much.
const RESUMED: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, Copy)]
enum Outage {
    Crash,
    Stop,
}

async fn survive(outage: Outage) -> Result<()> {
    let mut node = RabbitNode::start().await?;
    let model = ScriptedModel::start(slow(PAUSE)).await?;
    let launch = launch(&model, None).arg("--bus").arg(node.url());
    let server = launch.ready().await?;
    let mut sockets = Vec::new();
    for _ in 0..SOCKETS {
        sockets.push(Socket::connect(&server.url(), "").await?);
    }
    let nonce = |n: usize| format!("nonce-outage-{n}-x");
    let mut runs = Vec::new();
    for n in 0..RUNS {
        let begun = Instant::now();
        let frames = begin_within(&sockets[n % SOCKETS], &nonce(n), DEADLINE.as_secs()).await?;
        runs.push(async move {
            let ended = end(frames, &nonce(n), BOUND).await;
            (n, ended, begun.elapsed())
        });
    }
    let (enough, until) = watch::channel(false);
    let imports = (0..IMPORTS).map(|n| confirm(server.url(), n, until.clone()));
    // Some runs are in their second step, some still in their first, some have not begun.
    let break_it = async {
        let came = model.wait_calls(RUNS / 2, BOUND).await;
        ensure!(came, "the model was not called");
        match outage {
            Outage::Crash => node.kill9().await?,
            Outage::Stop => node.stop().await?,
        }
        let url = server.url();
        let (told, ()) = tokio::join!(told_without_a_broker(&url), sleep(AWAY));
        told?;
        let machine = Machine::measured();
        node.restart().await?;
        let back = fresh(&sockets[0], machine).await;
        // What is imported now is confirmed as before.
        sleep(AWAY).await;
        back
    };
    let break_it = async {
        let broken = break_it.await;
        enough.send_replace(true);
        broken
    };
    let (ends, imported, broken) = tokio::join!(join_all(runs), join_all(imports), break_it);
    broken?;
    found(&server.url(), imported, AWAY).await?;

    let (mut answered, mut failed) = (Vec::new(), Vec::new());
    for (n, ended, took) in ends {
        ensure!(took <= DEADLINE + LATE, "run {n} ended after {took:?}");
        match ended.with_context(|| server.log())? {
            Ended::Answered(session) => answered.push(session),
            Ended::Failed(error) => failed.push((n, error)),
        }
    }
    ensure!(
        answered.len() * 100 >= RUNS * 99,
        "{} of {RUNS} answered; failed: {failed:#?}\n{}",
        answered.len(),
        server.log()
    );
    check(&sockets[0], &answered).await
}

/// Whoever asks while the broker is away is told so in plain words, and nothing of where it is.
async fn told_without_a_broker(url: &str) -> Result<()> {
    let asks = [
        (
            "api/v1/config",
            json!({"operation": "list", "type": "prompt"}),
        ),
        (
            "api/v1/flow/default/service/triples",
            json!({"limit": 1, "collection": "default"}),
        ),
        (
            "api/v1/flow/default/service/embeddings",
            json!({"texts": ["x"]}),
        ),
    ];
    let asks = asks.map(|(path, body)| async move {
        let ask = client()?.post(format!("{url}{path}")).json(&body);
        let said = ask.header("x-timeout", "1").send().await?;
        let (status, text) = (said.status(), said.text().await?);
        ensure!(
            !status.is_success() || text.contains("\"error\""),
            "{path}, without a broker: {status} {text}"
        );
        println!("{path}, without a broker: {status} {text}");
        topology::check(path, &text);
        Ok(())
    });
    join_all(asks).await.into_iter().collect()
}

/// A question asked when the broker is back is taken up soon, and answered.
async fn fresh(socket: &Socket, machine: Machine) -> Result<()> {
    let nonce = "nonce-fresh-x";
    let back = Instant::now();
    let mut frames = begin(socket, "default", nonce, false).await?;
    let first = frames.next().await.context("no first frame")?;
    let took = back.elapsed();
    ensure!(first["response"]["error"].is_null(), "{first}");
    let allowed = machine.allows(RESUMED);
    println!(
        "taken up: took {took:.3?} of {allowed:.3?} allowed, machine x{:.1}",
        machine.slower()
    );
    ensure!(
        took <= allowed,
        "taken up {took:?} after the broker's return, of {allowed:?}"
    );
    let ended = end_after(vec![first], frames, nonce, BOUND).await?;
    ensure!(matches!(ended, Ended::Answered(_)), "{ended:?}");
    Ok(())
}

/// Held to seconds or less: these have the machine to themselves (`make test`).
mod alone {
    use super::*;

    #[tokio::test]
    async fn when_the_broker_crashes() -> Result<()> {
        survive(Outage::Crash).await
    }

    #[tokio::test]
    async fn when_the_broker_is_stopped() -> Result<()> {
        survive(Outage::Stop).await
    }
}
