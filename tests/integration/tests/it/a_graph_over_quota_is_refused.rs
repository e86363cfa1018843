//! A workspace that writes without end is refused at its quota, what it has can be read and taken out, and a graph
//! that became too large for the process is refused by itself, while the others are served.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tg_testkit::process::{Launch, client};

use crate::world::{Bus, post};

/// Triples of a record.
const EACH: usize = 1_000;

async fn import(url: &str, collection: &str, from: usize, records: usize) -> Result<()> {
    let lines: String = (from..from + records)
        .map(|record| {
            let triples: Vec<Value> = (0..EACH)
                .map(|n| {
                    let thing = format!("urn:s:{collection}:{record}:{n}");
                    json!({"s": {"t": "i", "i": thing}, "p": {"t": "i", "i": "urn:p"}, "o": {"t": "l", "v": "v"}})
                })
                .collect();
            let metadata = json!({"id": format!("r{record}"), "collection": collection});
            format!("{}\n", json!({"metadata": metadata, "triples": triples}))
        })
        .collect();
    let import = format!("{url}api/v1/flow/default/import/triples?workspace=default");
    let answer = client()?.post(import).body(lines).send().await?;
    assert!(answer.status().is_success(), "{}", answer.text().await?);
    Ok(())
}

pub async fn count(url: &str, collection: &str) -> Result<(u16, Value)> {
    let query = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }";
    let body = json!({"workspace": "default", "collection": collection, "query": query});
    post(url, "api/v1/flow/default/service/sparql", body).await
}

async fn until(url: &str, collection: &str, wanted: usize) -> Result<()> {
    let wanted = format!("\"{wanted}\"");
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let (_, answer) = count(url, collection).await?;
        if answer.to_string().contains(&wanted) {
            return Ok(());
        }
        assert!(Instant::now() < end, "{wanted}: {answer}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

pub async fn dead_letter(url: &str) -> Result<Value> {
    let ask = json!({"operation": "list-put-aside", "workspace": "default", "reason": "dead"});
    Ok(post(url, "api/v1/flow", ask).await?.1)
}

async fn by_its_quota_and_by_the_memory_of_the_process(bus: Bus) -> Result<()> {
    let node = bus.broker().await?;
    let dir = tempfile::tempdir()?;
    let launch = || {
        let launch = Launch::up().data(dir.path());
        launch.over(node.as_ref())
    };
    let mut server = launch()
        .env("THREADGRAPH_GRAPH__WORKSPACE_QUADS", "20000")
        .ready()
        .await?;
    let url = server.url();
    import(&url, "default", 0, 15).await?;
    until(&url, "default", 15 * EACH).await?;
    import(&url, "other", 100, 2).await?;
    until(&url, "other", 2 * EACH).await?;
    // One more thing than there is room for, three times over.
    import(&url, "default", 15, 12).await?;
    let end = Instant::now() + Duration::from_secs(60);
    let told = loop {
        let told = dead_letter(&url).await?.to_string();
        if told.contains("at most 20000 quads") {
            break told;
        }
        assert!(Instant::now() < end, "{told}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    assert!(server.alive() && !told.contains("sqlite"), "{told}");
    let (status, answer) = count(&url, "default").await?;
    assert_eq!(status, 200);
    let held = number(&answer).context("a number")?;
    assert!((15 * EACH..=18 * EACH).contains(&held), "{held}");
    server.terminate().await?;

    // With less memory than the larger graph needs, only that one is refused.
    let mut server = launch()
        .env("THREADGRAPH_GRAPH__MEMORY_MB", "2")
        .ready()
        .await?;
    let url = server.url();
    for _ in 0..3 {
        let (_, answer) = count(&url, "default").await?;
        assert!(answer.to_string().contains("memory for graphs"), "{answer}");
    }
    until(&url, "other", 2 * EACH).await?;
    assert!(server.alive());
    Ok(())
}

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    by_its_quota_and_by_the_memory_of_the_process(Bus::Embedded).await
}

#[tokio::test]
async fn on_rabbitmq() -> Result<()> {
    by_its_quota_and_by_the_memory_of_the_process(Bus::Rabbit).await
}

/// The only number of an answer.
pub fn number(answer: &Value) -> Option<usize> {
    match answer {
        Value::Object(map) if map.contains_key("v") => map["v"].as_str()?.parse().ok(),
        Value::Object(map) => map.values().find_map(number),
        Value::Array(all) => all.iter().find_map(number),
        _ => None,
    }
}
