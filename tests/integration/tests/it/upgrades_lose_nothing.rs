//! What was dead-lettered or parked under a release before outlives two upgrades: records that wait carry the schema of
//! their writer, which the configuration keeps, so that a later release reads them. A flow that ran goes on with what waits in it.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_bus::Envelope;
use tg_schemas::codec::ContentType;
use tg_schemas::msg::Triples;
use tg_schemas::{Headers, Message, Topic};
use tg_testkit::outside::{Release, Sent, publish};
use tg_testkit::process::{Launch, Server};
use tg_testkit::shared_node::VirtualHost;

use crate::world::{Bus, on_both_buses, post};

/// Records of each release.
const COUNT: usize = 12;
const BOUND: Duration = Duration::from_secs(60);
const FLOW: &str = "default";

/// The release before the one before: records had no `root` in their metadata.
fn first() -> Result<Release> {
    let mut schema: Value = serde_json::from_str(Triples::AVRO)?;
    let metadata = schema
        .pointer_mut("/fields/0/type/1/fields")
        .and_then(Value::as_array_mut);
    let fields = metadata.context("metadata first")?;
    let before = fields.len();
    fields.retain(|field| field["name"] != "root");
    ensure!(fields.len() + 1 == before, "no root");
    Release::new(schema.to_string())
}

/// The release before: records had a region, which this one does not know.
pub fn second() -> Result<Release> {
    let mut schema: Value = serde_json::from_str(Triples::AVRO)?;
    let fields = schema["fields"].as_array_mut().context("fields")?;
    fields.insert(
        0,
        json!({"name": "region", "type": "string", "default": ""}),
    );
    Release::new(schema.to_string())
}

/// A body of this release, without its mark: metadata with id `x` in collection `default`, and one triple.
fn body(name: &str, number: usize) -> Result<Vec<u8>> {
    let iri = |text: String| json!({"type": "i", "iri": text});
    let record: Triples = serde_json::from_value(json!({
        "metadata": {"id": "x", "root": "", "collection": "default"},
        "triples": [{
            "s": iri(format!("urn:{name}:{number}")), "p": iri("urn:p".to_owned()),
            "o": {"type": "l", "value": name},
        }],
    }))?;
    Ok(tg_schemas::codec::encode(&record, ContentType::Avro)?[10..].to_vec())
}

/// A record of the flow, in the words of a release.
fn sent(workspace: &str, body: Vec<u8>, headers: Headers) -> Result<Sent> {
    let envelope = Envelope {
        headers: Arc::new(headers),
        content_type: ContentType::Avro,
        body: body.into(),
        ..Envelope::default()
    };
    let topic = format!("flow:tg:triples-store:{workspace}:{FLOW}");
    Ok((Topic::parse(&topic)?, envelope))
}

/// A record of the release before that.
fn of_first(release: &Release, number: usize, headers: Headers) -> Result<Sent> {
    // Union index of metadata, id, root, and what follows.
    let mut fields = body("first", number)?;
    ensure!(fields[..4] == [2, 2, b'x', 0], "{fields:?}");
    fields.remove(3);
    sent("default", release.body(&fields), headers)
}

/// A record of the release before.
pub fn of_second(release: &Release, workspace: &str, number: usize) -> Result<Sent> {
    let fields = [b"\x04eu".to_vec(), body("second", number)?].concat();
    sent(workspace, release.body(&fields), Headers::default())
}

async fn flow(server: &Server, mut ask: Value) -> Result<Value> {
    ask["workspace"] = json!("default");
    let (status, told) = post(&server.url(), "api/v1/flow", ask.clone()).await?;
    ensure!(status == 200 && told["error"].is_null(), "{ask}: {told}");
    Ok(told)
}

/// How many of those that write triples could not take become dead letters for a reason.
async fn aside(server: &Server, reason: &str) -> Result<usize> {
    let list = json!({"operation": "list-put-aside", "limit": "1000"});
    let told = flow(server, list).await?;
    let all = told["put-aside"].as_array().into_iter().flatten();
    let writer = |one: &Value| {
        let of = one["subscription"].as_str();
        of.is_some_and(|of| of.starts_with("triples-write"))
    };
    Ok(all
        .filter(|one| one["reason"] == reason && writer(one))
        .count())
}

async fn until_aside(server: &Server, reason: &str, count: usize) -> Result<()> {
    let end = Instant::now() + BOUND;
    loop {
        let now = aside(server, reason).await?;
        if now == count {
            return Ok(());
        }
        ensure!(
            Instant::now() < end,
            "{now} of {count} are {reason}\n{}",
            server.log()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The names and numbers of the triples that are there, in order.
pub async fn there(server: &Server, workspace: &str) -> Result<Vec<String>> {
    let ask = json!({"workspace": workspace, "p": {"t": "i", "i": "urn:p"}, "limit": 1000});
    let path = "api/v1/flow/default/service/triples";
    let (_, body) = post(&server.url(), path, ask).await?;
    let all = body["response"].as_array().into_iter().flatten();
    let mut all: Vec<String> = all
        .filter_map(|triple| Some(triple["s"]["i"].as_str()?.to_owned()))
        .collect();
    all.sort();
    Ok(all)
}

async fn two_upgrades(bus: Bus) -> Result<()> {
    let node = bus.broker().await?;
    let broker = node.as_ref().map(VirtualHost::url);
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    let start = || launched(&data, broker.as_deref()).ready();
    start().await?.terminate().await?;

    // The first release ran here: its schema is kept, and its records are of a flow's start of its time. One of the
    // second writes already, whose schema nobody has kept.
    let (first, second) = (first()?, second()?);
    first.keep_schema(&data)?;
    let mut records = Vec::new();
    for number in 0..COUNT {
        let before = Headers {
            epoch: Some(u64::MAX >> 12),
            ..Headers::default()
        };
        records.push(of_first(&first, number, before)?);
        records.push(of_second(&second, "default", number)?);
    }
    publish(broker.as_deref(), &data, records).await?;

    // The first upgrade: what it cannot take becomes a dead letter, and parked when the flow stops.
    let server = start().await?;
    until_aside(&server, "stale", COUNT).await?;
    until_aside(&server, "retry", COUNT).await?;
    ensure!(there(&server, "default").await?.is_empty());
    let stop = json!({"operation": "stop-flow", "flow-id": FLOW, "drain": "park"});
    flow(&server, stop).await?;
    until_aside(&server, "parked", COUNT).await?;
    until_aside(&server, "stale", COUNT).await?;
    server.terminate().await?;

    // The second, of a release that keeps its schema. Nothing happens by itself: the flow does not run.
    second.keep_schema(&data)?;
    let server = start_without_flow(&data, broker.as_deref()).await?;
    until_aside(&server, "parked", COUNT).await?;
    until_aside(&server, "stale", COUNT).await?;
    let again = json!({"operation": "start-flow", "flow-id": FLOW, "blueprint-name": "everything",
        "description": "d"});
    flow(&server, again).await?;
    let replay = json!({"operation": "replay-put-aside", "flow-id": FLOW, "limit": "1000"});
    flow(&server, replay).await?;
    let mut wanted: Vec<String> = (0..COUNT)
        .flat_map(|number| {
            [
                format!("urn:first:{number}"),
                format!("urn:second:{number}"),
            ]
        })
        .collect();
    wanted.sort();
    until_there(&server, &wanted).await
}

/// All these triples are there in the end, and nothing is put aside.
async fn until_there(server: &Server, wanted: &[String]) -> Result<()> {
    let end = Instant::now() + BOUND;
    while there(server, "default").await? != wanted {
        ensure!(
            Instant::now() < end,
            "{:?}\n{}",
            there(server, "default").await?,
            server.log()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    for reason in ["retry", "parked", "stale", "dead"] {
        ensure!(aside(server, reason).await? == 0, "{reason}");
    }
    Ok(())
}

/// A flow runs when its process is killed, and records of an older release wait in it: this release goes on with them. There is no
/// older program yet, so this one is what is killed.
async fn what_waits_in_a_running_flow_is_gone_on_with(bus: Bus) -> Result<()> {
    let node = bus.broker().await?;
    let broker = node.as_ref().map(VirtualHost::url);
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    let start = || launched(&data, broker.as_deref()).ready();
    start().await?.kill9().await?;
    let first = first()?;
    first.keep_schema(&data)?;
    let records = (0..COUNT).map(|number| of_first(&first, number, Headers::default()));
    let records = records.collect::<Result<Vec<_>>>()?;
    publish(broker.as_deref(), &data, records).await?;
    let server = start().await?;
    let mut wanted: Vec<String> = (0..COUNT).map(|n| format!("urn:first:{n}")).collect();
    wanted.sort();
    until_there(&server, &wanted).await
}

fn launched(data: &Path, broker: Option<&str>) -> Launch {
    let launch = Launch::up().data(data);
    match broker {
        Some(url) => launch.arg("--bus").arg(url),
        None => launch,
    }
}

/// Ready is who serves the default flow, which is stopped here: the flow service must answer.
async fn start_without_flow(data: &Path, broker: Option<&str>) -> Result<Server> {
    let server = launched(data, broker).spawn().await?;
    let end = Instant::now() + BOUND;
    let list = json!({"operation": "list-put-aside", "workspace": "default"});
    loop {
        let told = post(&server.url(), "api/v1/flow", list.clone()).await;
        if told.is_ok_and(|(status, told)| status == 200 && told["error"].is_null()) {
            return Ok(server);
        }
        ensure!(Instant::now() < end, "{}", server.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    two_upgrades(Bus::Embedded).await
}

#[tokio::test]
async fn on_rabbitmq() -> Result<()> {
    two_upgrades(Bus::Rabbit).await
}

on_both_buses!(what_waits_in_a_running_flow_is_gone_on_with);
