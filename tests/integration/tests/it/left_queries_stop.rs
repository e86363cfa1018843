//! A query whose client went away stops reading: what others ask is answered at once, however long it would have gone
//! on.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tg_testkit::process::client;

use crate::workspaces::patiently;
use crate::world::{Bus, on_both_buses, post, up};

const SCHEMA: &str = r#"{"name": "items", "description": "Items", "fields": [
    {"name": "id", "type": "integer", "primary_key": true}, {"name": "name", "type": "string"}]}"#;
const QUERY: &str = "api/v1/flow/default/service/rows";
/// Rows, in batches of a thousand.
const BATCHES: usize = 60;
/// Letters of a row's name.
const NAME: usize = 40;
/// Times that a query looks through all rows.
const LOOKS: usize = 900;
/// A client waits so long.
const TIMEOUT: Duration = Duration::from_secs(1);
/// A query that goes on takes at least so long: twice what a client waits.
const HEAVY: Duration = Duration::from_secs(2);
/// What others ask is answered within this, however slow the build and busy the machine.
const LIVE: Duration = Duration::from_secs(30);

async fn fill(url: &str) -> Result<()> {
    let schema = json!({"operation": "put", "workspace": "default",
        "values": [{"type": "schema", "key": "items", "value": SCHEMA}]});
    let (status, told) = post(url, "api/v1/config", schema).await?;
    ensure!(status == 200, "{told}");
    until(url, "items { id }", json!({"items": []})).await?;
    let mut lines = String::new();
    for batch in 0..BATCHES {
        let row =
            |n: usize| json!({"id": (batch * 1000 + n).to_string(), "name": "x".repeat(NAME)});
        let values: Vec<Value> = (0..1000).map(row).collect();
        let frame = json!({"metadata": {"id": format!("urn:{batch}"), "collection": "default"},
            "schema_name": "items", "values": values});
        lines += &format!("{frame}\n");
    }
    let import = format!("{url}api/v1/flow/default/import/rows?workspace=default");
    let told: Value = client()?
        .post(import)
        .body(lines)
        .send()
        .await?
        .json()
        .await?;
    ensure!(told["sent"] == BATCHES, "{told}");
    let last = BATCHES * 1000 - 1;
    let query = format!("items(where: {{id: {{eq: {last}}}}}) {{ id }}");
    until(url, &query, json!({"items": [{"id": last}]})).await
}

async fn until(url: &str, query: &str, wanted: Value) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(60);
    let ask = json!({"query": format!("{{ {query} }}"), "collection": "default"});
    loop {
        let told = patiently(url, QUERY, ask.clone()).await?;
        if told["data"] == wanted {
            return Ok(());
        }
        ensure!(Instant::now() < end, "{told}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Looks through all rows again and again: for those whose name is another than everybody's. (Searches inside texts
/// are counted, and 20 of them are the most of a query.)
fn heavy(looks: usize) -> Value {
    let name = "x".repeat(NAME);
    let one = |n| format!("a{n}: items(where: {{name: {{not: \"{name}\"}}}}) {{ id }} ");
    let all: String = (0..looks).map(one).collect();
    json!({"query": format!("{{ {all} }}"), "collection": "default"})
}

async fn left(bus: Bus) -> Result<()> {
    let (server, _node) = up(bus).await?;
    let url = server.url();
    fill(&url).await?;
    let began = Instant::now();
    let (_, told) = post(&url, QUERY, heavy(LOOKS / 10)).await?;
    let last = format!("a{}", LOOKS / 10 - 1);
    let all = told["data"]["a0"] == json!([]) && told["data"][&last] == json!([]);
    ensure!(all && told["errors"].is_null(), "{}", told["errors"][0]);
    let whole = began.elapsed() * 10;
    println!("{bus:?}: {whole:?}");
    ensure!(whole > HEAVY, "it would take {whole:?} only");

    let ask = async || {
        let request = client()?.post(format!("{url}{QUERY}")).timeout(TIMEOUT);
        // Whatever it is called: the client is gone. An answer would be none of that.
        if let Ok(answer) = request.json(&heavy(LOOKS)).send().await {
            let text = answer.text().await?;
            bail!("answered: {:.300}", text);
        }
        Ok(())
    };
    tokio::try_join!(ask(), ask(), ask(), ask())?;
    let asked = Instant::now();
    let light = json!({"query": "{ items(where: {id: {eq: 5}}) { id } }", "collection": "default"});
    let light = tokio::time::timeout(whole, post(&url, QUERY, light)).await;
    let (_, told) = light.context("never")??;
    ensure!(told["data"]["items"][0]["id"] == 5, "{told}");
    let took = asked.elapsed();
    ensure!(
        took < whole / 4,
        "{took:?} behind what would take {whole:?}"
    );
    Ok(())
}

/// Eight million rows, as a stream that is asked to go on without its reader.
async fn begin_and_leave(url: &str) -> Result<()> {
    let ask = json!({"workspace": "default", "limit": 0, "batch-size": 1000,
        "query": "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }"});
    let asked = client()?
        .post(format!("{url}api/v1/flow/default/service/sparql"))
        .header("Accept", "text/event-stream")
        .header("X-Detach", "true")
        .header("X-Timeout", "600")
        .json(&ask);
    let mut answer = asked.send().await?;
    let first = answer.chunk().await?.context("a part")?;
    ensure!(!first.is_empty());
    Ok(())
}

async fn left_in_spite_of_being_detached(bus: Bus) -> Result<()> {
    let (server, _node) = up(bus).await?;
    let url = server.url();
    let triple = |n: usize| json!({"s": {"t": "i", "i": format!("urn:s{n}")}, "p": {"t": "i", "i": "urn:p"}, "o": {"t": "l", "v": "v"}});
    let triples: Vec<Value> = (0..200).map(triple).collect();
    let record = json!({"metadata": {"id": "x", "collection": "default"}, "triples": triples});
    let import = format!("{url}api/v1/flow/default/import/triples?workspace=default");
    let sent = client()?.post(import).body(format!("{record}\n")).send();
    ensure!(sent.await?.status().is_success());
    let end = Instant::now() + Duration::from_secs(30);
    let sparql = async |query: &str| {
        let ask = json!({"workspace": "default", "query": query});
        post(&url, "api/v1/flow/default/service/sparql", ask).await
    };
    while !sparql("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }")
        .await?
        .1
        .to_string()
        .contains("\"200\"")
    {
        ensure!(Instant::now() < end, "nothing was kept");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let leave = || begin_and_leave(&url);
    tokio::try_join!(
        leave(),
        leave(),
        leave(),
        leave(),
        leave(),
        leave(),
        leave(),
        leave()
    )?;
    // Whatever still runs of them, others are served, and soon nothing does.
    let left = Instant::now();
    let live = client()?.get(format!("{url}health/live")).send();
    ensure!(
        tokio::time::timeout(LIVE, live)
            .await??
            .status()
            .is_success()
    );
    let (status, told) = tokio::time::timeout(LIVE, sparql("ASK {}")).await??;
    ensure!(status == 200, "{told}");
    let list = json!({"operation": "list-requests"});
    let (_, told) = post(&url, "api/v1/requests", list).await?;
    ensure!(told["requests"] == json!([]), "{told}");
    println!("{bus:?}: served {:?} after they were left", left.elapsed());
    Ok(())
}

on_both_buses!(left, left_in_spite_of_being_detached);
