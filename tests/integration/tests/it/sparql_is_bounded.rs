//! A query that needs more memory than a query may use is answered so, and harms nobody: the process has little
//! address space, so one that took more would end.

use anyhow::Result;
use serde_json::{Value, json};
use tg_testkit::process::{Launch, Server, client};
use tg_testkit::shared_node::VirtualHost;

use crate::world::{Bus, post};

/// Enough for the process, its threads and what a query may use; not for what these queries ask for.
const ADDRESS_SPACE: u64 = 6 << 30;

async fn small(bus: Bus) -> Result<(Server, Option<VirtualHost>)> {
    let launch = Launch::up().address_space(ADDRESS_SPACE);
    let node = bus.broker().await?;
    let launch = launch.over(node.as_ref());
    Ok((launch.ready().await?, node))
}

async fn sparql(url: &str, query: &str) -> Result<(u16, Value)> {
    let body = json!({"workspace": "default", "query": query, "limit": 10});
    post(url, "api/v1/flow/default/service/sparql", body).await
}

/// Each text is the one before, twice: eight gigabytes after 33 steps.
fn doubled(call: &str) -> String {
    let steps: String = (0..33)
        .map(|n| {
            format!(
                "BIND({} AS ?v{}) ",
                call.replace('#', &format!("?v{n}")),
                n + 1
            )
        })
        .collect();
    format!("SELECT (STRLEN(?v33) AS ?n) {{ BIND(\"x\" AS ?v0) {steps} }}")
}

async fn bounded(bus: Bus) -> Result<()> {
    let (mut server, _node) = small(bus).await?;
    let url = server.url();
    let lines: String = (0..300)
        .map(|n| {
            let triple = json!({"s": {"t": "i", "i": format!("urn:s{n}")}, "p": {"t": "i", "i": "urn:p"},
                                "o": {"t": "l", "v": "v"}});
            format!("{}\n", json!({"metadata": {"id": "x", "collection": "default"}, "triples": [triple]}))
        })
        .collect();
    let import = format!("{url}api/v1/flow/default/import/triples?workspace=default");
    client()?.post(import).body(lines).send().await?;
    let all = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }";
    let end = tokio::time::Instant::now() + std::time::Duration::from_secs(60);
    loop {
        let (_, answer) = sparql(&url, all).await?;
        if answer.to_string().contains("\"300\"") {
            break;
        }
        assert!(tokio::time::Instant::now() < end, "imported: {answer}");
    }
    for query in [
        doubled("CONCAT(#, #)"),
        doubled("REPLACE(#, '.+', '$0$0')"),
        "SELECT * {?a ?b ?c . ?d ?e ?f . ?g ?h ?i} ORDER BY ?a".to_owned(),
        "SELECT DISTINCT * {?a ?b ?c . ?d ?e ?f . ?g ?h ?i} OFFSET 20000000".to_owned(),
    ] {
        let began = std::time::Instant::now();
        let (status, answer) = sparql(&url, &query).await?;
        let text = answer.to_string();
        assert!(server.alive(), "{query}: {}", server.log());
        assert!(
            text.contains(" memory ") && text.contains(" MiB)"),
            "{query}: {status} {text}"
        );
        println!("{:?} {text}", began.elapsed());
        let (status, answer) = sparql(&url, all).await?;
        assert_eq!(status, 200);
        assert!(answer.to_string().contains("\"300\""), "{answer}");
    }
    Ok(())
}

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    bounded(Bus::Embedded).await
}

#[tokio::test]
async fn on_rabbitmq() -> Result<()> {
    bounded(Bus::Rabbit).await
}
