//! A process that is told to stop does so soon, whatever it is doing: also while it starts, while a fresh
//! system comes to life, and while its broker is away. What it began is finished by the next start.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tg_testkit::certificates::Certified;
use tg_testkit::model::{Reply, Rule, ScriptedModel};
use tg_testkit::process::{Launch, Server, Terminal};
use tg_testkit::rabbitmq::RabbitNode;
use tg_testkit::shared_node::VirtualHost;
use tokio::sync::Mutex;

use crate::world::{Bus, World, launch};

/// From the signal to the end of the process. Nothing is in progress that deserves the drain time.
const SOON: Duration = Duration::from_secs(60);

/// From the second signal to the end: the five seconds that the runtime may take for what blocks, and room for a busy
/// machine. An answer under way would be waited for as long as the drain time, of which 19 seconds are left then.
const STOPPED: Duration = Duration::from_secs(15);

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
    let model = ScriptedModel::start(Vec::new()).await?;
    at_every_moment(async |_| Ok(launch(&model, None))).await
}

#[tokio::test]
async fn over_a_broker() -> Result<()> {
    let model = ScriptedModel::start(Vec::new()).await?;
    let hosts = Mutex::new(HashMap::new());
    at_every_moment(async |name| {
        let mut hosts = hosts.lock().await;
        if !hosts.contains_key(name) {
            hosts.insert(name.to_owned(), VirtualHost::new().await?);
        }
        Ok(launch(&model, hosts.get(name)))
    })
    .await
}

/// The broker is not there at the start, or goes away at some time of it.
#[tokio::test]
async fn while_the_broker_is_away() -> Result<()> {
    let mut node = RabbitNode::start().await?;
    let model = ScriptedModel::start(Vec::new()).await?;
    for millis in [300, 1000, 2500] {
        let server = launch(&model, None)
            .arg("--bus")
            .arg(node.url())
            .spawn()
            .await?;
        tokio::time::sleep(Duration::from_millis(millis)).await;
        node.kill9().await?;
        tokio::time::sleep(Duration::from_millis(200)).await;
        ends_soon(server, &format!("broker gone after {millis} ms")).await?;
        let waiting = launch(&model, None)
            .arg("--bus")
            .arg(node.url())
            .spawn()
            .await?;
        tokio::time::sleep(Duration::from_millis(500)).await;
        ends_soon(waiting, "no broker").await?;
        node.restart().await?;
    }
    Ok(())
}

/// A terminal that is closed says SIGHUP: an orderly end, as with SIGTERM. Whoever was started to outlive it does.
async fn hung_up(bus: Bus) -> Result<()> {
    let broker = bus.broker().await?;
    let shown = Launch::up().terminal(Terminal::Own).over(broker.as_ref());
    let server = shown.ready().await?;
    server.signal("-HUP")?;
    let (code, log) = server.ended().await?;
    ensure!(
        code == Some(0) && log.contains("stopping"),
        "{code:?}\n{log}"
    );
    // What the first kept is not there any more.
    let another = bus.broker().await?;
    let kept = Launch::up().hang_up_ignored().over(another.as_ref());
    let mut kept = kept.ready().await?;
    kept.signal("-HUP")?;
    tokio::time::sleep(Duration::from_millis(500)).await;
    ensure!(
        kept.alive() && !kept.log().contains("stopping"),
        "{}",
        kept.log()
    );
    ends_soon(kept, "one that outlives its terminal").await
}

/// A service of the system has no terminal: SIGHUP asks it to read its certificate again, and it goes on.
async fn hung_up_without_a_terminal(bus: Bus) -> Result<()> {
    let mut certified = Certified::new()?;
    let broker = bus.broker().await?;
    let service = Launch::up()
        .terminal(Terminal::None)
        .secure(&certified)
        .over(broker.as_ref());
    let server = service.ready().await?;
    certified.put(certified.authority.issue()?)?;
    server.signal("-HUP")?;
    let end = Instant::now() + SOON;
    // Until newcomers are shown the new one.
    while certified.shown(server.port()).await? != certified.issued.der {
        ensure!(Instant::now() < end, "{}", server.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let log = server.log();
    ensure!(
        log.contains("SIGHUP: the certificate is looked at"),
        "{log}"
    );
    ensure!(!log.contains("stopping"), "{log}");
    ends_soon(server, "one without a terminal").await?;

    let another = bus.broker().await?;
    let plain = Launch::up().terminal(Terminal::None).over(another.as_ref());
    let mut plain = plain.ready().await?;
    plain.signal("-HUP")?;
    let end = Instant::now() + SOON;
    while !plain.log().contains("SIGHUP: nothing to read again") {
        ensure!(Instant::now() < end && plain.alive(), "{}", plain.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    ends_soon(plain, "one without a certificate").await
}

/// While a model answers, a stop says what it waits for; the second signal ends it at once.
async fn asked_twice(bus: Bus) -> Result<()> {
    let slow = Rule::always(Reply::text("Late.").delayed(Duration::from_secs(60)));
    let world = World::with(bus, vec![slow]).await?;
    let asked = json!({"system": "s", "prompt": "p", "streaming": false});
    let path = "api/v1/flow/default/service/text-completion";
    let url = world.server.url();
    let asking = async {
        // It ends with the process.
        let _ = crate::world::post(&url, path, asked).await;
    };
    let telling = async {
        let end = Instant::now() + Duration::from_secs(60);
        while world.model.count() == 0 {
            ensure!(Instant::now() < end, "the model is not asked");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        world.server.signal("-INT")?;
        let wanted = "stopping: waiting for 1 answer, Ctrl-C again to stop at once";
        while !world.server.log().contains(wanted) {
            ensure!(Instant::now() < end, "{}", world.server.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // It waits.
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.server.signal("-INT")?;
        let told = Instant::now();
        let (code, log) = world.server.ended().await?;
        let took = told.elapsed();
        ensure!(
            code == Some(0) && took < STOPPED,
            "{code:?} after {took:?}\n{log}"
        );
        ensure!(log.contains("second signal: stopping at once"), "{log}");
        Ok(())
    };
    tokio::join!(asking, telling).1
}

#[tokio::test]
async fn while_a_model_answers_on_the_embedded_bus() -> Result<()> {
    asked_twice(Bus::Embedded).await
}

#[tokio::test]
async fn while_a_model_answers_over_a_broker() -> Result<()> {
    asked_twice(Bus::Rabbit).await
}

/// Held to seconds or less: these have the machine to themselves (`make test`).
mod alone {
    use super::*;

    #[tokio::test]
    async fn when_its_terminal_is_closed_on_the_embedded_bus() -> Result<()> {
        hung_up(Bus::Embedded).await
    }

    #[tokio::test]
    async fn when_its_terminal_is_closed_over_a_broker() -> Result<()> {
        hung_up(Bus::Rabbit).await
    }

    #[tokio::test]
    async fn hung_up_without_a_terminal_embedded() -> Result<()> {
        hung_up_without_a_terminal(Bus::Embedded).await
    }

    #[tokio::test]
    async fn hung_up_without_a_terminal_over_rabbitmq() -> Result<()> {
        hung_up_without_a_terminal(Bus::Rabbit).await
    }
}
