//! What tests do with workspaces: make them, fill them, look what is there, close and delete them.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::world::{post, post_within};

/// What these tests wait for comes within this.
const BOUND: Duration = Duration::from_secs(60);
/// A question to a flow is given up and asked again after this: its first one may have met nobody yet.
const ASK_TIMEOUT: Duration = Duration::from_secs(10);

/// Asks until the answer is 200, and not that nobody serves: what serves may just start again.
pub async fn patiently(url: &str, path: &str, ask: Value) -> Result<Value> {
    let end = Instant::now() + BOUND;
    // What changes something is asked once for as long as it takes.
    let patience = match path.contains("/service/") {
        true => ASK_TIMEOUT,
        false => 2 * BOUND,
    };
    loop {
        let (status, told) = post_within(url, path, ask.clone(), patience).await?;
        if status == 200 && told["error"]["type"] != "nobody-serves" {
            return Ok(told);
        }
        ensure!(Instant::now() < end, "{path} {ask}: {status} {told}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// An operation of iam on a workspace.
pub async fn iam(url: &str, operation: &str, id: &str) -> Result<()> {
    let record = json!({"id": id, "enabled": operation != "disable-workspace"});
    let ask = json!({"operation": operation, "workspace_record": record});
    let (status, told) = post(url, "api/v1/iam", ask).await?;
    ensure!(status == 200, "{operation} {id}: {status} {told}");
    Ok(())
}

/// Starts the flow of a workspace, as soon as its flow service is there, and until each of its processors is attached: a
/// start is answered on a busy machine before they are, and once more is nothing new.
pub async fn start(url: &str, id: &str) -> Result<()> {
    start_with(url, id, json!({})).await
}

/// The same with parameters of the flow.
async fn start_with(url: &str, id: &str, parameters: Value) -> Result<()> {
    let start = json!({"operation": "start-flow", "workspace": id, "flow-id": "default",
        "blueprint-name": "everything", "description": "d", "parameters": parameters});
    let end = Instant::now() + 2 * BOUND;
    loop {
        let told = patiently(url, "api/v1/flow", start.clone()).await?;
        // A refusal comes with 200, too.
        let started = told["error"].is_null();
        if started && told["waiting-for"].as_array().is_none_or(Vec::is_empty) {
            return Ok(());
        }
        ensure!(Instant::now() < end, "{id}: {told}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A workspace with a flow.
pub async fn make(url: &str, id: &str) -> Result<()> {
    make_with(url, id, json!({})).await
}

/// The same with parameters of the flow.
pub async fn make_with(url: &str, id: &str, parameters: Value) -> Result<()> {
    iam(url, "create-workspace", id).await?;
    start_with(url, id, parameters).await
}

/// Imports one triple.
pub async fn put(url: &str, id: &str, literal: &str) -> Result<()> {
    let iri = |text: &str| json!({"t": "i", "i": text});
    let triple = json!({"s": iri("urn:a"), "p": iri("urn:b"), "o": {"t": "l", "v": literal}});
    let record = json!({"metadata": {"id": "x", "collection": "default"}, "triples": [triple]});
    let sent = tg_testkit::process::client()?
        .post(format!(
            "{url}api/v1/flow/default/import/triples?workspace={id}"
        ))
        .body(format!("{record}\n"))
        .send()
        .await?;
    ensure!(sent.status().is_success(), "{}", sent.text().await?);
    Ok(())
}

/// The literals of the triples, as soon as the graph answers.
pub async fn literals(url: &str, id: &str) -> Result<Vec<String>> {
    let ask = json!({"workspace": id, "limit": 10});
    let end = Instant::now() + BOUND;
    loop {
        let path = "api/v1/flow/default/service/triples";
        let told = patiently(url, path, ask.clone()).await?;
        if let Some(all) = told["response"]
            .as_array()
            .filter(|_| told["error"].is_null())
        {
            let text = |triple: &Value| triple["o"]["v"].as_str().unwrap_or_default().to_owned();
            return Ok(all.iter().map(text).collect());
        }
        ensure!(Instant::now() < end, "{told}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Waits until the literals are so many.
pub async fn has(url: &str, id: &str, wanted: &[&str]) -> Result<()> {
    let end = Instant::now() + BOUND;
    loop {
        let found = literals(url, id).await?;
        if found == wanted {
            return Ok(());
        }
        ensure!(
            Instant::now() < end,
            "{id}: {found:?} instead of {wanted:?}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Adds a document whose content has a file.
pub async fn add(url: &str, id: &str, document: &str) -> Result<()> {
    // 300,000 bytes of text.
    let content = "YWFh".repeat(100_000);
    let metadata = json!({"id": document, "kind": "text/plain", "title": "t"});
    let ask = json!({"operation": "add-document", "workspace": id,
        "document-metadata": metadata, "content": content});
    patiently(url, "api/v1/librarian", ask).await.map(|_| ())
}

/// Ids of the documents.
pub async fn documents(url: &str, id: &str) -> Result<Vec<String>> {
    let ask = json!({"operation": "list-documents", "workspace": id});
    let told = patiently(url, "api/v1/librarian", ask).await?;
    let all = told["document-metadatas"].as_array();
    let all = all.with_context(|| format!("{told}"))?;
    Ok(all
        .iter()
        .map(|one| one["id"].as_str().unwrap_or_default().to_owned())
        .collect())
}

/// Waits until the gateway knows nothing of a workspace.
pub async fn closed(url: &str, id: &str) -> Result<()> {
    let end = Instant::now() + BOUND;
    let ask = json!({"workspace": id, "limit": 10});
    loop {
        let path = "api/v1/flow/default/service/triples";
        let (status, told) = post(url, path, ask.clone()).await?;
        if status != 200 {
            return Ok(());
        }
        ensure!(Instant::now() < end, "{id} is still served: {told}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Files of the library's contents.
pub fn files(dir: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return 0;
    };
    let count = |entry: std::fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => files(&entry.path()),
        _ => usize::from(
            entry
                .path()
                .components()
                .any(|part| part.as_os_str().to_string_lossy().contains("content")),
        ),
    };
    entries.flatten().map(count).sum()
}
