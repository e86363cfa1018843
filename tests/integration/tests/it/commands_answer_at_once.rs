//! A command takes no longer than a person notices, with the start of its process.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tg_testkit::process::bin_dir;
use tokio::process::Command;

use crate::world::{Bus, alone, up};

/// Runs of each command; the median counts.
const RUNS: usize = 15;
/// For the build that ships it is 15 ms, which the bench measures; this one is made for debugging.
const AT_MOST: Duration = Duration::from_millis(100);
/// A command that took longer is measured again, so often: others on the machine only ever add to its time.
const ROUNDS: usize = 5;
const COMMANDS: [&[&str]; 7] = [
    &["--help"],
    &["show-flows"],
    &["process-status"],
    &["show-library-documents"],
    &["list-explain-traces"],
    &["list-collections"],
    &["doctor"],
];

async fn took(url: &str, args: &[&str]) -> Result<Duration> {
    let began = Instant::now();
    let ran = Command::new(bin_dir()?.join("tg"))
        .args(args)
        .env("TRUSTGRAPH_URL", url)
        .env("XDG_CONFIG_HOME", "/nowhere")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let ran = tokio::time::timeout(Duration::from_secs(20), ran)
        .await
        .with_context(|| format!("{args:?} does not end"))??;
    let took = began.elapsed();
    ensure!(ran.status.success(), "{args:?}: {ran:?}");
    Ok(took)
}

async fn median(url: &str, args: &[&str]) -> Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..RUNS {
        times.push(took(url, args).await?);
    }
    times.sort();
    println!(
        "{args:?}: {:?}, {:?} to {:?}",
        times[RUNS / 2],
        times[0],
        times[RUNS - 1]
    );
    Ok(times[RUNS / 2])
}

async fn at_once(bus: Bus) -> Result<()> {
    let _alone = alone().await;
    let (server, _node) = up(bus).await?;
    let url = server.url();
    let mut slow = Vec::new();
    for args in COMMANDS {
        let mut best = Duration::MAX;
        for _ in 0..ROUNDS {
            best = best.min(median(&url, args).await?);
            if best <= AT_MOST {
                break;
            }
        }
        if best > AT_MOST {
            slow.push((args, best));
        }
    }
    ensure!(slow.is_empty(), "more than {AT_MOST:?}: {slow:?}");
    Ok(())
}

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    at_once(Bus::Embedded).await
}

#[tokio::test]
async fn on_rabbitmq() -> Result<()> {
    at_once(Bus::Rabbit).await
}
