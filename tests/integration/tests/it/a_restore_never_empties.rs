//! A bundle of a workspace goes back into the same workspace, as often as one likes, in whole or cut off anywhere:
//! afterwards everything answers as before.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tg_testkit::process::{Output, Server, tg};
use tg_testkit::shared_node::VirtualHost;
use tokio::time::Instant;

use crate::world::{Bus, on_both_buses, post, up};

/// Small documents are processed by then, also on a busy machine.
const BOUND: Duration = Duration::from_secs(90);

const LAMP: &str = "The Fernhollow lamp is a lamp made of green glass. The Fernhollow lamp was built by Ada \
    Brisk in 1891. The lamp hangs in the hall of the Tarn museum.\n";
const BRIDGE: &str = "The Oxmoor bridge is a bridge made of stone. The Oxmoor bridge was built by Tobias Kell \
    in 1799. It crosses the river Lune.\n";

async fn library(url: &str, mut ask: Value) -> Result<Value> {
    ask["workspace"] = json!("default");
    Ok(post(url, "api/v1/librarian", ask).await?.1)
}

async fn processings(url: &str) -> Result<Vec<Value>> {
    let reply = library(url, json!({"operation": "list-processing"})).await?;
    let all = reply["processing-metadatas"].as_array();
    Ok(all.with_context(|| format!("{reply}"))?.clone())
}

/// Waits until everything that is processed has come to its end.
async fn settled(url: &str) -> Result<()> {
    let end = Instant::now() + BOUND;
    loop {
        let all = processings(url).await?;
        if all.iter().all(|one| one["status"] != "processing") {
            ensure!(all.iter().all(|one| one["status"] == "complete"), "{all:?}");
            return Ok(());
        }
        ensure!(Instant::now() < end, "{all:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn triples(url: &str) -> Result<usize> {
    let ask = json!({"workspace": "default", "collection": "default", "limit": 10_000});
    let (_, reply) = post(url, "api/v1/flow/default/service/triples", ask).await?;
    let all = reply["response"].as_array();
    Ok(all.with_context(|| format!("{reply}"))?.len())
}

/// Both documents answer, and there is as much in the graph and in the library as before.
async fn answers(url: &str, before: &Before) -> Result<()> {
    for (question, answer) in [
        ("Who built the Fernhollow lamp?", "Ada Brisk"),
        ("Who built the Oxmoor bridge?", "Tobias Kell"),
    ] {
        let asked = tg(url, &["invoke-document-rag", "-q", question]).await?;
        asked.expect(answer)?;
    }
    let now = before_of(url).await?;
    ensure!(now.documents >= before.documents, "{now:?}, {before:?}");
    ensure!(now.triples >= before.triples, "{now:?}, {before:?}");
    ensure!(now.processings >= before.processings, "{now:?}, {before:?}");
    Ok(())
}

#[derive(Debug)]
struct Before {
    documents: usize,
    triples: usize,
    processings: usize,
}

async fn before_of(url: &str) -> Result<Before> {
    let ask = json!({"operation": "list-documents", "include-children": true});
    let reply = library(url, ask).await?;
    let documents = reply["document-metadatas"].as_array().into_iter().flatten();
    // Every answer leaves a trace; those are none of what is counted.
    let documents = documents.filter(|one| one["document-type"] != "answer");
    Ok(Before {
        documents: documents.count(),
        triples: triples(url).await?,
        processings: processings(url).await?.len(),
    })
}

/// A system, and a folder for bundles.
type Workspace = ((Server, Option<VirtualHost>), tempfile::TempDir);

on_both_buses!(
    over_what_is_there,
    over_what_was_changed_and_processed,
    a_document_that_cannot_be_processed_holds_up_no_other,
);

/// Two documents, processed.
async fn workspace(bus: Bus) -> Result<Workspace> {
    let (server, node) = up(bus).await?;
    let url = server.url();
    for (id, text) in [("urn:doc:lamp", LAMP), ("urn:doc:bridge", BRIDGE)] {
        let document = json!({"id": id, "kind": "text/plain", "title": id});
        let add = json!({"operation": "add-document", "document-metadata": document,
            "content": STANDARD.encode(text)});
        library(&url, add).await?;
        let start = ["start-library-processing", "-d", id, "--id", id, "--wait"];
        let started = tg(&url, &start).await?;
        ensure!(started.code == Some(0), "{started:?}");
    }
    Ok(((server, node), tempfile::tempdir()?))
}

fn ended(output: &Output, code: i32) -> Result<()> {
    ensure!(output.code == Some(code), "{output:?}");
    Ok(())
}

async fn over_what_is_there(bus: Bus) -> Result<()> {
    let ((server, _node), folder) = workspace(bus).await?;
    let url = server.url();
    let bundle = folder.path().join("w.tgx").to_string_lossy().into_owned();
    let before = before_of(&url).await?;
    ended(&tg(&url, &["export-workspace", "-o", &bundle]).await?, 0)?;

    let restore = ["import-workspace", "-i", &bundle, "--overwrite"];
    for _ in 0..2 {
        let restored = tg(&url, &restore).await?;
        ended(&restored, 0)?;
        restored.expect(" documents (0 skipped)")?;
        // What a removal took back would be gone by then.
        tokio::time::sleep(Duration::from_millis(500)).await;
        settled(&url).await?;
        answers(&url, &before).await?;
    }

    // What was changed since is as in the bundle again, also where it is processed.
    change(&url, "urn:doc:lamp", "Nothing of it.").await?;
    let restored = tg(&url, &[&restore[..], &["--process"]].concat()).await?;
    ended(&restored, 0)?;
    restored.expect("Processing of 2 documents started (0 before, 0 not started).")?;
    settled(&url).await?;
    answers(&url, &before).await?;
    let content = json!({"operation": "get-document-content", "document-id": "urn:doc:lamp"});
    let content = library(&url, content).await?;
    ensure!(content["content"] == STANDARD.encode(LAMP), "{content}");
    Ok(())
}

/// Another content of a document, in its place.
async fn change(url: &str, id: &str, text: &str) -> Result<()> {
    let other = json!({"operation": "update-document", "content": STANDARD.encode(text),
        "document-metadata": {"id": id, "kind": "text/plain", "title": id}});
    let reply = library(url, other).await?;
    ensure!(reply.get("error").is_none(), "{reply}");
    Ok(())
}

/// What was changed and processed since is told, and processed again if that is asked for, as often as it happens.
async fn over_what_was_changed_and_processed(bus: Bus) -> Result<()> {
    let ((server, _node), folder) = workspace(bus).await?;
    let url = server.url();
    let bundle = folder.path().join("w.tgx").to_string_lossy().into_owned();
    let before = before_of(&url).await?;
    ended(&tg(&url, &["export-workspace", "-o", &bundle]).await?, 0)?;
    let restore = ["import-workspace", "-i", &bundle, "--overwrite"];
    let question = [
        "invoke-document-rag",
        "-q",
        "Who built the Fernhollow lamp?",
    ];
    for (round, started) in [("first", (2, 0)), ("second", (1, 1))] {
        change(
            &url,
            "urn:doc:lamp",
            "The Fernhollow lamp was built by Nora Vane in 1902.",
        )
        .await?;
        let id = format!("{round} change");
        let process = [
            "start-library-processing",
            "-d",
            "urn:doc:lamp",
            "--id",
            &id,
            "--wait",
        ];
        ended(&tg(&url, &process).await?, 0)?;
        tg(&url, &question).await?.expect("Nora Vane")?;

        if round == "first" {
            let told = tg(&url, &restore).await?;
            ended(&told, 0)?;
            let sentence = "1 documents have other content than what was processed from them; \
                --process processes them again: urn:doc:lamp";
            ensure!(told.stderr.contains(sentence), "{told:?}");
            // Told is what the command exchanged itself.
            let told = tg(&url, &[&restore[..], &["--json"]].concat()).await?;
            ensure!(!told.stdout.contains("to-process"), "{told:?}");
        }
        let known = processings(&url).await?.len();
        let restored = tg(&url, &[&restore[..], &["--process"]].concat()).await?;
        ended(&restored, 0)?;
        let (started, before_it) = started;
        let documents = if started == 1 {
            "document"
        } else {
            "documents"
        };
        restored.expect(&format!(
            "Processing of {started} {documents} started ({before_it} before, 0 not started)."
        ))?;
        // In the second round too, whose content was processed before, maybe within the same second.
        let now = processings(&url).await?.len();
        ensure!(now == known + started, "{known}, then {now}");
        settled(&url).await?;
        answers(&url, &before).await?;
        tg(&url, &question).await?.refuse("Nora Vane")?;
    }
    Ok(())
}

async fn a_document_that_cannot_be_processed_holds_up_no_other(bus: Bus) -> Result<()> {
    let ((from, _node), folder) = workspace(bus).await?;
    let url = from.url();
    let bundle = folder.path().join("w.tgx").to_string_lossy().into_owned();
    // Large enough to be uploaded in parts; and one whose name is no IRI, in the middle of the others.
    let large = "All of it is one and the same. ".repeat(90_000);
    for (id, text) in [("policy", "Be kind."), ("urn:doc:zlarge", large.as_str())] {
        let add = json!({"operation": "add-document", "content": STANDARD.encode(text),
            "document-metadata": {"id": id, "kind": "text/plain", "title": id}});
        library(&url, add).await?;
    }
    ended(&tg(&url, &["export-workspace", "-o", &bundle]).await?, 0)?;
    let before = before_of(&url).await?;

    let (to, _other_node) = up(bus).await?;
    let url = to.url();
    let restore = ["import-workspace", "-i", &bundle, "--process"];
    let restored = tg(&url, &restore).await?;
    ended(&restored, 1)?;
    restored.expect("Processing of 3 documents started (0 before, 1 not started).")?;
    let told = &restored.stderr;
    ensure!(told.contains("policy is not processed: "), "{restored:?}");
    // Once more goes on: what was started is done, what cannot be started is told again.
    let again = tg(&url, &restore).await?;
    ended(&again, 1)?;
    again.expect("Processing of 0 documents started (3 before, 1 not started).")?;
    let again = tg(&url, &[&restore[..], &["--overwrite", "--json"]].concat()).await?;
    ended(&again, 1)?;
    let said: Value = serde_json::from_str(&again.stdout)?;
    ensure!(
        said["processing"]["not-started"][0]["document"] == "policy",
        "{said}"
    );
    ensure!(said["documents-failed"] == json!([]), "{said}");
    settled(&url).await?;
    let now = before_of(&url).await?;
    ensure!(now.documents >= before.documents, "{now:?}, {before:?}");
    Ok(())
}
