//! What a workspace says of its collections and keeps in its library is bounded, listings come in pages, and a
//! chunk that no message carries is refused before anything is sent. Each refusal names what it is about.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::shared::Workspace;
use crate::world::{Bus, launched, on_both_buses};

async fn ask(place: &Workspace, service: &str, ask: Value) -> Result<Value> {
    Ok(place.post(&format!("api/v1/{service}"), ask).await?.1)
}

fn says(reply: &Value, text: &str) -> Result<()> {
    let message = reply["error"]["message"].as_str().unwrap_or_default();
    ensure!(message.contains(text), "{text}: {reply}");
    Ok(())
}

/// Every page of a listing, and how many there were.
async fn pages(place: &Workspace, request: Value, entries: &str) -> Result<(Vec<String>, usize)> {
    let (mut found, mut pages, mut request) = (Vec::new(), 0, request);
    loop {
        let reply = ask(place, "librarian", request.clone()).await?;
        pages += 1;
        let all = reply[entries].as_array();
        for one in all.with_context(|| format!("{reply}"))? {
            found.push(one["id"].as_str().unwrap_or_default().to_owned());
        }
        let Some(next) = reply["next"].as_str() else {
            return Ok((found, pages));
        };
        request["after"] = json!(next);
    }
}

async fn bounds(bus: Bus) -> Result<()> {
    let place = Workspace::shared(bus).await?;
    for (field, value) in [
        ("description", json!("x".repeat(1_040_000))),
        ("name", json!("x".repeat(10_000))),
        ("tags", json!(["x".repeat(10_000)])),
    ] {
        let mut make = json!({"operation": "update-collection", "collection": "c"});
        make[field] = value;
        let refused = ask(&place, "collection-management", make).await?;
        says(&refused, field)?;
    }
    for chunk in [12 << 20, 32 << 20] {
        let begin = json!({"operation": "begin-upload", "total-size": 1 << 30, "chunk-size": chunk,
            "document-metadata": {"id": "urn:up", "kind": "text/plain", "title": "t"}});
        says(&ask(&place, "librarian", begin).await?, "chunk-size: ")?;
    }
    let long = json!({"operation": "add-document", "content": "eA==",
        "document-metadata": {"id": "urn:l", "kind": "text/plain", "comments": "x".repeat(2 << 20)}});
    says(
        &ask(&place, "librarian", long).await?,
        "document-metadata: ",
    )?;

    // More than one message carries, in pages and not as a whole. In words: the official command wraps its text, and takes
    // fifteen seconds for a word of a megabyte.
    let comments = format!("{} ", "x".repeat(49)).repeat(20_000);
    let mut ids = Vec::new();
    for at in 0..17 {
        let id = format!("urn:doc:{at:02}");
        let add = json!({"operation": "add-document", "content": "eA==",
            "document-metadata": {"id": id, "kind": "text/plain", "title": id, "comments": comments}});
        let added = ask(&place, "librarian", add).await?;
        ensure!(added.get("error").is_none(), "{added}");
        ids.push(id);
    }
    let list = json!({"operation": "list-documents"});
    says(&ask(&place, "librarian", list).await?, "limit, after")?;
    let list = json!({"operation": "list-documents", "limit": 1000});
    let (found, count) = pages(&place, list, "document-metadatas").await?;
    ensure!(found == ids && count >= 4, "{found:?} in {count} pages");
    let shown = place.tg(&["show-library-documents", "--json"]).await?;
    let shown: Vec<Value> = serde_json::from_str(&shown.stdout)?;
    ensure!(shown.len() == ids.len(), "{}", shown.len());
    let folder = tempfile::tempdir()?;
    let bundle = folder.path().join("w.tgx");
    let bundle = bundle.to_string_lossy().into_owned();
    let saved = place
        .tg(&["export-workspace", "-o", &bundle, "--json"])
        .await?;
    let counts: Value = serde_json::from_str(&saved.stdout)?;
    ensure!(counts["knowledge"]["documents"] == ids.len(), "{saved:?}");

    // Official clients ask for everything.
    for id in &ids[2..] {
        let gone = json!({"operation": "remove-document", "document-id": id});
        ask(&place, "librarian", gone).await?;
    }
    let theirs = place.official("tg-show-library-documents", &[]).await?;
    theirs.expect("urn:doc:00")?.expect("urn:doc:01")?;
    let odd = json!({"operation": "list-processing", "limit": 5, "after": "x"});
    says(&ask(&place, "librarian", odd).await?, "after: ")
}

async fn a_quota_is_named_before_anything_is_written(bus: Bus) -> Result<()> {
    let (launch, _node) = launched(bus).await?;
    let launch = launch
        .env("THREADGRAPH_LIBRARY__DOCUMENTS", "3")
        .env("THREADGRAPH_LIBRARY__CONTENT_MB", "1");
    let server = launch.ready().await?;
    let place = Workspace::first_of(&server);
    let add = |id: &str, bytes: usize| {
        json!({"operation": "add-document", "content": "eHh4".repeat(bytes / 3),
            "document-metadata": {"id": id, "kind": "text/plain", "title": id}})
    };
    let large = ask(&place, "librarian", add("urn:large", 2 << 20)).await?;
    says(&large, "quota of bytes is 1 MiB")?;
    let begin = json!({"operation": "begin-upload", "total-size": 1 << 30,
        "document-metadata": {"id": "urn:up", "kind": "text/plain", "title": "t"}});
    says(
        &ask(&place, "librarian", begin).await?,
        "quota of bytes is 1 MiB",
    )?;
    for at in 0..3 {
        let added = ask(&place, "librarian", add(&format!("urn:{at}"), 300)).await?;
        ensure!(added.get("error").is_none(), "{added}");
    }
    let fourth = ask(&place, "librarian", add("urn:4", 3)).await?;
    says(&fourth, "quota of documents is 3")?;
    let gone = json!({"operation": "remove-document", "document-id": "urn:0"});
    ask(&place, "librarian", gone).await?;
    let fourth = ask(&place, "librarian", add("urn:4", 3)).await?;
    ensure!(fourth.get("error").is_none(), "{fourth}");
    Ok(())
}

on_both_buses!(bounds, a_quota_is_named_before_anything_is_written);
