//! What a command of `tg` takes, with the start of its process.

use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use tg_testkit::process::{LOOKING_AROUND, bin_dir};
use tokio::process::Command;

use crate::BOUND;
use crate::figures::{middle, millis};

/// Runs of each command.
const RUNS: usize = 15;

/// The median of the slowest of them.
pub async fn slowest(url: &str) -> Result<f64> {
    let mut slowest = 0.0_f64;
    for args in LOOKING_AROUND {
        let mut times = Vec::new();
        for _ in 0..RUNS {
            times.push(one(url, args).await?);
        }
        times.sort_by(f64::total_cmp);
        slowest = slowest.max(middle(&times));
    }
    Ok(slowest)
}

async fn one(url: &str, args: &[&str]) -> Result<f64> {
    let begun = Instant::now();
    let ran = Command::new(bin_dir()?.join("tg"))
        .args(args)
        .env("TRUSTGRAPH_URL", url)
        .env("XDG_CONFIG_HOME", "/nowhere")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let ran = tokio::time::timeout(BOUND, ran)
        .await
        .with_context(|| format!("{args:?} does not end"))??;
    let took = millis(begun);
    ensure!(ran.status.success(), "{args:?}: {ran:?}");
    Ok(took)
}
