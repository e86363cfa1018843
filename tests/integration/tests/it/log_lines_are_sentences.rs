//! A record that cannot be handled leaves one line in the log: a sentence, with the ids by which people know what it is about,
//! and nothing as only a programmer reads it.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tg_testkit::process::Server;
use tokio::time::Instant;

use crate::world::{Bus, post, up};

const BOUND: Duration = Duration::from_secs(60);
const SENTENCE: &str = "a record was not handled; it is kept as a dead letter";

/// How Rust shows values to programmers.
const RAW: [&str; 6] = ["Some(", "Error {", "Dead(", "Retry(", "kind: \"", "Err("];

async fn add(server: &Server, id: &str) -> Result<()> {
    let add = json!({"operation": "add-document", "document-metadata": {"id": id,
        "kind": "application/pdf", "title": "bad", "comments": "", "metadata": [], "tags": []},
        "content": STANDARD.encode("Only words.")});
    let process = json!({"operation": "add-processing", "processing-metadata": {"id": format!("{id}/work"),
        "document-id": id, "flow": "default", "collection": "default", "tags": []}});
    for body in [add, process] {
        let (status, told) = post(&server.url(), "api/v1/librarian", body).await?;
        ensure!(
            status == 200 && told.get("error").is_none_or(Value::is_null),
            "{told}"
        );
    }
    Ok(())
}

async fn a_bad_document(bus: Bus) -> Result<()> {
    let _busy = crate::world::busy().await;
    let (server, _node) = up(bus).await?;
    add(&server, "urn:bad:pdf").await?;
    let end = Instant::now() + BOUND;
    while !server.log().contains(SENTENCE) {
        ensure!(Instant::now() < end, "{}", server.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let log = server.log();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains(SENTENCE)).collect();
    ensure!(lines.len() == 1, "{lines:?}");
    let line = lines.first().context("a line")?;
    for key in [
        " WARN ",
        "processor=",
        "workspace=default",
        "flow=default",
        "document=\"urn:bad:pdf\"",
        "record=\"",
        "run=\"",
        "error=bad-request: ",
        "is not a PDF",
    ] {
        ensure!(line.contains(key), "{key} in {line}");
    }
    for raw in RAW {
        ensure!(!log.contains(raw), "{raw} in {log}");
    }
    Ok(())
}

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    a_bad_document(Bus::Embedded).await
}

#[tokio::test]
async fn over_a_broker() -> Result<()> {
    a_bad_document(Bus::Rabbit).await
}
