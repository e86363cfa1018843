//! A query whose client went away stops reading: what others ask is answered at once, however long it would have gone
//! on.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tg_testkit::process::client;

use crate::workspaces::patiently;
use crate::world::{Bus, post, up};

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
    ensure!(told["stored"] == BATCHES, "{told}");
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

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    left(Bus::Embedded).await
}

#[tokio::test]
async fn on_rabbitmq() -> Result<()> {
    left(Bus::Rabbit).await
}
