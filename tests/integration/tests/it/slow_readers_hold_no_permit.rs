//! Readers that take their results slowly keep nobody else from asking: neither another workspace nor their own.

use std::time::{Duration, Instant};

use anyhow::Result;
use futures::StreamExt;
use serde_json::json;
use tg_testkit::process::client;

use crate::world::{Bus, post, up};

async fn slow_readers(bus: Bus) -> Result<()> {
    let (server, _node) = up(bus).await?;
    let url = server.url();
    let values = |name: &str| {
        let rows: String = (0..300).map(|n| format!("{n} ")).collect();
        format!("VALUES ?{name} {{ {rows} }}")
    };
    let (a, b, c) = (values("a"), values("b"), values("c"));
    let endless = json!({
        "workspace": "default", "limit": 0, "batch-size": 1_000, "streaming": true,
        "query": format!("SELECT * {{ {a} {b} {c} }}"),
    });
    let mut readers = Vec::new();
    for _ in 0..8 {
        let response = client()?
            .post(format!("{url}api/v1/flow/default/service/sparql"))
            .header("Accept", "text/event-stream")
            .header("X-Timeout", "600")
            .json(&endless)
            .send()
            .await?;
        // The first bytes, and then nothing.
        let mut stream = response.bytes_stream();
        let first = tokio::time::timeout(Duration::from_secs(20), stream.next()).await?;
        assert!(first.is_some_and(|first| first.is_ok()));
        readers.push(stream);
    }
    // All buffers on the way fill up.
    tokio::time::sleep(Duration::from_secs(3)).await;
    workspace(&url, "other").await?;
    let asked = Instant::now();
    let ask = json!({"workspace": "other", "query": "ASK {}"});
    let (status, answer) = post(&url, "api/v1/flow/default/service/sparql", ask).await?;
    assert_eq!(status, 200, "{answer}");
    assert!(
        asked.elapsed() < Duration::from_secs(2),
        "{:?}",
        asked.elapsed()
    );
    drop(readers);
    Ok(())
}

/// A workspace with a running default flow.
async fn workspace(url: &str, name: &str) -> Result<()> {
    let make = json!({"operation": "create-workspace", "workspace_record": {"id": name}});
    let (status, answer) = post(url, "api/v1/iam", make).await?;
    assert_eq!(status, 200, "{answer}");
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let ask = json!({"workspace": name, "query": "ASK {}"});
        let (status, answer) = post(url, "api/v1/flow/default/service/sparql", ask).await?;
        if status == 200 {
            return Ok(());
        }
        assert!(Instant::now() < end, "{answer}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    slow_readers(Bus::Embedded).await
}

#[tokio::test]
async fn on_rabbitmq() -> Result<()> {
    slow_readers(Bus::Rabbit).await
}
