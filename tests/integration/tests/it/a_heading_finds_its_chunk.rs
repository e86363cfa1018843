//! A chunk is found by what stands above it: a heading, the title, the names of a table's columns. What is cited stays word
//! for word what the document says.

use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::process::tg;

use crate::world::{Bus, post, up};

/// Lanterns, each in a section that names it in the heading alone.
const LANTERNS: [(&str, &str); 6] = [
    ("Harrowgate", "Ottoline Frask"),
    ("Pellworth", "Ambrose Tull"),
    ("Corvane", "Edda Marl"),
    ("Brackwater", "Ilse Korvin"),
    ("Nethermoor", "Wilhelmina Dray"),
    ("Tallowby", "Jonas Quist"),
];

/// Sections too long to share a chunk.
fn guide() -> String {
    let mut text = "---\nauthor: nobody\n---\n# A guide to sights\n\nThere are many.\n".to_owned();
    for (at, (place, builder)) in LANTERNS.iter().enumerate() {
        let filler = format!("Visitors of number {at} bring bread, water and a warm coat along. ")
            .repeat(20);
        text.push_str(&format!(
            "\n## {place}\n\nIt was built by {builder}.\n\n{filler}\n"
        ));
    }
    text
}

/// A table of many rows whose first alone has the names.
fn prices() -> String {
    let rows = (0..400).map(|n| format!("{n:03};Werkstra\u{df}e {n};kein Anstrich n\u{f6}tig\n"));
    format!("nummer;anschrift;bemerkung\n{}", rows.collect::<String>())
}

async fn ask(url: &str, question: &str) -> Result<Value> {
    let body = json!({"query": question, "doc-limit": 1, "collection": "guides"});
    let path = "api/v1/flow/default/service/document-rag";
    let (status, answer) = post(url, path, body).await?;
    ensure!(status == 200, "{status}: {answer}");
    Ok(answer)
}

async fn library(url: &str, body: Value) -> Result<Value> {
    Ok(post(url, "api/v1/librarian", body).await?.1)
}

/// The parts of a document, and theirs.
async fn chunks(url: &str, id: &str) -> Result<Vec<Value>> {
    let mut found = Vec::new();
    let mut open = vec![id.to_owned()];
    while let Some(id) = open.pop() {
        let body = json!({"operation": "list-children", "document-id": id});
        let listed = library(url, body).await?;
        let parts = listed["document-metadatas"].as_array().cloned();
        for part in parts.unwrap_or_default() {
            match part["document-type"].as_str() {
                Some("chunk") => found.push(part),
                _ => open.push(part["id"].as_str().unwrap_or_default().to_owned()),
            }
        }
    }
    Ok(found)
}

async fn story(bus: Bus) -> Result<()> {
    let _busy = crate::world::busy().await;
    let (server, _node) = up(bus).await?;
    let url = server.url();
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("guide.md"), guide())?;
    let old: Vec<u8> = prices().chars().map(|c| c as u8).collect();
    fs::write(folder.path().join("adressen.csv"), old)?;
    let directory = folder.path().to_string_lossy();
    let args = ["add", "--wait", "-C", "guides", "--json", &directory];
    let ran = tg(&url, &args).await?;
    ensure!(ran.code == Some(0), "{ran:?}");
    let added: Value = serde_json::from_str(&ran.stdout)?;
    let id = |name: &str| -> Result<String> {
        let documents = added["documents"].as_array().context("documents")?;
        let mut one = documents.iter().filter(|one| {
            one["file"]
                .as_str()
                .is_some_and(|file| file.ends_with(name))
        });
        Ok(one.next().context("the document")?["id"]
            .as_str()
            .unwrap_or_default()
            .to_owned())
    };

    // One chunk may be read: the right one is the nearest although only its heading names it.
    for (place, builder) in LANTERNS {
        let answer = ask(&url, &format!("Who built {place}?")).await?;
        let said = answer["response"].as_str().unwrap_or_default();
        ensure!(said.contains(builder), "{place}: {answer}");
        let cited = answer["citations"][0]["text"].as_str().unwrap_or_default();
        ensure!(
            guide().contains(cited) && cited.contains(builder),
            "{place}: {answer}"
        );
    }
    let parts = chunks(&url, &id("guide.md")?).await?;
    let stands: Vec<&str> = parts
        .iter()
        .filter_map(|part| part["comments"].as_str())
        .collect();
    ensure!(
        stands.contains(&"A guide to sights > Corvane"),
        "{stands:?}"
    );

    // Every chunk of the table is read with the names of its columns.
    let parts = chunks(&url, &id("adressen.csv")?).await?;
    ensure!(parts.len() > 3, "{parts:?}");
    let named = parts
        .iter()
        .filter(|part| part["comments"] == "adressen.csv\nnummer;anschrift;bemerkung")
        .count();
    ensure!(named + 1 == parts.len(), "{parts:?}");
    Ok(())
}

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    story(Bus::Embedded).await
}

#[tokio::test]
async fn on_rabbitmq() -> Result<()> {
    story(Bus::Rabbit).await
}
