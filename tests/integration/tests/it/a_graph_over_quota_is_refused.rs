//! A workspace that writes without end is refused at its quota, what it has can be read and taken out, and a graph
//! that became too large for the process is refused by itself, while the others are served. Without any setting the
//! process has room for what it lets in, also when it starts again.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tg_testkit::process::{Launch, Server, client};
use tg_testkit::rabbitmq::RabbitNode;

use crate::workspaces::{has, literals, make, put};
use crate::world::{Bus, busy, post};

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

async fn count(url: &str, collection: &str) -> Result<(u16, Value)> {
    let query = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }";
    let body = json!({"workspace": "default", "collection": collection, "query": query});
    post(url, "api/v1/flow/default/service/sparql", body).await
}

async fn until(url: &str, collection: &str, wanted: usize) -> Result<()> {
    let wanted = format!("\"{wanted}\"");
    let end = Instant::now() + Duration::from_secs(40);
    loop {
        let (_, answer) = count(url, collection).await?;
        if answer.to_string().contains(&wanted) {
            return Ok(());
        }
        assert!(Instant::now() < end, "{wanted}: {answer}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn dead_letter(url: &str) -> Result<Value> {
    let ask = json!({"operation": "list-put-aside", "workspace": "default", "reason": "dead"});
    Ok(post(url, "api/v1/flow", ask).await?.1)
}

async fn by_its_quota_and_by_the_memory_of_the_process(bus: Bus) -> Result<()> {
    let _busy = busy().await;
    let node = match bus {
        Bus::Embedded => None,
        Bus::Rabbit => Some(RabbitNode::start().await?),
    };
    let dir = tempfile::tempdir()?;
    let launch = || {
        let launch = Launch::up().data(dir.path());
        match &node {
            Some(node) => launch.arg("--bus").arg(node.url()),
            None => launch,
        }
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
    let end = Instant::now() + Duration::from_secs(30);
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

/// What a small machine leaves to a process of all services, and to one of the graph alone.
const ADDRESS_SPACE: u64 = 5 << 29;
const OF_GRAPH: u64 = 3 << 29;
/// Records of eight megabytes that are more than either has room for.
const RECORDS: usize = 80;
/// Collections that they go to in turn.
const COLLECTIONS: usize = 5;
const REFUSED: &str = "of memory for the graphs of one workspace";
/// What is not the graph.
const OTHERS: [&str; 16] = [
    "gateway",
    "config",
    "iam",
    "flow",
    "librarian",
    "knowledge",
    "ingest",
    "rows",
    "vectors",
    "embeddings",
    "llm",
    "prompt",
    "agent",
    "extract",
    "rag",
    "tool",
];

/// Eight megabytes of texts, as one record.
async fn texts(url: &str, record: usize) -> Result<()> {
    let triples: Vec<Value> = (0..40)
        .map(|n| {
            let thing = format!("urn:s:{record}:{n}");
            let text = format!("{record} {n} {}", "lamp ".repeat(40_000));
            json!({"s": {"t": "i", "i": thing}, "p": {"t": "i", "i": "urn:p"}, "o": {"t": "l", "v": text}})
        })
        .collect();
    let collection = format!("c{}", record % COLLECTIONS);
    let metadata = json!({"id": format!("r{record}"), "collection": collection});
    let line = json!({"metadata": metadata, "triples": triples});
    let import = format!("{url}api/v1/flow/default/import/triples?workspace=default");
    let sent = client()?.post(import).body(format!("{line}\n")).send();
    let answer = sent.await?;
    assert!(answer.status().is_success(), "{}", answer.text().await?);
    Ok(())
}

/// Writes until it is refused by who has the graph.
async fn flood(url: &str, graph: &mut Server) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(300);
    let mut records = 0..RECORDS;
    loop {
        if let Some(record) = records.next() {
            texts(url, record).await.with_context(|| graph.log())?;
        }
        let told = dead_letter(url).await.with_context(|| graph.log())?;
        if told.to_string().contains(REFUSED) {
            return Ok(());
        }
        assert!(graph.alive(), "{}", graph.log());
        assert!(Instant::now() < end, "{told}");
    }
}

/// How many triples each collection has, as soon as the graph answers.
async fn counts(url: &str) -> Result<Vec<usize>> {
    let mut counts = Vec::new();
    let end = Instant::now() + Duration::from_secs(60);
    while counts.len() < COLLECTIONS {
        let (_, answer) = count(url, &format!("c{}", counts.len())).await?;
        match number(&answer) {
            Some(count) => counts.push(count),
            None => assert!(Instant::now() < end, "{answer}"),
        }
    }
    Ok(counts)
}

/// Two workspaces that hold little, beside the one that writes without end.
async fn small(url: &str, workspace: &str) -> Result<()> {
    make(url, workspace).await?;
    put(url, workspace, "mine").await?;
    has(url, workspace, &["mine"]).await
}

async fn by_what_the_process_may_take(bus: Bus) -> Result<()> {
    let _busy = busy().await;
    let dir = tempfile::tempdir()?;
    // Over a broker the graph has a process of its own.
    let (node, mut rest) = match bus {
        Bus::Embedded => (None, None),
        Bus::Rabbit => {
            let node = RabbitNode::start().await?;
            let rest = Launch::serve(&OTHERS, &node.url()).spawn().await?;
            (Some(node), Some(rest))
        }
    };
    let graph = || match &node {
        None => Launch::up().address_space(ADDRESS_SPACE),
        Some(node) => Launch::serve(&["graph"], &node.url()).address_space(OF_GRAPH),
    };
    let start = async |rest: Option<&mut Server>| {
        let mut server = graph().data(dir.path()).spawn().await?;
        let gateway = rest.unwrap_or(&mut server);
        gateway.wait_ready().await?;
        let url = gateway.url();
        Ok::<_, anyhow::Error>((server, url))
    };
    let (mut server, url) = start(rest.as_mut()).await?;
    small(&url, "acme").await?;
    flood(&url, &mut server).await?;
    // Others still find room.
    small(&url, "late").await?;
    let held = counts(&url).await?;
    assert!(held.iter().sum::<usize>() > 300, "{held:?}");
    assert!(server.alive());
    server.terminate().await?;

    let (mut server, url) = start(rest.as_mut()).await?;
    let again = counts(&url).await?;
    // What was under way may have come to it.
    let kept = again.iter().zip(&held).all(|(now, then)| now >= then);
    assert!(kept, "{again:?}, {held:?}: {}", server.log());
    for workspace in ["acme", "late"] {
        assert_eq!(literals(&url, workspace).await?, ["mine"]);
    }
    assert!(server.alive());
    Ok(())
}

#[tokio::test]
async fn without_any_setting_on_the_embedded_bus() -> Result<()> {
    by_what_the_process_may_take(Bus::Embedded).await
}

#[tokio::test]
async fn without_any_setting_on_rabbitmq() -> Result<()> {
    by_what_the_process_may_take(Bus::Rabbit).await
}

/// The only number of an answer.
fn number(answer: &Value) -> Option<usize> {
    match answer {
        Value::Object(map) if map.contains_key("v") => map["v"].as_str()?.parse().ok(),
        Value::Object(map) => map.values().find_map(number),
        Value::Array(all) => all.iter().find_map(number),
        _ => None,
    }
}
