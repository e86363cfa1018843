//! Work whose caller went away counts against its user until it ends, can be seen and cancelled, also when the gateway
//! that it came through was killed, or the agent.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::model::{Reply, Rule, ScriptedModel};
use tg_testkit::outside::number;
use tg_testkit::process::{client, tg};
use tg_testkit::services::{SERVICES, without};
use tg_testkit::shared_node::VirtualHost;

use crate::world::{Bus, World, launch, post, serving};

/// What these tests wait for comes within this.
const BOUND: Duration = Duration::from_secs(60);
const AGENT: &str = "api/v1/flow/default/service/agent";

/// A gateway, wherever it runs.
struct Gateway<'a>(&'a str);

impl Gateway<'_> {
    async fn requests(&self, body: Value) -> Result<Value> {
        Ok(post(self.0, "api/v1/requests", body).await?.1)
    }

    async fn own(&self) -> Result<Vec<Value>> {
        let reply = self.requests(json!({"operation": "list-requests"})).await?;
        let own = reply["requests"].as_array();
        Ok(own.with_context(|| reply.to_string())?.clone())
    }

    async fn until(&self, count: usize) -> Result<Vec<Value>> {
        let end = Instant::now() + BOUND;
        loop {
            let own = self.own().await?;
            if own.len() == count {
                return Ok(own);
            }
            ensure!(Instant::now() < end, "{count} expected: {own:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Asks the agent something that goes on without its caller, who waits for so long.
    async fn ask(&self, bound: Duration) -> Result<Value> {
        let request = client()?
            .post(format!("{}{AGENT}", self.0))
            .header("X-Detach", "true")
            .json(&json!({"question": "q"}))
            .timeout(bound);
        match request.send().await {
            Ok(response) => Ok(response.json().await?),
            Err(_) => Ok(Value::Null),
        }
    }

    /// As many as a user may have; another one is refused.
    async fn fill(&self) -> Result<()> {
        while self.own().await?.len() < 32 {
            self.ask(Duration::from_millis(60)).await?;
        }
        self.is_full().await
    }

    async fn is_full(&self) -> Result<()> {
        let refused = self.ask(BOUND).await?;
        ensure!(refused["error"]["type"] == "busy", "{refused}");
        Ok(())
    }

    async fn cancel(&self, request: &Value) -> Result<()> {
        let reply = self
            .requests(json!({"operation": "cancel-request", "id": request["id"]}))
            .await?;
        ensure!(reply["cancelled"] == request["id"], "{reply}");
        Ok(())
    }

    /// Cancels all of these, the first of them as people do.
    async fn cancel_all(&self, own: &[Value]) -> Result<()> {
        let id = own[0]["id"].as_str().context("no id")?;
        tg(self.0, &["list-requests"]).await?.expect(id)?;
        tg(self.0, &["cancel-request", "--id", id])
            .await?
            .expect(id)?;
        for request in &own[1..] {
            self.cancel(request).await?;
        }
        self.until(0).await?;
        let cancel = json!({"operation": "cancel-request", "id": id});
        let reply = self.requests(cancel).await?;
        ensure!(reply["error"]["type"] == "not-found", "{reply}");
        Ok(())
    }
}

fn never() -> Vec<Rule> {
    vec![Rule::always(Reply::text("late")).delayed(Duration::from_secs(300))]
}

/// The model is hung up on, and asked nothing more.
async fn is_left_alone(model: &ScriptedModel) -> Result<()> {
    let calls = model.count();
    ensure!(calls > 0, "it was never asked");
    let closed = model.wait_closed(calls, BOUND).await;
    ensure!(closed, "of {calls} calls some go on");
    tokio::time::sleep(Duration::from_secs(1)).await;
    ensure!(model.count() == calls, "{} after {calls}", model.count());
    Ok(())
}

async fn count(bus: Bus) -> Result<()> {
    let world = World::with(bus, never()).await?;
    let url = world.server.url();
    let gateway = Gateway(&url);
    gateway.fill().await?;
    // The callers are gone, the work is not.
    let own = gateway.until(32).await?;
    assert_eq!(own[0]["service"], "agent");
    gateway.cancel_all(&own).await?;
    is_left_alone(&world.model).await
}

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    count(Bus::Embedded).await
}

#[tokio::test]
async fn on_rabbitmq() -> Result<()> {
    count(Bus::Rabbit).await
}

/// Detached runs that came to their end because they were cancelled, as the agent's ledger has it.
const CANCELLED: &str = "SELECT COUNT(*) FROM detached WHERE EXISTS
    (SELECT 1 FROM step WHERE step.run = detached.run AND done = 2 AND ending LIKE '%cancelled%')";

/// Those that it knows of: a gateway counts one a bit before the agent has it, and until then it dies with the gateway.
const KNOWN: &str = "SELECT COUNT(*) FROM detached";

async fn noted(data: &Path, which: &str, count: i64) -> Result<()> {
    let end = Instant::now() + BOUND;
    loop {
        let seen = number(&data.join("agent.db"), which)?;
        if seen == count {
            return Ok(());
        }
        ensure!(Instant::now() < end, "{count} expected: {seen:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The process that asked is killed. The runs go on; what comes in its place lists, counts and ends them.
#[tokio::test]
async fn after_a_kill_of_the_whole_process_on_the_embedded_bus() -> Result<()> {
    let model = ScriptedModel::start(never()).await?;
    let folder = tempfile::tempdir()?;
    let start = || launch(&model, None).data(folder.path()).ready();
    let first = start().await?;
    Gateway(&first.url()).fill().await?;
    noted(first.data(), KNOWN, 32).await?;
    first.kill9().await?;

    let server = start().await?;
    let url = server.url();
    let gateway = Gateway(&url);
    let own = gateway.until(32).await?;
    assert_eq!(own[0]["service"], "agent");
    gateway.is_full().await?;
    gateway.cancel_all(&own).await?;
    noted(server.data(), CANCELLED, 32).await?;
    is_left_alone(&model).await
}

/// A process per service: another gateway sees what came through the one that was killed, and the caller of one that is
/// alive hears that its run was cancelled elsewhere.
#[tokio::test]
async fn after_a_kill_of_the_gateway_over_rabbitmq() -> Result<()> {
    let model = ScriptedModel::start(never()).await?;
    let node = VirtualHost::new().await?;
    let serve = |services: &[&str]| serving(services, &model, &node);
    let mut others = Vec::new();
    for service in without(&SERVICES, &["agent", "gateway"]) {
        others.push(serve(&[service]).spawn().await?);
    }
    let agent = serve(&["agent"]).spawn().await?;
    let first = serve(&["gateway"]).ready().await?;
    Gateway(&first.url()).fill().await?;
    noted(agent.data(), KNOWN, 32).await?;
    first.kill9().await?;

    let server = serve(&["gateway"]).ready().await?;
    let another = serve(&["gateway"]).ready().await?;
    let (url, other) = (server.url(), another.url());
    let (gateway, other) = (Gateway(&url), Gateway(&other));
    let own = gateway.until(32).await?;
    assert_eq!(own[0]["service"], "agent");
    gateway.is_full().await?;
    gateway.cancel(&own[0]).await?;
    gateway.until(31).await?;
    let asked = other.ask(Duration::from_secs(60));
    let cancelled = async {
        let all = gateway.until(32).await?;
        let new = all
            .iter()
            .find(|one| own.iter().all(|old| old["id"] != one["id"]));
        gateway.cancel(new.context("no other one")?).await
    };
    let (told, cancelled) = tokio::join!(asked, cancelled);
    cancelled?;
    let told = told?;
    assert_eq!(told["error"]["type"], "cancelled", "{told}");
    gateway.cancel_all(&own[1..]).await?;
    noted(agent.data(), CANCELLED, 33).await?;
    is_left_alone(&model).await
}

/// The agent is killed, not the gateway: its successor takes the run up, and ends it when it is cancelled.
#[tokio::test]
async fn after_a_kill_of_the_agent_over_rabbitmq() -> Result<()> {
    let model = ScriptedModel::start(never()).await?;
    let node = VirtualHost::new().await?;
    let serve = |services: &[&str]| serving(services, &model, &node);
    let folder = tempfile::tempdir()?;
    let mut rest = serve(&without(&SERVICES, &["agent"])).spawn().await?;
    let launch = serve(&["agent"]).data(folder.path());
    let first = launch.clone().spawn().await?;
    rest.wait_ready().await?;
    let url = rest.url();
    let gateway = Gateway(&url);
    let killed = async {
        let own = gateway.until(1).await?;
        noted(first.data(), KNOWN, 1).await?;
        ensure!(model.wait_calls(1, BOUND).await, "it was never asked");
        let calls = model.count();
        first.kill9().await?;
        let successor = launch.spawn().await?;
        let asked = model.wait_calls(calls + 1, BOUND).await;
        ensure!(asked, "nobody goes on\n{}", successor.log());
        ensure!(calls == 1 && model.count() == 2, "{calls}");
        gateway.cancel(&own[0]).await?;
        gateway.until(0).await?;
        noted(successor.data(), CANCELLED, 1).await?;
        Ok::<_, anyhow::Error>(successor)
    };
    let (told, successor) = tokio::join!(gateway.ask(BOUND), killed);
    let _successor = successor?;
    told?;
    // What the dead process asked goes on at the service of models, which holds an answer for whoever comes back.
    ensure!(
        model.wait_closed(1, BOUND).await,
        "the successor's call goes on"
    );
    Ok(())
}
