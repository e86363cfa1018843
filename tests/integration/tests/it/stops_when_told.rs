//! A process that is told to stop does so soon, whatever it is doing: also while it starts, while a fresh
//! system comes to life, and while its broker is away. What it began is finished by the next start.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tg_testkit::model::ScriptedModel;
use tg_testkit::process::{Launch, Server};
use tg_testkit::rabbitmq::RabbitNode;

use crate::world::launch;

/// From the signal to the end of the process. Nothing is in progress that deserves the drain time.
const SOON: Duration = Duration::from_secs(12);

async fn ends_soon(server: Server, when: &str) -> Result<()> {
    let told = Instant::now();
    let code = server.terminate().await.with_context(|| when.to_owned())?;
    let took = told.elapsed();
    eprintln!("{when}: ended after {took:?} with {code:?}");
    // One that is told before it listens to signals is ended by the system; one that lost its broker while
    // it connected has said so.
    let lost = code == Some(1) && when.starts_with("broker");
    ensure!(lost || matches!(code, Some(0) | None), "{when}: {code:?}");
    ensure!(took < SOON, "{when}: took {took:?}");
    Ok(())
}

/// Each on data and a broker that are new to it, so that each meets another moment of the first start;
/// then one on what the last left.
async fn at_every_moment(fresh: impl AsyncFn(&str) -> Result<Launch>) -> Result<()> {
    let data = tempfile::tempdir()?;
    for (n, millis) in [50, 200, 400, 700, 1000, 1500, 2000, 3000]
        .into_iter()
        .enumerate()
    {
        let dir = data.path().join(n.to_string());
        let server = fresh(&n.to_string()).await?.data(&dir).spawn().await?;
        tokio::time::sleep(Duration::from_millis(millis)).await;
        ends_soon(server, &format!("after {millis} ms")).await?;
        if millis % 400 == 0 {
            // What was begun is finished.
            let again = fresh(&n.to_string()).await?.data(&dir).ready().await?;
            ends_soon(again, "once it was ready").await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    let _busy = crate::world::busy().await;
    let model = ScriptedModel::start(Vec::new()).await?;
    at_every_moment(async |_| Ok(launch(&model, None))).await
}

#[tokio::test]
async fn over_a_broker() -> Result<()> {
    let _busy = crate::world::busy().await;
    let node = RabbitNode::start().await?;
    let model = ScriptedModel::start(Vec::new()).await?;
    at_every_moment(async |name| {
        let vhost = node.vhost(name).await?;
        Ok(launch(&model, None).arg("--bus").arg(vhost))
    })
    .await
}

/// The broker is not there at the start, or goes away at some time of it.
#[tokio::test]
async fn while_the_broker_is_away() -> Result<()> {
    let _busy = crate::world::busy().await;
    let mut node = RabbitNode::start().await?;
    let model = ScriptedModel::start(Vec::new()).await?;
    for millis in [300, 1000, 2500] {
        let server = launch(&model, Some(&node)).spawn().await?;
        tokio::time::sleep(Duration::from_millis(millis)).await;
        node.kill9().await?;
        tokio::time::sleep(Duration::from_millis(200)).await;
        ends_soon(server, &format!("broker gone after {millis} ms")).await?;
        let waiting = launch(&model, Some(&node)).spawn().await?;
        tokio::time::sleep(Duration::from_millis(500)).await;
        ends_soon(waiting, "no broker").await?;
        node.restart().await?;
    }
    Ok(())
}
