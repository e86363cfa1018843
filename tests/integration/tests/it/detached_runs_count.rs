//! Work whose caller went away counts against its user until it ends, can be seen and cancelled.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::model::{Reply, Rule};
use tg_testkit::process::{client, tg};

use crate::world::{Bus, World};

const AGENT: &str = "api/v1/flow/default/service/agent";

async fn own(world: &World) -> Result<Vec<Value>> {
    let list = json!({"operation": "list-requests"});
    let (_, reply) = world.post("api/v1/requests", list).await?;
    Ok(reply["requests"].as_array().context("no list")?.clone())
}

async fn until(world: &World, count: usize) -> Result<Vec<Value>> {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let own = own(world).await?;
        if own.len() == count {
            return Ok(own);
        }
        ensure!(Instant::now() < end, "{count} expected: {own:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn count(bus: Bus) -> Result<()> {
    let never = Rule::always(Reply::text("late")).delayed(Duration::from_secs(300));
    let world = World::with(bus, vec![never]).await?;
    let ask = async |bound: Duration| {
        let request = client()?
            .post(format!("{}{AGENT}", world.server.url()))
            .header("X-Detach", "true")
            .json(&json!({"question": "q"}))
            .timeout(bound);
        let reply: Value = match request.send().await {
            Ok(response) => response.json().await?,
            Err(_) => Value::Null,
        };
        Ok::<_, anyhow::Error>(reply)
    };
    while own(&world).await?.len() < 32 {
        ask(Duration::from_millis(60)).await?;
    }
    let refused = ask(Duration::from_secs(20)).await?;
    assert_eq!(refused["error"]["type"], "busy", "{refused}");
    // The callers are gone, the work is not.
    let own = until(&world, 32).await?;
    assert_eq!(own[0]["service"], "agent");
    let id = own[0]["id"].as_str().context("no id")?;
    let url = world.server.url();
    tg(&url, &["list-requests"]).await?.expect(id)?;
    tg(&url, &["cancel-request", "--id", id])
        .await?
        .expect(id)?;
    for request in &own[1..] {
        let cancel = json!({"operation": "cancel-request", "id": request["id"]});
        world.post("api/v1/requests", cancel).await?;
    }
    until(&world, 0).await?;
    // The model is hung up on, and asked nothing more.
    let calls = world.model.count();
    assert!(calls > 0);
    let closed = world.model.wait_closed(calls, Duration::from_secs(5)).await;
    assert!(closed, "of {calls} calls some go on");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.model.count(), calls);
    let (_, reply) = world
        .post(
            "api/v1/requests",
            json!({"operation": "cancel-request", "id": id}),
        )
        .await?;
    assert_eq!(reply["error"]["type"], "not-found", "{reply}");
    Ok(())
}

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    count(Bus::Embedded).await
}

#[tokio::test]
async fn on_rabbitmq() -> Result<()> {
    count(Bus::Rabbit).await
}
