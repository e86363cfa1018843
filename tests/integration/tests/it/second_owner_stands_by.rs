//! A second config, iam, flow or graph process stands by and says so; it serves when the first is gone.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use tg_testkit::model::ScriptedModel;
use tg_testkit::process::Launch;
use tg_testkit::rabbitmq::RabbitNode;
use tg_testkit::socket::Socket;

use crate::world::launch;

#[tokio::test]
async fn and_takes_over() -> Result<()> {
    let node = RabbitNode::start().await?;
    let model = ScriptedModel::start(Vec::new()).await?;
    let server = launch(&model, Some(&node)).ready().await?;
    let owners = ["config", "iam", "flow", "graph"];
    // The three processors of the graph share one store; each says so.
    let processors = 6;
    let second = Launch::serve(&owners, &node.url())
        .data(server.data())
        .spawn()
        .await?;
    let stands_by = |log: &str| log.matches("standing by").count() == processors;
    for _ in 0..500 {
        if stands_by(&second.log()) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(stands_by(&second.log()), "{}", second.log());

    // One config service answers, not two: a version goes up by one per put.
    let socket = Socket::connect(&server.url(), "").await?;
    let put = json!({"operation": "put", "values": [{"type": "notes", "key": "a", "value": "1"}]});
    let version = json!({"operation": "config"});
    let before =
        socket.ask_service("config", version.clone()).await?["response"]["version"].clone();
    socket.ask_service("config", put).await?;
    let after = socket.ask_service("config", version).await?["response"]["version"].clone();
    assert_eq!(before.as_i64().map(|v| v + 1), after.as_i64());
    Ok(())
}
