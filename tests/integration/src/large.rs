//! A large document on its way: made up, uploaded, streamed, processed, and what a process holds meanwhile.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt;
use serde_json::{Value, json};
use tg_testkit::process::{Server, client};

use crate::memory;

/// Its id in the library.
pub const DOCUMENT: &str = "urn:bench:large";
/// Extra memory that is allowed for what passes, in MiB.
pub const ALLOWED: f64 = 64.0;
/// One question.
const BOUND: Duration = Duration::from_secs(1_200);
/// Between two looks at a processing.
const LOOK: Duration = Duration::from_millis(500);

/// Asks a service outside flows over HTTP.
///
/// # Errors
/// It does not answer, or with an error.
pub async fn ask(server: &Server, service: &str, body: Value) -> Result<Value> {
    let url = format!("{}api/v1/{service}", server.url());
    let asked = client()?.post(url).timeout(BOUND);
    let asked = asked.header("Content-Type", "application/json");
    // Megabytes are written quicker than by `json`, whose code is not optimised here.
    let reply: Value = asked.body(body.to_string()).send().await?.json().await?;
    ensure!(reply["error"].is_null(), "{service}: {reply}");
    Ok(reply)
}

/// Uploads a text of so many bytes, whose lines differ.
///
/// # Errors
/// As of [`ask`].
pub async fn upload(server: &Server, size: usize) -> Result<()> {
    let begin = json!({"operation": "begin-upload", "total-size": size, "chunk-size": 3 << 20,
        "document-metadata": {"id": DOCUMENT, "kind": "text/plain", "title": "large", "comments": "",
            "metadata": [], "tags": []}});
    let begun = ask(server, "librarian", begin).await?;
    let step = begun["chunk-size"].as_u64().context("no chunk size")? as usize;
    let mut text = String::new();
    let (mut line, mut sent) = (0_u64, 0);
    for index in 0.. {
        if sent == size {
            break;
        }
        let wanted = step.min(size - sent);
        while text.len() < wanted {
            text.push_str(&format!(
                "Line {line} of the register tells of room {} and shelf {}.\n",
                line % 977,
                line % 31
            ));
            line += 1;
        }
        let rest = text.split_off(wanted);
        let put = json!({"operation": "upload-chunk", "upload-id": begun["upload-id"], "chunk-index": index,
            "content": STANDARD.encode(&text)});
        ask(server, "librarian", put).await?;
        sent += wanted;
        text = rest;
    }
    let complete = json!({"operation": "complete-upload", "upload-id": begun["upload-id"]});
    ask(server, "librarian", complete).await.map(drop)
}

/// Reads it as a stream, to its end.
///
/// # Errors
/// It breaks off, or has another size.
pub async fn stream(server: &Server, size: usize) -> Result<()> {
    let url = format!(
        "{}api/v1/document-stream?document-id={DOCUMENT}&chunk-size=1048576",
        server.url()
    );
    let reply = client()?.get(url).timeout(BOUND).send().await?;
    let mut body = reply.error_for_status()?.bytes_stream();
    let mut there = 0;
    while let Some(part) = body.next().await {
        there += part?.len();
    }
    ensure!(there == size, "{there} bytes of {size}");
    Ok(())
}

/// Has a flow process it, and waits until that is done; the chunks that were made.
///
/// # Errors
/// It fails, or takes longer than `bound`.
pub async fn process(server: &Server, flow: &str, bound: Duration) -> Result<u64> {
    let start = json!({"operation": "add-processing", "processing-metadata":
        {"id": "large", "document-id": DOCUMENT, "flow": flow, "collection": "default", "tags": []}});
    ask(server, "librarian", start).await?;
    let list = json!({"operation": "list-processing"});
    let end = Instant::now() + bound;
    loop {
        let records = ask(server, "librarian", list.clone()).await?;
        let record = &records["processing-metadatas"][0];
        match record["status"].as_str() {
            Some("complete") => {
                let chunks = &record["progress"]["chunks"];
                return chunks.as_u64().with_context(|| record.to_string());
            }
            Some("processing") if Instant::now() < end => tokio::time::sleep(LOOK).await,
            _ => bail!("{record}"),
        }
    }
}

/// Part of a measurement in one process.
#[derive(Debug)]
pub struct Phase {
    pid: u32,
    /// What it held before, in MiB.
    pub before: f64,
    begun: Instant,
}

impl Phase {
    /// Begins one: the peak of the process starts anew (proc(5)).
    ///
    /// # Errors
    /// There is no such process any more.
    pub fn begin(server: &Server) -> Result<Self> {
        let pid = server.pid().context("no process")?;
        std::fs::write(format!("/proc/{pid}/clear_refs"), "5")?;
        Ok(Self {
            pid,
            before: memory(pid, "VmRSS")?,
            begun: Instant::now(),
        })
    }

    /// The most that it held since, in MiB.
    ///
    /// # Errors
    /// There is no such process any more.
    pub fn peak(&self) -> Result<f64> {
        memory(self.pid, "VmHWM")
    }

    /// What it holds now, in MiB.
    ///
    /// # Errors
    /// There is no such process any more.
    pub fn now(&self) -> Result<f64> {
        memory(self.pid, "VmRSS")
    }

    /// How long it goes on.
    pub fn took(&self) -> Duration {
        self.begun.elapsed()
    }
}
