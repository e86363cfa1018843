//! A command that uploads a large document is killed, loses its server, or meets another file than it announced: what
//! arrived is not sent again, and what the library keeps is the file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use tg_integration_tests::memory;
use tg_testkit::process::{bin_dir, client, free_port};
use tokio::process::{Child, Command};

use crate::shared::Workspace;
use crate::world::{Bus, Installation, on_both_buses, up};

/// Bytes of a chunk, as the command sends them.
const CHUNK: usize = 3 << 20;
const CHUNKS: usize = 16;
/// Chunks that arrive before something happens.
const SOME: u64 = 3;
const BOUND: Duration = Duration::from_secs(120);
/// Between two looks at the library.
const LOOK: Duration = Duration::from_millis(20);
/// What the command may hold in memory while it uploads 48, in MiB.
const HELD: f64 = 40.0;

/// A file of text of which no two chunks are alike.
struct Large {
    _folder: TempDir,
    path: PathBuf,
    hash: String,
}

impl Large {
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("ledger.txt");
        let line = |at: usize| format!("{at:09} lamps were lit along the quay tonight\n");
        let lines = CHUNK * CHUNKS / line(0).len() - 1;
        let mut text: String = (0..lines).map(line).collect();
        text.push_str("the end\n");
        fs::write(&path, &text)?;
        Ok(Self {
            _folder: folder,
            path,
            hash: hash(text.as_bytes()),
        })
    }
}

fn hash(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

async fn library(at: &Workspace, ask: Value) -> Result<Value> {
    Ok(at.post("api/v1/librarian", ask).await?.1)
}

/// The open uploads of a document, with how many chunks of each arrived.
async fn open(at: &Workspace, id: &str) -> Result<Vec<u64>> {
    let listed = library(at, json!({"operation": "list-uploads"})).await?;
    let listed = listed["upload-sessions"].as_array().cloned();
    let of = |one: &Value| (one["document-id"] == id).then(|| one["chunks-received"].as_u64());
    let listed = listed.context("uploads")?;
    listed
        .iter()
        .filter_map(of)
        .map(|received| received.context("a number"))
        .collect()
}

/// Chunks that the library wrote, by its own count.
async fn written(url: &str) -> Result<u64> {
    let page = client()?.get(format!("{url}metrics")).send().await?;
    let page = page.error_for_status()?.text().await?;
    let sample = "tg_library_upload_chunks_total{outcome=\"written\"} ";
    let found = page.lines().find_map(|line| line.strip_prefix(sample));
    Ok(found.map_or(Ok(0), str::parse)?)
}

fn adding(at: &Workspace, id: &str, file: &Path) -> Result<Child> {
    let child = Command::new(bin_dir()?.join("tg"))
        .args(["add-library-document", "--json", "--id", id])
        .arg(file)
        .env("TRUSTGRAPH_URL", &at.url)
        .env("THREADGRAPH_WORKSPACE", &at.id)
        .env("XDG_CONFIG_HOME", "/nowhere")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    Ok(child)
}

/// Waits until some chunks of a document arrived.
async fn some_arrived(at: &Workspace, id: &str, child: &mut Child) -> Result<u64> {
    let some = async {
        loop {
            if let Some(received) = open(at, id).await?.first()
                && *received >= SOME
            {
                return Ok(*received);
            }
            if let Some(ended) = child.try_wait()? {
                bail!("it ended: {ended}");
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(BOUND, some).await?
}

/// The document is the file.
async fn is_kept(at: &Workspace, id: &str, file: &Large) -> Result<()> {
    let about = json!({"operation": "get-document-metadata", "document-id": id});
    let about = library(at, about).await?;
    let kept = &about["document-metadata"]["content-hash"];
    ensure!(*kept == file.hash.as_str(), "{about}");
    let copy = file.path.with_extension("copy");
    let to = copy.to_str().unwrap_or_default();
    let got = at.tg(&["get-document-content", "-o", to, id]).await?;
    ensure!(got.code == Some(0), "{got:?}");
    ensure!(hash(&fs::read(&copy)?) == file.hash, "other content");
    ensure!(open(at, id).await?.is_empty(), "an upload is left");
    Ok(())
}

/// What the command said of how the one document went.
fn sent(stdout: &str) -> Result<(u64, u64)> {
    let told: Value = serde_json::from_str(stdout)?;
    let upload = &told[0]["upload"];
    let number = |key: &str| upload[key].as_u64().with_context(|| format!("{told}"));
    Ok((number("chunks")?, number("sent")?))
}

async fn a_killed_command_goes_on(bus: Bus) -> Result<()> {
    let (server, _node) = up(bus).await?;
    let at = Workspace::first_of(&server);
    let (id, file) = ("urn:doc:ledger", Large::new()?);
    let mut first = adding(&at, id, &file.path)?;
    let arrived = some_arrived(&at, id, &mut first).await?;
    let held = memory(first.id().context("it runs")?, "RssAnon")?;
    first.kill().await?;
    ensure!(held < HELD, "{held} MiB held");
    let all = CHUNKS as u64;
    ensure!(arrived < all, "it was over before it was killed");

    let again = adding(&at, id, &file.path)?.wait_with_output().await?;
    ensure!(again.status.success(), "{again:?}");
    let (chunks, sent) = sent(&String::from_utf8(again.stdout)?)?;
    ensure!(chunks == all, "{chunks}");
    ensure!(sent > 0 && sent <= all - arrived, "{sent} of {arrived}");
    let told = String::from_utf8(again.stderr)?;
    let there = all - sent;
    let wanted = format!("goes on, {there} of {all} chunks are there");
    ensure!(told.contains(&wanted), "{told}");
    // By the library's own count no chunk was written twice.
    let written = written(&at.url).await?;
    ensure!(written == all, "{written} written");
    is_kept(&at, id, &file).await
}

async fn a_server_that_goes_away_is_waited_for(bus: Bus) -> Result<()> {
    let place = Installation::new(bus).await?;
    // The client finds the next one there.
    let port = free_port()?;
    let server = place.up(Some(port)).await?;
    let at = Workspace::first_of(&server);
    let (id, file) = ("urn:doc:ledger", Large::new()?);
    let mut child = adding(&at, id, &file.path)?;
    some_arrived(&at, id, &mut child).await?;
    server.kill9().await?;
    let _server = place.up(Some(port)).await?;
    let ended = tokio::time::timeout(BOUND, child.wait_with_output()).await??;
    ensure!(ended.status.success(), "{ended:?}");
    let told = String::from_utf8(ended.stderr)?;
    ensure!(told.contains("trying again"), "{told}");
    is_kept(&at, id, &file).await
}

/// Begins an upload of a file as the command does, and sends its first chunk.
async fn begun(at: &Workspace, id: &str, file: &Large) -> Result<Value> {
    let content = fs::read(&file.path)?;
    let begin = json!({"operation": "begin-upload", "total-size": content.len(), "chunk-size": CHUNK,
        "content-hash": file.hash,
        "document-metadata": {"id": id, "kind": "text/plain", "title": "Ledger"}});
    let begun = library(at, begin).await?;
    let first = json!({"operation": "upload-chunk", "upload-id": begun["upload-id"], "chunk-index": 0,
        "content": STANDARD.encode(&content[..CHUNK])});
    let taken = library(at, first).await?;
    ensure!(taken["chunks-received"] == 1, "{taken}");
    Ok(begun)
}

async fn a_changed_file_is_another_upload(bus: Bus) -> Result<()> {
    let at = Workspace::shared(bus).await?;
    let (id, mut file) = ("urn:doc:ledger", Large::new()?);
    begun(&at, id, &file).await?;
    let mut content = fs::read(&file.path)?;
    content[CHUNK * 2] = b'#';
    fs::write(&file.path, &content)?;
    file.hash = hash(&content);
    let added = adding(&at, id, &file.path)?.wait_with_output();
    let added = tokio::time::timeout(BOUND, added).await??;
    ensure!(added.status.success(), "{added:?}");
    let all = CHUNKS as u64;
    let told = sent(&String::from_utf8(added.stdout)?)?;
    ensure!(told == (all, all), "{told:?}");
    // What was begun of the other content stays until its day is over.
    ensure!(open(&at, id).await? == [1], "the upload of before");
    let other = json!({"operation": "list-uploads"});
    let other = library(&at, other).await?;
    let abort = json!({"operation": "abort-upload",
        "upload-id": other["upload-sessions"][0]["upload-id"]});
    library(&at, abort).await?;
    is_kept(&at, id, &file).await
}

async fn other_content_than_announced_is_refused(bus: Bus) -> Result<()> {
    let (at, id) = (Workspace::shared(bus).await?, "urn:doc:announced");
    let begin = |hash: &str| {
        json!({"operation": "begin-upload", "total-size": 3, "chunk-size": 3, "content-hash": hash,
            "document-metadata": {"id": id, "kind": "text/plain", "title": "t"}})
    };
    let noise = library(&at, begin("abc")).await?;
    ensure!(
        noise["error"]["message"] == "content-hash: must be a SHA-256 in 64 hexadecimal digits",
        "{noise}"
    );
    let upload = library(&at, begin(&hash(b"abc"))).await?;
    ensure!(upload["missing-chunks"] == json!([0]), "{upload}");
    let upload = &upload["upload-id"];
    let chunk = json!({"operation": "upload-chunk", "upload-id": upload, "chunk-index": 0,
        "content": STANDARD.encode("abd")});
    library(&at, chunk).await?;
    let complete = json!({"operation": "complete-upload", "upload-id": upload});
    let refused = library(&at, complete.clone()).await?;
    let message = refused["error"]["message"].as_str().unwrap_or_default();
    ensure!(message.contains("nothing of it is kept"), "{refused}");
    let gone = library(&at, complete).await?;
    ensure!(gone["error"]["type"] == "not-found", "{gone}");
    let about = json!({"operation": "get-document-metadata", "document-id": id});
    let none = library(&at, about).await?;
    ensure!(none["error"]["type"] == "not-found", "{none}");
    ensure!(open(&at, id).await?.is_empty(), "an upload is left");

    // Who says no hash is answered as ever.
    let plain = json!({"operation": "begin-upload", "total-size": 7, "chunk-size": 3,
        "document-metadata": {"id": id, "kind": "text/plain", "title": "t"}});
    let mut plain = library(&at, plain).await?;
    let said = plain.as_object_mut().context("an object")?;
    said.remove("upload-id").context("an id")?;
    let ever = json!({"document-metadatas": [], "processing-metadatas": [], "chunk-size": 3,
        "total-chunks": 3});
    ensure!(plain == ever, "{plain}");
    Ok(())
}

on_both_buses!(
    a_killed_command_goes_on,
    a_server_that_goes_away_is_waited_for,
    a_changed_file_is_another_upload,
    other_content_than_announced_is_refused,
);
