//! A record that can never be handled becomes a dead letter once, whatever its size; it does not come again by itself, no
//! file grows by it afterwards, it can be replayed, and takes room from nobody else.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::outside::publish;
use tg_testkit::process::{Launch, Server};
use tg_testkit::shared_node::VirtualHost;

use crate::upgrades_lose_nothing as upgrades;
use crate::workspaces::make;
use crate::world::{Bus, post, up};

const SOON: Duration = Duration::from_secs(60);

async fn flow(server: &Server, body: Value) -> Result<Value> {
    let (status, told) = post(&server.url(), "api/v1/flow", body.clone()).await?;
    ensure!(status == 200, "{body}: {status} {told}");
    Ok(told)
}

/// Imports one record of triples of which the last is none: so many literals, of so many bytes each.
pub async fn poison(server: &Server, workspace: &str, bytes: usize) -> Result<()> {
    let iri = |text: &str| json!({"t": "i", "i": text});
    // One thing, however large, is in one record.
    let value = json!({"t": "l", "v": "x".repeat(bytes)});
    let triples = [
        json!({"s": iri("urn:s0"), "p": iri("urn:p"), "o": {"t": "l", "v": "v"}}),
        json!({"s": iri("urn:s"), "p": iri("not an iri"), "o": value}),
    ];
    let record = json!({"metadata": {"id": "x", "collection": "default"}, "triples": triples});
    let url = format!(
        "{}api/v1/flow/default/import/triples?workspace={workspace}",
        server.url()
    );
    let sent = tg_testkit::process::client()?
        .post(url)
        .body(format!("{record}\n"))
        .send();
    let sent = sent.await?;
    ensure!(sent.status().is_success(), "{}", sent.text().await?);
    Ok(())
}

pub async fn listed(server: &Server, workspace: &str) -> Result<Vec<Value>> {
    let list = json!({"operation": "list-put-aside", "workspace": workspace, "limit": "1000"});
    let told = flow(server, list).await?;
    Ok(told["put-aside"].as_array().cloned().unwrap_or_default())
}

pub async fn until(
    server: &Server,
    workspace: &str,
    so: impl Fn(&[Value]) -> bool,
) -> Result<Vec<Value>> {
    let began = Instant::now();
    loop {
        let all = listed(server, workspace).await?;
        if so(&all) {
            return Ok(all);
        }
        ensure!(began.elapsed() < SOON, "{workspace}: {all:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The value of a counter; 0 where it was never counted.
pub async fn counted(server: &Server, name: &str) -> Result<f64> {
    counted_at(&server.url(), name).await
}

/// The same of a process that tells its counters at an address.
pub async fn counted_at(url: &str, name: &str) -> Result<f64> {
    let text = tg_testkit::process::client()?
        .get(format!("{url}metrics"))
        .send()
        .await?
        .text()
        .await?;
    let line = text.lines().find(|line| line.starts_with(name));
    let value = line.and_then(|line| line.rsplit(' ').next());
    value.map_or(Ok(0.0), |value| value.parse().context("a number"))
}

const DEAD: &str = "tg_records_dead_lettered_total{reason=\"dead\"}";

/// Bytes of all files below a directory.
fn on_disk(dir: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(about) if about.is_dir() => on_disk(&entry.path()),
        Ok(about) => about.len(),
        // Gone meanwhile.
        Err(_) => 0,
    };
    entries.map(size).sum()
}

async fn large(bus: Bus) -> Result<()> {
    let (server, _node) = up(bus).await?;
    // From twelve megabytes up to what a record may have.
    for (nth, megabytes) in [(1, 12), (2, 13), (3, 16)] {
        poison(&server, "default", megabytes * 1_000_000).await?;
        let all = until(&server, "default", |all| all.len() == nth).await?;
        ensure!(all.iter().all(|one| one["reason"] == "dead"), "{all:?}");
        let whole = megabytes as i64 * 1_000_000;
        ensure!(
            all.iter().any(|one| one["size"].as_i64() > Some(whole)),
            "whole: {all:?}"
        );
    }
    // Stores copy what was written from their logs in their own time.
    let end = Instant::now() + SOON;
    let before = loop {
        let before = on_disk(server.data());
        tokio::time::sleep(Duration::from_secs(1)).await;
        if on_disk(server.data()) == before {
            break before;
        }
        ensure!(Instant::now() < end, "files grow without end: {before}");
    };
    // They do not come again by themselves, nothing waits, and no file grows by more than a note.
    tokio::time::sleep(Duration::from_secs(6)).await;
    let grown = on_disk(server.data()).saturating_sub(before);
    ensure!(grown < 1 << 20, "{grown} bytes more on {before}");
    let all = listed(&server, "default").await?;
    ensure!(all.len() == 3, "{all:?}");
    ensure!(counted(&server, DEAD).await? == 3.0);
    let why = flow(
        &server,
        json!({"operation": "why", "workspace": "default", "flow-id": "default"}),
    )
    .await?;
    ensure!(!why.to_string().contains("waiting"), "{why}");
    // Somebody brings it back: the same happens, once.
    let id = all[0]["id"].as_str().context("an id")?.to_owned();
    let replay =
        json!({"operation": "replay-put-aside", "workspace": "default", "put-aside-id": id});
    flow(&server, replay).await?;
    let again = until(&server, "default", |now| {
        let came = |one: &Value| all.iter().all(|known| known["id"] != one["id"]);
        now.len() == 3 && now.iter().any(came)
    })
    .await?;
    let same = again.iter().filter(|one| one["size"] == all[0]["size"]);
    ensure!(again.len() == 3 && same.count() == 1, "{again:?}");
    Ok(())
}

#[tokio::test]
async fn however_large_on_the_embedded_bus() -> Result<()> {
    large(Bus::Embedded).await
}

#[tokio::test]
async fn however_large_over_a_broker() -> Result<()> {
    large(Bus::Rabbit).await
}

/// A workspace that fills its room with dead letters loses its own oldest ones.
async fn own_room(bus: Bus) -> Result<()> {
    let node = bus.broker().await?;
    let launch = Launch::up()
        .env("THREADGRAPH_FLOW__DEAD_LETTER_RECORDS", "8")
        .env("THREADGRAPH_FLOW__DEAD_LETTER_MB", "64");
    let launch = launch.over(node.as_ref());
    let server = launch.ready().await?;
    let create = json!({"operation": "create-workspace", "workspace_record": {"id": "acme"}});
    let (status, told) = post(&server.url(), "api/v1/iam", create).await?;
    ensure!(status == 200, "{told}");
    let start = json!({"operation": "start-flow", "workspace": "acme", "flow-id": "default",
        "blueprint-name": "everything", "description": "a test"});
    let began = Instant::now();
    while post(&server.url(), "api/v1/flow", start.clone()).await?.0 != 200 {
        ensure!(began.elapsed() < SOON, "a new workspace starts no flow");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    poison(&server, "default", 10).await?;
    let first = until(&server, "default", |all| all.len() == 1).await?;
    // Half of a workspace's room is a flow's.
    for n in 1..=10 {
        poison(&server, "acme", n * 10).await?;
        let came = counted_at_least(&server, f64::from(n as u32) + 1.0);
        came.await?;
    }
    // A record is counted when it goes to be put aside, and is there a bit later.
    let began = Instant::now();
    loop {
        let evicted = counted(&server, "tg_dead_letters_evicted_total").await?;
        ensure!(
            evicted <= 6.0 && began.elapsed() < SOON,
            "{evicted} evicted"
        );
        if evicted == 6.0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let left = until(&server, "acme", |all| all.len() == 4).await?;
    let sizes: Vec<_> = left.iter().map(|one| one["size"].as_i64()).collect();
    ensure!(sizes.is_sorted(), "the oldest went: {left:?}");
    ensure!(
        listed(&server, "default").await? == first,
        "nothing of another workspace went"
    );
    // With retries gone nothing is in the way of a stop.
    let stop = json!({"operation": "stop-flow", "workspace": "acme", "flow-id": "default", "drain": "park"});
    flow(&server, stop).await?;
    Ok(())
}

async fn counted_at_least(server: &Server, least: f64) -> Result<()> {
    let began = Instant::now();
    while counted(server, DEAD).await? < least {
        ensure!(began.elapsed() < SOON, "{least} records are put aside");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

#[tokio::test]
async fn in_its_own_room_on_the_embedded_bus() -> Result<()> {
    own_room(Bus::Embedded).await
}

#[tokio::test]
async fn in_its_own_room_over_a_broker() -> Result<()> {
    own_room(Bus::Rabbit).await
}

/// A workspace whose room is full of records that are tried again holds back its own ones. Another has records tried
/// again all the same, and its flow stops.
async fn others_retry_and_stop(bus: Bus) -> Result<()> {
    let node = bus.broker().await?;
    let broker = node.as_ref().map(VirtualHost::url);
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    let start = || {
        let launch = Launch::up()
            .data(&data)
            .env("THREADGRAPH_FLOW__DEAD_LETTER_RECORDS", "8");
        match &broker {
            Some(url) => launch.arg("--bus").arg(url),
            None => launch,
        }
        .ready()
    };
    let server = start().await?;
    make(&server.url(), "acme").await?;
    server.terminate().await?;
    // Records of a release whose schema nobody has kept yet: each is tried again.
    let release = upgrades::second()?;
    let of = |workspace: &str, count: usize| -> Result<Vec<_>> {
        let one = |number| upgrades::of_second(&release, workspace, number);
        (0..count).map(one).collect()
    };
    let records = [of("default", 12)?, of("acme", 1)?].concat();
    publish(broker.as_deref(), &data, records).await?;

    let server = start().await?;
    let is = |reason: &'static str, count: usize| {
        move |all: &[Value]| all.iter().filter(|one| one["reason"] == reason).count() >= count
    };
    until(&server, "default", is("retry", 4)).await?;
    let began = Instant::now();
    while counted(&server, "tg_records_held_back_total").await? < 1.0 {
        ensure!(began.elapsed() < SOON, "nothing is held back");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    until(&server, "acme", is("retry", 1)).await?;
    let stop = json!({"operation": "stop-flow", "workspace": "acme", "flow-id": "default", "drain": "park"});
    let asked = Instant::now();
    flow(&server, stop).await?;
    ensure!(asked.elapsed() < SOON, "{:?}", asked.elapsed());
    until(&server, "acme", is("parked", 1)).await?;
    crate::workspaces::start(&server.url(), "acme").await?;
    let replay =
        json!({"operation": "replay-put-aside", "workspace": "acme", "flow-id": "default"});
    flow(&server, replay).await?;
    until(&server, "acme", is("retry", 1)).await?;
    server.terminate().await?;

    // With its schema kept, all of them are handled, without anybody's doing.
    release.keep_schema(&data)?;
    let server = start().await?;
    for (workspace, count) in [("default", 12), ("acme", 1)] {
        let began = Instant::now();
        while upgrades::there(&server, workspace).await?.len() != count {
            ensure!(began.elapsed() < SOON, "{workspace}: {}", server.log());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        until(&server, workspace, |all| all.is_empty()).await?;
    }
    Ok(())
}

#[tokio::test]
async fn and_others_retry_and_stop_on_the_embedded_bus() -> Result<()> {
    others_retry_and_stop(Bus::Embedded).await
}

#[tokio::test]
async fn and_others_retry_and_stop_over_a_broker() -> Result<()> {
    others_retry_and_stop(Bus::Rabbit).await
}
