//! A content file that a loss of power left short is told as what it is, and adding the same content again mends
//! it, for every document that has it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tg_testkit::process::Server;

use crate::world::{Bus, post, up};

/// Large enough to be in a file.
fn content() -> String {
    STANDARD.encode("All of it is one and the same. ".repeat(4000))
}

async fn library(server: &Server, mut ask: Value) -> Result<Value> {
    ask["workspace"] = json!("default");
    Ok(post(&server.url(), "api/v1/librarian", ask).await?.1)
}

async fn add(server: &Server, id: &str) -> Result<()> {
    let add = json!({"operation": "add-document", "content": content(),
        "document-metadata": {"id": id, "kind": "text/plain", "title": id}});
    let added = library(server, add).await?;
    ensure!(added.get("error").is_none(), "{added}");
    Ok(())
}

/// Files of content: named by a hash, without its first two digits.
fn files(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else if path.file_name().is_some_and(|name| name.len() == 62) {
            found.push(path);
        }
    }
    Ok(found)
}

async fn by_adding_it_again(bus: Bus) -> Result<()> {
    let (server, _node) = up(bus).await?;
    add(&server, "urn:doc:first").await?;
    let files = files(server.data())?;
    let [file] = files.as_slice() else {
        anyhow::bail!("one file, not {files:?}");
    };
    let whole = std::fs::read(file)?;
    let half = whole.get(..whole.len() / 2).context("half of it")?;
    let mut wrong = whole.clone();
    wrong[7] ^= 1;
    let get = |id: &str| json!({"operation": "get-document-content", "document-id": id});
    for (at, torn) in [b"".as_slice(), half, &wrong].into_iter().enumerate() {
        std::fs::write(file, torn)?;
        let told = library(&server, get("urn:doc:first")).await?;
        let message = told["error"]["message"].as_str().unwrap_or_default();
        ensure!(message.contains("content is damaged"), "{told}");
        // No path, no name of a file.
        ensure!(!message.contains('/'), "{told}");
        let other = format!("urn:doc:other-{at}");
        add(&server, &other).await?;
        for id in ["urn:doc:first", other.as_str()] {
            let read = library(&server, get(id)).await?;
            ensure!(read["content"] == content(), "{id}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    by_adding_it_again(Bus::Embedded).await
}

#[tokio::test]
async fn on_rabbitmq() -> Result<()> {
    by_adding_it_again(Bus::Rabbit).await
}
