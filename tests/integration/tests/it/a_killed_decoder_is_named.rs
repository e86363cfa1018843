//! A decoder that the system kills while it reads a document: the status of the processing names the decoder and the document, and
//! the next document is processed.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tg_testkit::process::Server;
use tokio::process::Command;
use tokio::time::Instant;

use crate::bad_files::pdf;
use crate::world::{Bus, on_both_buses, post, up};

const BOUND: Duration = Duration::from_secs(120);
const LIBRARIAN: &str = "api/v1/librarian";
/// Pages of a document that takes its decoder long.
const PAGES: usize = 4_900;

async fn ask(server: &Server, body: Value) -> Result<Value> {
    let (_, reply) = post(&server.url(), LIBRARIAN, body).await?;
    let fault = reply.get("error").is_some_and(|error| !error.is_null());
    ensure!(!fault, "{reply}");
    Ok(reply)
}

async fn processed(server: &Server, id: &str, content: &[u8]) -> Result<()> {
    let add = json!({"operation": "add-document", "content": STANDARD.encode(content),
        "document-metadata": {"id": id, "kind": "application/pdf", "title": id, "comments": "",
            "metadata": [], "tags": []}});
    ask(server, add).await?;
    let process = json!({"operation": "add-processing", "processing-metadata": {"id": id,
        "document-id": id, "flow": "default", "collection": "default", "tags": []}});
    ask(server, process).await.map(drop)
}

/// The record of a processing that has come to its end.
async fn ended(server: &Server, id: &str) -> Result<Value> {
    let end = Instant::now() + BOUND;
    loop {
        let listed = json!({"operation": "list-processing"});
        let reply = ask(server, listed).await?;
        let mut records = reply["processing-metadatas"]
            .as_array()
            .into_iter()
            .flatten();
        let record = records.find(|record| record["id"] == id);
        let record = record.with_context(|| reply.to_string())?;
        if record["status"] != "processing" {
            return Ok(record.clone());
        }
        ensure!(Instant::now() < end, "{record}\n{}", server.log());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A process of the server's that reads a PDF.
fn decoder(server: u32) -> Result<Option<u32>> {
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // It may end meanwhile.
        let read = |file: &str| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let stat = String::from_utf8_lossy(&read("stat")).into_owned();
        let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
        let parent = behind.split_whitespace().nth(1);
        let own = parent.and_then(|parent| parent.parse::<u32>().ok()) == Some(server);
        let arguments = read("cmdline");
        if own
            && arguments
                .split(|byte| *byte == 0)
                .any(|word| word == b"pdf")
        {
            return Ok(Some(pid));
        }
    }
    Ok(None)
}

async fn the_next_document_is_processed(bus: Bus) -> Result<()> {
    let (server, _node) = up(bus).await?;
    let pages = vec!["One of very many pages of this text."; PAGES];
    processed(&server, "urn:killed", &pdf(&pages, "")).await?;
    let own = server.pid().context("the server runs")?;
    let end = Instant::now() + BOUND;
    let decoder = loop {
        if let Some(decoder) = decoder(own)? {
            break decoder;
        }
        ensure!(Instant::now() < end, "no decoder\n{}", server.log());
        tokio::time::sleep(Duration::from_millis(1)).await;
    };
    let mut kill = Command::new("kill");
    let killed = kill.args(["-9", &decoder.to_string()]).status().await?;
    ensure!(killed.success(), "it was over already");
    let record = ended(&server, "urn:killed").await?;
    let mut errors = record["errors"].as_array().into_iter().flatten();
    let named = errors.any(|error| {
        let message = error["message"].as_str().unwrap_or_default();
        message.contains("the PDF decoder was killed") && message.contains("'urn:killed'")
    });
    ensure!(named, "{record}");
    let text = "The Corvane gauge was calibrated by Ambrose Tull in 1903.";
    processed(&server, "urn:next", &pdf(&[text], "")).await?;
    let next = ended(&server, "urn:next").await?;
    ensure!(next["status"] == "complete", "{next}");
    Ok(())
}

on_both_buses!(the_next_document_is_processed);
