//! An answer that no message can hold is told of at once, with what to do instead; the work is done once.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tg_testkit::process::Server;

use crate::world::{Bus, post, up};

/// More than a message holds, as text.
const DOCUMENT: usize = 13 << 20;
/// A part of an upload.
const PART: usize = 2 << 20;
const SOON: Duration = Duration::from_secs(10);

async fn library(server: &Server, body: Value) -> Result<(u16, Value)> {
    post(&server.url(), "api/v1/librarian", body).await
}

/// Uploads a document of this many bytes.
async fn upload(server: &Server, id: &str, size: usize) -> Result<()> {
    let begun = json!({"operation": "begin-upload", "workspace": "default", "total-size": size,
        "chunk-size": PART, "document-metadata": {"id": id, "kind": "text/plain", "title": id}});
    let (status, begun) = library(server, begun).await?;
    ensure!(status == 200, "{begun}");
    let upload = begun["upload-id"].as_str().context("an id")?.to_owned();
    for (n, start) in (0..size).step_by(PART).enumerate() {
        let content = STANDARD.encode(vec![b'a' + n as u8; PART.min(size - start)]);
        let chunk = json!({"operation": "upload-chunk", "workspace": "default", "upload-id": upload,
            "chunk-index": n, "content": content});
        let (status, told) = library(server, chunk).await?;
        ensure!(status == 200, "{told}");
    }
    let complete =
        json!({"operation": "complete-upload", "workspace": "default", "upload-id": upload});
    let (status, told) = library(server, complete).await?;
    ensure!(status == 200, "{told}");
    Ok(())
}

/// Questions asked again so far.
async fn asked_again(server: &Server) -> Result<String> {
    let text = tg_testkit::process::client()?
        .get(format!("{}metrics", server.url()))
        .send()
        .await?
        .text()
        .await?;
    let line = text
        .lines()
        .find(|line| line.starts_with("tg_questions_asked_again_total"));
    Ok(line.unwrap_or("none").to_owned())
}

/// Fills a config type with more than a message holds.
pub async fn fill(server: &Server, kind: &str, rows: usize) -> Result<()> {
    let value = json!({"name": "large", "description": "x".repeat(1_000_000)}).to_string();
    for n in 0..rows {
        let put = json!({"operation": "put", "workspace": "default",
            "values": [{"type": kind, "key": format!("large-{n}"), "value": value}]});
        let (status, told) = post(&server.url(), "api/v1/config", put).await?;
        ensure!(status == 200, "{told}");
    }
    Ok(())
}

/// The question is answered soon, with an error that says what to do instead.
async fn too_large(server: &Server, path: &str, question: Value, says: &str) -> Result<()> {
    let asked = Instant::now();
    let (status, told) = post(&server.url(), path, question).await?;
    ensure!(asked.elapsed() < SOON, "after {:?}", asked.elapsed());
    let message = told["error"]["message"].as_str().unwrap_or_default();
    let beginning: String = told.to_string().chars().take(300).collect();
    ensure!(
        told["error"]["type"] == "too-large",
        "{status}: {beginning}"
    );
    ensure!(message.contains(says), "{status}: {beginning}");
    Ok(())
}

async fn are_told(bus: Bus) -> Result<()> {
    let (server, _node) = up(bus).await?;
    upload(&server, "urn:large", DOCUMENT).await?;
    fill(&server, "large", 17).await?;
    let before = asked_again(&server).await?;

    // Whole, a document of this size fits into no message.
    let get = json!({"operation": "get-document-content", "workspace": "default", "document-id": "urn:large"});
    too_large(&server, "api/v1/librarian", get, "stream").await?;
    // Neither do seventeen rows of a megabyte.
    let get = json!({"operation": "config", "workspace": "default"});
    too_large(&server, "api/v1/config", get, "16 MiB").await?;

    tokio::time::sleep(Duration::from_secs(2)).await;
    let after = asked_again(&server).await?;
    ensure!(before == after, "asked again: {before}, then {after}");
    Ok(())
}

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    are_told(Bus::Embedded).await
}

#[tokio::test]
async fn over_a_broker() -> Result<()> {
    are_told(Bus::Rabbit).await
}
