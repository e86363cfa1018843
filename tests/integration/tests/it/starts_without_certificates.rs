//! A server starts on a machine without certificates: the well-known roots are compiled in. A provider that needs
//! others is unreachable, and nothing else is wrong.

use anyhow::Result;
use serde_json::json;

use crate::world::{Bus, launch, post};

const TOOL: &str = "api/v1/flow/default/service/mcp-tool";

async fn starts(bus: Bus) -> Result<()> {
    let node = bus.broker().await?;
    let model = tg_testkit::model::ScriptedModel::start(Vec::new()).await?;
    let server = launch(&model, node.as_ref())
        .env("SSL_CERT_FILE", "/nonexistent")
        .env("SSL_CERT_DIR", "/nonexistent")
        .ready()
        .await?;
    let sum = json!({"name": "builtin:calculator", "parameters": {"expression": "6*7"}});
    let (status, answer) = post(&server.url(), TOOL, sum).await?;
    assert_eq!((status, &answer["text"]), (200, &json!("42")), "{answer}");

    // An MCP server over TLS is asked, and is not there.
    let row = json!({"url": "https://127.0.0.1:9/mcp"}).to_string();
    let values = json!([{"type": "mcp", "key": "far", "value": row}]);
    let put = json!({"operation": "put", "values": values});
    let (status, answer) = post(&server.url(), "api/v1/config", put).await?;
    assert_eq!(status, 200, "{answer}");
    let url = server.url();
    for _ in 0..3_000 {
        let call = json!({"name": "far", "parameters": {}});
        let (_, answer) = post(&url, TOOL, call).await?;
        let text = answer.to_string();
        // The change takes a moment to arrive.
        if text.contains("there is no MCP tool") {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            continue;
        }
        assert!(
            text.contains("the tool's server cannot be reached"),
            "{text}"
        );
        return Ok(());
    }
    anyhow::bail!("the tool service never saw the tool")
}

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    starts(Bus::Embedded).await
}

#[tokio::test]
async fn over_a_broker() -> Result<()> {
    starts(Bus::Rabbit).await
}
