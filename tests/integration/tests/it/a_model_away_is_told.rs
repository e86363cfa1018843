//! While the model is away, whoever looks is told what is tried again, why, and when next: `tg why`, `tg process-status`
//! and the line of whoever waits.

use std::fs;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use tg_testkit::process::{Launch, bin_dir, free_port, tg};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::time::Instant;

use crate::world::Bus;

/// A record was tried and put aside by then, also on a busy machine.
const BOUND: Duration = Duration::from_secs(60);
/// Whether a text tells why nothing is answered: at first what happened, and while the model rests that it failed.
fn is_told(text: &str) -> bool {
    text.contains("the model provider cannot be reached")
        || text.contains("the model provider failed lately")
}

/// What a command says once it says some text.
async fn until(url: &str, args: &[&str], text: &str) -> Result<String> {
    let end = Instant::now() + BOUND;
    loop {
        let ran = tg(url, args).await?;
        if ran.stdout.contains(text) {
            return Ok(ran.stdout);
        }
        ensure!(Instant::now() < end, "{text} in {ran:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The line of somebody who waits for everything comes, in a pipe, now and then.
async fn the_waiting_line_says_so(url: &str) -> Result<()> {
    let mut waiting = tokio::process::Command::new(bin_dir()?.join("tg"))
        .args(["process-status", "--wait"])
        .env("TRUSTGRAPH_URL", url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let Some(talk) = waiting.stderr.take() else {
        bail!("it does not talk");
    };
    let mut lines = BufReader::new(talk).lines();
    let told = async {
        let mut before = Vec::new();
        while let Some(line) = lines.next_line().await? {
            ensure!(line.chars().count() <= 78, "{line}");
            if line.contains(" again in ") && line.contains("the model provider") {
                return Ok(());
            }
            before.push(line);
        }
        bail!("{before:?}")
    };
    tokio::time::timeout(BOUND, told).await??;
    waiting.kill().await?;
    Ok(())
}

async fn story(bus: Bus) -> Result<()> {
    let nobody = format!("http://127.0.0.1:{}/v1", free_port()?);
    let launch = Launch::up()
        .env("OPENAI_BASE_URL", nobody)
        .env("OPENAI_API_KEY", "sk-test")
        .env("OPENAI_MODEL", "none");
    let broker = bus.broker().await?;
    let launch = launch.over(broker.as_ref());
    let server = launch.ready().await?;
    let url = server.url();
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("lamps.txt");
    fs::write(
        &file,
        "The Harrowgate lantern is a lamp made of blue glass.",
    )?;
    let added = tg(&url, &["add", &file.to_string_lossy()]).await?;
    ensure!(added.code == Some(0), "{added:?}");

    let why = until(&url, &["why", "--json"], "tried again, the next in ").await?;
    ensure!(is_told(&why), "{why}");
    let status = until(&url, &["process-status", "--active"], "tried again, ").await?;
    ensure!(
        is_told(&status) && status.contains("lamps.txt  processing"),
        "{status}"
    );
    the_waiting_line_says_so(&url).await
}

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    story(Bus::Embedded).await
}

#[tokio::test]
async fn on_rabbitmq() -> Result<()> {
    story(Bus::Rabbit).await
}
