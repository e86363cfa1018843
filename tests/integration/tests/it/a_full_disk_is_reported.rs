//! A full disk below the data directory: readiness, `tg doctor`, `tg why` and `tg add` report it, and work goes on once there is
//! room.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tg_testkit::process::{Server, client, tg};
use tokio::time::Instant;

use crate::small_disk::SmallDisk;
use crate::world::{Bus, launched, on_both_buses};

/// What a start needs, and room for a while.
const ROOM: &str = "400m";
const BOUND: Duration = Duration::from_secs(60);

/// Waits until readiness has this status; its body.
async fn ready(server: &Server, wanted: u16) -> Result<Value> {
    let url = format!("{}health/ready", server.url());
    let end = Instant::now() + BOUND;
    loop {
        let reply = client()?.get(&url).send().await?;
        let status = reply.status().as_u16();
        let body: Value = reply.json().await?;
        if status == wanted {
            return Ok(body);
        }
        ensure!(Instant::now() < end, "{status}: {body}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn it_is_seen_until_there_is_room(bus: Bus) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    let disk = SmallDisk::mount(&data, ROOM).await?;
    let (launch, _node) = launched(bus).await?;
    let server = launch.data(&data).ready().await?;
    let url = server.url();
    disk.fill().await?;
    let body = ready(&server, 503).await?;
    ensure!(body["missing"][0] == "the disk is full", "{body}");
    let doctor = tg(&url, &["doctor", "--json"]).await?;
    ensure!(doctor.code != Some(0), "{doctor:?}");
    doctor.expect("the disk below data_dir is full")?;
    let why = tg(&url, &["why", "--json"]).await?;
    why.expect("the disk below data_dir is full")?;
    let path = folder.path().join("bridge.txt");
    std::fs::write(
        &path,
        "The old bridge over the Sell was built in 1429.\n".repeat(4_000),
    )?;
    let path = path.to_string_lossy().into_owned();
    let add = ["add", &path, "--wait", "--timeout", "3"];
    let added = tg(&url, &add).await?;
    let told = format!("{}{}", added.stdout, added.stderr);
    ensure!(
        added.code != Some(0) && told.contains("disk is full"),
        "{told}"
    );
    disk.resize(ROOM).await?;
    let body = ready(&server, 200).await?;
    ensure!(body["missing"] == json!([]), "{body}");
    tg(&url, &["add", &path, "--wait"]).await?.expect("")?;
    Ok(())
}

on_both_buses!(it_is_seen_until_there_is_room);
