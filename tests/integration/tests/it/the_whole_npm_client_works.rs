//! The client from npm, unmodified, against a system with users: a program uses every public method and looks at what it
//! gives. A method that it leaves out without a reason is told.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::process::root;
use tokio::process::Command;

use crate::edge::with_keys;
use crate::official_commands::first_key;
use crate::world::{Bus, on_both_buses};

const BOUND: Duration = Duration::from_secs(240);

on_both_buses!(every_method_gives_what_it_says);

async fn every_method_gives_what_it_says(bus: Bus) -> Result<()> {
    let node = bus.broker().await?;
    let server = with_keys().over(node.as_ref()).ready().await?;
    let key = first_key(&server).await?;
    let socket = format!("{}api/socket", server.url().replacen("http", "ws", 1));
    let work = Command::new(root().join(".cache/npm/node"))
        .arg(root().join("tests/integration/clients/npm_whole.mjs"))
        .arg(root().join(".cache/npm/node_modules"))
        .args([socket, key])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(BOUND, work)
        .await
        .with_context(|| format!("the client did not end\n{}", server.log()))?
        .context("cannot run Node.js: run the set-up first")?;
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
