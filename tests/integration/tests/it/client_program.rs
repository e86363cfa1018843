//! A program that uses the whole of an official client and tells what it found, as one JSON object. It never passes for
//! having found nothing when it could not run or was cut off.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::process::Server;
use tokio::process::Command;

const BOUND: Duration = Duration::from_secs(240);

/// Runs it to its end: nothing is wrong, no method is left out without a reason, and no reason is needless.
pub async fn finds_nothing(program: &mut Command, server: &Server) -> Result<()> {
    let work = program.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = tokio::time::timeout(BOUND, work)
        .await
        .with_context(|| format!("the client did not end\n{}", server.log()))?
        .context("cannot run the client: run the set-up first")?;
    let (text, errors) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    let told: Value = serde_json::from_str(&text).with_context(|| format!("{text}\n{errors}"))?;
    for fault in ["wrong", "unused", "needless"] {
        ensure!(
            told[fault] == json!([]),
            "{fault}: {told:#}\n{}",
            server.log()
        );
    }
    Ok(())
}
